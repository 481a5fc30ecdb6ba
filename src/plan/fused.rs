//! Recipes of chains: the program that fusion made, and the numbers of one
//! shape of its inputs.
//!
//! Calls of equal programs are computed together, whatever their shapes; so
//! the program is shared, and the numbers go into each call's entry.

use std::sync::Arc;

use super::by_rows::ByRows;
use super::fuse::fuse;
use super::join::Joint;
use super::recipe::Extent;
use super::{Part, Segment, Slot};
use crate::graph::chain::{Chain, Home, Node, Op};
use crate::kernel::Kernel;
use crate::program::{
    Access, Body, BufferId, Products, Program, Sizes, Source, Stage, StageSizes, Tiles,
};
use crate::tensor::aligned;

/// A program with its kernels.
#[derive(Debug)]
pub(super) struct Fused {
    pub(super) program: Program,
    /// Those of the stages in order, then those for small tiles.
    pub(super) kernels: Vec<Kernel>,
    /// For each stage what tells whether calls can be one.
    pub(super) joints: Vec<Joint>,
    pub(super) runs: Vec<Run>,
}

/// A stage at work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) stage: usize,
    /// The output that it writes, if it writes one.
    pub(super) output: Option<usize>,
}

impl Fused {
    fn new(program: Program) -> Fused {
        let (mut kernels, mut small) = (Vec::new(), Vec::new());
        for stage in &program.stages {
            let of = Arc::new(stage.clone());
            kernels.push(match Products::of(stage) {
                None => Kernel::Fused(of),
                Some(products) => {
                    small.push(Kernel::Product(Arc::clone(&of), products, Tiles::Small));
                    Kernel::Product(of, products, Tiles::Large)
                }
            });
        }
        kernels.append(&mut small);
        let output = |buffer| program.outputs.iter().position(|output| *output == buffer);
        let stages = program.stages.iter().enumerate();
        let first = stages.clone().map(|(stage, work)| Run {
            stage,
            output: output(work.buffer),
        });
        let mut runs: Vec<Run> = first.collect();
        // A result that was asked for twice is made twice.
        for (at, buffer) in program.outputs.iter().enumerate() {
            if output(*buffer) != Some(at) {
                let again = stages.clone().filter(|(_, work)| work.buffer == *buffer);
                runs.extend(again.map(|(stage, _)| Run {
                    stage,
                    output: Some(at),
                }));
            }
        }
        Fused {
            joints: program.stages.iter().map(Joint::of).collect(),
            program,
            kernels,
            runs,
        }
    }

    /// The kernel of a stage for calls with these entries.
    pub(super) fn kernel(&self, stage: usize, (calls, entries): (&[Segment], &[u32])) -> Kernel {
        let threads = calls.iter().map(|call| call.rows);
        match &self.kernels[stage] {
            Kernel::Product(of, products, _) if products.are_small(threads, entries) => {
                Kernel::Product(Arc::clone(of), *products, Tiles::Small)
            }
            kernel => kernel.clone(),
        }
    }

    /// Whether no run behind this one reads what a stage made.
    pub(super) fn is_last_reader(&self, run: usize, buffer: BufferId) -> bool {
        let reads = |run: &Run| {
            let mut loads = self.program.stages[run.stage].loads.iter();
            loads.any(|load| load.source == Source::Buffer(buffer))
        };
        reads(&self.runs[run]) && !self.runs[run + 1..].iter().any(reads)
    }
}

/// One shape of a program's inputs.
#[derive(Clone, Debug)]
pub(super) struct Shaped {
    pub(super) fused: Arc<Fused>,
    sizes: Sizes,
    /// Where each output begins in a call's result.
    outputs: Vec<u32>,
    /// For each of the chain's inputs its number among those of its home.
    places: Vec<usize>,
    /// Elements of the inputs that come with the call.
    carried: Vec<u32>,
    /// For each of the chain's inputs the words of a row; 0 where all rows read it.
    pub(super) row_words: Vec<u32>,
    /// Inputs that lie on the device, by their places there.
    residents: Vec<usize>,
    /// Whether elements are computed one by one, each from those in its place,
    /// so that a call can be cut anywhere.
    is_flat: bool,
    /// How some of its rows are computed, where they can be by themselves.
    by_rows: Option<Box<ByRows>>,
}

/// Where a call's data lies.
pub(super) struct Placed<'a> {
    /// The address of an operand of this number.
    pub(super) operand: &'a dyn Fn(usize) -> u32,
    /// The address of its numbers.
    pub(super) numbers: u32,
    /// Words of each of its tensors that are in parts before, none where it is empty.
    pub(super) before: &'a [u32],
    pub(super) part: Part,
    /// The word where its result begins.
    pub(super) result: u32,
}

impl Shaped {
    /// Fuses a chain; shares the program of an earlier one that is equal. Where
    /// it can be cut is known too.
    pub(super) fn new<'a>(
        chain: &Chain,
        mut known: impl Iterator<Item = &'a Arc<Fused>>,
    ) -> Shaped {
        let shaped = Shaped::whole(chain, &mut known);
        let is_flat = is_flat(&shaped.fused.program, &shaped.sizes, &shaped.carried);
        let by_rows = if is_flat { None } else { ByRows::of(chain) };
        let by_rows = by_rows.map(Box::new);
        let row_words = match &by_rows {
            Some(by_rows) => by_rows.inputs().to_vec(),
            None => vec![u32::from(is_flat); shaped.places.len()],
        };
        Shaped {
            is_flat,
            by_rows,
            row_words,
            ..shaped
        }
    }

    /// Fuses a chain that stays whole.
    pub(super) fn whole(chain: &Chain, mut known: &mut dyn Iterator<Item = &Arc<Fused>>) -> Shaped {
        let (program, sizes) = fuse(chain);
        let same = |known: &&Arc<Fused>| known.program == program;
        let fused = match Iterator::find(&mut known, same) {
            Some(known) => Arc::clone(known),
            None => Arc::new(Fused::new(program)),
        };
        let mut next = 0;
        let outputs = fused.program.outputs.iter().map(|output| {
            let at = next;
            next = aligned(sizes.buffers[output.0 as usize]).saturating_add(next);
            at
        });
        let outputs = outputs.collect();
        let (mut carried, mut residents) = (Vec::new(), Vec::new());
        let inputs = chain.inputs().enumerate();
        let places = inputs.map(|(input, node)| match home(node) {
            Home::Call => {
                carried.push(node.shape.count());
                carried.len() - 1
            }
            Home::Resident | Home::Packed(_) => {
                residents.push(input);
                residents.len() - 1
            }
        });
        let places: Vec<usize> = places.collect();
        Shaped {
            row_words: vec![0; places.len()],
            places,
            is_flat: false,
            by_rows: None,
            fused,
            sizes,
            outputs,
            carried,
            residents,
        }
    }

    /// Rows of a call that it can be cut between: its elements, what it is
    /// computed of along the first axis, or one.
    pub(super) fn rows(&self) -> u32 {
        match &self.by_rows {
            _ if self.is_flat => self.sizes.buffers[0],
            Some(by_rows) => by_rows.rows(),
            None => 1,
        }
    }

    /// Whether each row is an element.
    pub(super) fn is_flat(&self) -> bool {
        self.is_flat
    }

    /// The same program for some of the rows; `None` where these are not
    /// computed by it.
    pub(super) fn of_rows(&self, rows: u32) -> Option<Arc<Shaped>> {
        self.by_rows.as_ref()?.shaped(rows, &self.fused)
    }

    /// How many inputs lie on the device.
    pub(super) fn residents(&self) -> u32 {
        u32::try_from(self.residents.len()).expect("a chain has few inputs")
    }

    /// Whether a stage reads one of them.
    pub(super) fn reads(&self, place: usize) -> bool {
        let stages = self.fused.program.stages.iter();
        let mut loads = stages.flat_map(|stage| &stage.loads);
        loads.any(|load| {
            matches!(load.source, Source::Resident(input) if self.places[input as usize] == place)
        })
    }

    /// Words of a row of one of them; 0 where all rows read it.
    pub(super) fn resident_row(&self, place: usize) -> u32 {
        let input = self.residents.get(place);
        input.map_or(0, |input| self.row_words[*input])
    }

    /// The operands that come with a call: its inputs, then its constants.
    pub(super) fn operands(&self, chain: &Chain) -> Vec<Extent> {
        let of_row = chain.inputs().zip(&self.row_words);
        let of_row = of_row.filter(|(node, _)| home(node) == Home::Call);
        let inputs = of_row.zip(&self.carried);
        let inputs = inputs.map(|((_, words), count)| match words {
            0 => Extent::fixed(*count),
            _ => Extent::rows(*words),
        });
        let constants = Extent::fixed(chain.constants());
        inputs.chain([constants]).collect()
    }

    /// The words of each result, of which all but the last are followed by the
    /// next from a multiple of four words on.
    pub(super) fn results(&self) -> Vec<Extent> {
        let of_row = self.by_rows.as_deref().map(ByRows::outputs);
        let outputs = self.fused.program.outputs.iter().enumerate();
        let words = outputs.map(|(at, output)| match of_row {
            _ if self.is_flat => Extent::rows(1),
            Some(of_row) => Extent::rows(of_row[at]),
            None => Extent::fixed(aligned(self.words(*output))),
        });
        words.collect()
    }

    /// Dispatches that a piece of any size takes; at least one.
    pub(super) fn stages(&self) -> u64 {
        self.fused.runs.len().max(1) as u64
    }

    /// Words of a buffer.
    pub(super) fn words(&self, buffer: BufferId) -> u32 {
        self.sizes.buffers[buffer.0 as usize]
    }

    /// Whether calls of both can be computed together.
    pub(super) fn merges(&self, other: &Shaped) -> bool {
        Arc::ptr_eq(&self.fused, &other.fused)
    }

    /// The stages at work, in order, with their numbers.
    pub(super) fn work(&self) -> impl Iterator<Item = (&Stage, &StageSizes)> {
        let (stages, sizes) = (&self.fused.program.stages, &self.sizes.stages);
        let runs = self.fused.runs.iter();
        runs.map(|run| (&stages[run.stage], &sizes[run.stage]))
    }

    /// How many runs there are, and buffers.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.fused.runs.len(), self.sizes.buffers.len())
    }

    /// The runs, in order.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        self.fused.runs.iter().copied()
    }

    /// Lays a call's buffers behind those of the calls before. More words than have
    /// addresses are as many as have, which no device holds: such a plan is halved.
    pub(super) fn fill(&self, filled: &mut [u32]) {
        for (filled, words) in filled.iter_mut().zip(&self.sizes.buffers) {
            *filled = filled.saturating_add(aligned(*words));
        }
    }

    /// Threads of a run for a part of a call.
    pub(super) fn threads(&self, run: Run, part: Part) -> u32 {
        if self.is_flat {
            part.rows.div_ceil(4)
        } else {
            self.sizes.stages[run.stage].threads
        }
    }

    /// The word where a run's result begins; `homes` are the buffers' words.
    pub(super) fn target(&self, run: Run, placed: &Placed<'_>, homes: &[u32]) -> u32 {
        let start = match run.output {
            Some(output) => placed.result.saturating_add(self.outputs[output]),
            None => homes[self.fused.program.stages[run.stage].buffer.0 as usize],
        };
        // Only of a plan that no device holds does an address wrap.
        start.wrapping_add(self.sizes.stages[run.stage].result)
    }

    /// Appends a call's entry of a run, behind the address of its result.
    pub(super) fn enter(
        &self,
        Run { stage, .. }: Run,
        placed: &Placed<'_>,
        homes: &[u32],
        entries: &mut Vec<u32>,
    ) {
        let work = &self.fused.program.stages[stage];
        let StageSizes { offsets, words, .. } = &self.sizes.stages[stage];
        for (load, offset) in work.loads.iter().zip(offsets) {
            let base = match load.source {
                Source::Input(input) => (placed.operand)(self.places[input as usize]),
                Source::Resident(input) => {
                    let before = placed.before.get(self.places[input as usize]);
                    placed.part.first * self.row_words[input as usize] - before.unwrap_or(&0)
                }
                Source::Buffer(buffer) => homes[buffer.0 as usize],
            };
            // Strides may be negative, and offsets then wrap.
            entries.push(base.wrapping_add(*offset));
        }
        if work.has_constants() {
            entries.push(placed.numbers);
        }
        entries.extend_from_slice(words);
    }

    /// The slots that a run reads, by binding.
    pub(super) fn slots(&self, run: Run, homes: &[Slot], set: &[u32]) -> Vec<Slot> {
        let sources = self.fused.program.stages[run.stage].sources();
        let slots = sources.map(|source| match source {
            Source::Input(_) => Slot::INPUTS,
            Source::Resident(input) => Slot::resident(set[self.places[input as usize]]),
            Source::Buffer(buffer) => homes[buffer.0 as usize],
        });
        slots.collect()
    }
}

fn is_flat(program: &Program, sizes: &Sizes, carried: &[u32]) -> bool {
    let ([stage], [_]) = (&program.stages[..], &program.outputs[..]) else {
        return false;
    };
    let Body::Map(map) = &stage.body else {
        return false;
    };
    let mut loads = stage.loads.iter().zip(&sizes.stages[0].offsets);
    !map.is_strided
        && carried.iter().all(|count| *count == sizes.buffers[0])
        && loads.all(|(load, offset)| load.access == Access::Flat && *offset == 0)
}

fn home(node: &Node) -> Home {
    match node.op {
        Op::Input { home, .. } => home,
        _ => Home::Call,
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "fused_tests.rs"]
mod tests;
