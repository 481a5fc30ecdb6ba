//! Lowers what was asked to a recipe: row ops, chains, samplings of clips and searches; how
//! insertions are lowered is in `insertion`.
//!
//! No other file of the planner knows these five; all others know programs.

use super::Recipe;
use super::cost::of_program;
use super::form::{Stored, part_of};
use super::fuse::{fuse, stored_programs};
use super::inputs::{Inputs, home};
use super::recipe::Extent;
use super::schedule::Schedule;
use super::slicing::{AxisRows, Slicing};
use super::stored::shared_form;
use crate::error::Error;
use crate::graph::chain::{Chain, Home};
use crate::graph::insertion::{Insertion, ROW};
use crate::graph::sampling::Sampling;
use crate::graph::searching::{BLOCK, Searching};
use crate::kernel::{Named, Settings};
use crate::program::{
    Access, Body, BufferId, Effort, Kind, Load, Program, RowOp, Sizes, Source, Stage, StageSizes,
    Target,
};
use crate::tensor::{DType, Format, Span, aligned};

/// What makes calls equal in kind: equal structures have one recipe. A new kind of work is
/// one more type with this trait.
pub trait Structure: PartialEq + Send + 'static {
    /// The recipe of calls. `known` are recipes of which equal ones share a program, so
    /// that their calls are computed together.
    fn lower(&self, known: &[Recipe]) -> Recipe;
}

/// A call's operands are those of the op, one after the other.
impl Structure for RowOp {
    fn lower(&self, _: &[Recipe]) -> Recipe {
        Recipe::new(self)
    }
}

/// A call's operands are the chain's inputs of [`Home::Call`], then its constants, then the
/// numbers of the tensors that its other inputs are, each part from the next multiple of
/// 16 bytes on; behind the numbers of tensors comes the offset where results are stored.
/// Calls of one program merge whatever their shapes.
impl Structure for Chain {
    fn lower(&self, known: &[Recipe]) -> Recipe {
        match self.stores() {
            [] => Recipe::fuse(self, known),
            _ => Recipe::store(self, known),
        }
    }
}

/// A call's operands are its rows, its header, the number of the store and that of its
/// target, if it has one. Calls merge whatever they sample.
impl Structure for Sampling {
    fn lower(&self, known: &[Recipe]) -> Recipe {
        Recipe::sample(self, known)
    }
}

/// A call's operands are its queries, its mask and the numbers of the pages. Calls of one
/// index are computed together.
impl Structure for Searching {
    fn lower(&self, _: &[Recipe]) -> Recipe {
        Recipe::search(self)
    }
}

impl Recipe {
    /// The recipe of a row op.
    pub fn new(op: &RowOp) -> Recipe {
        let operands = op
            .operands
            .iter()
            .map(|format| Extent::rows(format.words()));
        Recipe {
            operands: operands.collect(),
            results: vec![Extent::rows(op.result.words())],
            formats: op.operands.to_vec(),
            scalar: op.scalar,
            slicing: Slicing::Rows,
            effort: op.kernel.effort(&op.settings),
            ..of_one_stage(op.program(), 1, &[])
        }
    }

    /// The recipe of a chain, which is fused. A recipe in `known` whose program is equal shares
    /// that program, so that calls of both are computed together.
    pub fn fuse(chain: &Chain, known: &[Recipe]) -> Recipe {
        let (program, sizes) = fuse(chain);
        let schedule = Schedule::shared(program, known.iter().map(|recipe| &recipe.schedule));
        let inputs = Inputs::of(chain);
        let is_flat = is_flat(&schedule.program, &sizes, &inputs.carried);
        let is_watched = schedule.program.outputs.len() > chain.outputs().len();
        let slicing = match is_flat {
            _ if is_watched => Slicing::Never,
            true => Slicing::Elements,
            false => AxisRows::of(chain).map_or(Slicing::Never, |rows| Slicing::Axis(rows.into())),
        };
        let rows = match &slicing {
            Slicing::Elements => sizes.buffers[0],
            Slicing::Axis(along) => along.by.rows,
            Slicing::Never | Slicing::Rows => 1,
        };
        let row_words = |input: usize| match &slicing {
            Slicing::Axis(along) => along.by.inputs[input],
            _ => u32::from(is_flat),
        };
        let (mut operands, mut tensors) = (Vec::new(), Vec::new());
        for (input, node) in chain.inputs().enumerate() {
            let words = row_words(input);
            match home(node) {
                Home::Call if words == 0 => operands.push(Extent::fixed(node.shape.count())),
                Home::Call => operands.push(Extent::rows(words)),
                Home::Resident | Home::Packed(_) => tensors.push(words),
            }
        }
        operands.push(Extent::fixed(chain.constants()));
        let outputs = schedule.program.outputs.iter().enumerate();
        let results = outputs.map(|(at, output)| match &slicing {
            Slicing::Elements => Extent::rows(1),
            Slicing::Axis(along) => Extent::rows(along.by.outputs[at]),
            _ => Extent::fixed(aligned(sizes.buffers[output.0 as usize])),
        });
        let results = results.collect();
        Recipe {
            effort: of_program(&schedule, &sizes, rows),
            operands,
            results,
            tensors,
            ordinals: inputs.ordinals,
            numbers: chain.constants(),
            rows: Some(rows),
            slicing,
            is_watched,
            schedule,
            sizes,
            ..Recipe::default()
        }
    }

    /// The recipe of a chain whose results are stored. A call is computed as a whole, because
    /// its targets are written once.
    pub(super) fn store(chain: &Chain, known: &[Recipe]) -> Recipe {
        let (program, sizes) = fuse(chain);
        let programs = stored_programs(chain, program, sizes);
        let (program, sizes) = programs.by_scratch;
        let by_scratch = shared_form(program, sizes, known);
        let direct = programs.direct;
        let direct = direct.map(|(program, sizes)| shared_form(program, sizes, known));
        let (own, by_scratch) = match direct {
            Some(direct) => (direct, Some(by_scratch)),
            None => (by_scratch, None),
        };
        let inputs = Inputs::of(chain);
        let carried = inputs.carried.iter();
        let mut operands: Vec<Extent> = carried.map(|count| Extent::fixed(*count)).collect();
        operands.push(Extent::fixed(chain.constants()));
        Recipe {
            effort: of_program(&own.schedule, &own.sizes, 1),
            operands,
            tensors: vec![0; inputs.ordinals.len() - inputs.carried.len()],
            ordinals: inputs.ordinals,
            numbers: chain.constants(),
            rows: Some(1),
            schedule: own.schedule,
            sizes: own.sizes,
            store: Some(Stored {
                by_scratch,
                part: part_of(chain),
            }),
            ..Recipe::default()
        }
    }

    /// The recipe of a sampling of clips, with one thread for each clip lane of a row. Which
    /// clips and how many lanes are operands, so that calls of any clips are computed
    /// together.
    pub fn sample(sampling: &Sampling, known: &[Recipe]) -> Recipe {
        // The inputs of the program, by number.
        let [rows, header, store, target] = [0, 1, 2, 3];
        let load = |source, binding, access| Load {
            source,
            binding,
            access,
            packing: None,
        };
        let stage = Stage {
            body: Body::Named(Named::Clip, Settings::default()),
            loads: vec![
                load(Source::Input(rows), 0, Access::Flat),
                load(Source::Input(header), 0, Access::Flat),
                load(Source::Resident(store), 1, Access::Found),
            ],
            scalars: Vec::new(),
            target: match sampling.is_stored {
                true => Target::Resident(target),
                false => Target::Buffer(BufferId(0)),
            },
        };
        // A thread finds two keyframes and blends up to four floats of both.
        let lanes = f64::from(sampling.layers) * f64::from(sampling.lanes);
        let (results, slicing) = match sampling.is_stored {
            // A call that writes a tensor has no result whose rows a slice could answer.
            true => (Extent::default(), Slicing::Never),
            false => (Extent::rows(sampling.width), Slicing::Rows),
        };
        Recipe {
            operands: vec![Extent::rows(sampling.row), Extent::fixed(sampling.header())],
            results: vec![results],
            tensors: vec![0; sampling.tensors() as usize],
            ordinals: vec![0, 1, 0, 1],
            formats: vec![Format {
                dtype: DType::Parameter,
                width: sampling.row,
            }],
            slicing,
            effort: Effort::of(Kind::Blend, 8.0 * lanes),
            ..of_one_stage(Program::of(stage), sampling.lanes, known)
        }
    }

    /// The words of its targets that a call of `rows` rows writes, by what lies in the call's room;
    /// none of a call that writes nothing. What an insertion writes is counted in vectors.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for words that the target does not have.
    pub fn stored(&self, room: &[u32], rows: u32) -> Result<Span, Error> {
        if !self.is_stored() {
            return Ok(Span::default());
        }
        if self.store.is_some() {
            return self.stored_span(room);
        }
        if self.insertion().is_some() {
            return Ok(Insertion::places(&room[..(ROW * rows) as usize]));
        }
        let header = self.address(1, 0, rows) as usize;
        let (at, words) = Sampling::written(&room[header..], rows);
        Ok(Span { at, words })
    }

    /// Whether calls sample clips.
    pub fn is_sampling(&self) -> bool {
        let stages = &self.schedule.program.stages[..];
        matches!(stages, [stage] if matches!(stage.body, Body::Named(Named::Clip, _)))
    }

    /// Tells the kernel of a sampling that stores its results, which finds their place among the
    /// operands, that the target begins at this word of its buffer.
    pub fn move_target(&self, operands: &mut [u32], rows: u32, at: u32) {
        let header = &mut operands[self.address(1, 0, rows) as usize..];
        header[Sampling::TARGET] += at;
    }

    /// The recipe of a search of an index, whose operands are queries and a mask of ids.
    pub fn search(searching: &Searching) -> Recipe {
        let load = |input| Load {
            source: Source::Input(input),
            binding: 0,
            access: Access::Flat,
            packing: None,
        };
        let stage = Stage {
            body: Body::Search(*searching),
            loads: vec![load(0), load(1)],
            scalars: Vec::new(),
            target: Target::Buffer(BufferId(0)),
        };
        // A vector is read once for several queries, so that products are most of the work.
        let vectors = f64::from(searching.all_blocks()) * f64::from(BLOCK);
        let products = vectors * f64::from(searching.query());
        Recipe {
            operands: vec![
                Extent::rows(searching.query()),
                Extent::fixed(searching.mask.words),
            ],
            results: vec![Extent::rows(2 * searching.count)],
            tensors: vec![0; searching.pages() as usize],
            slicing: Slicing::Rows,
            effort: Effort::of(Kind::Product, products),
            ..of_one_stage(Program::of(stage), 1, &[])
        }
    }
}

/// The fields that recipes of one stage have in common: its inputs are the operands, and a row
/// takes so many threads.
pub(super) fn of_one_stage(program: Program, threads: u32, known: &[Recipe]) -> Recipe {
    let loads = program.stages[0].loads.len();
    let sizes = Sizes {
        stages: vec![StageSizes {
            threads,
            offsets: vec![0; loads],
            ..StageSizes::default()
        }],
        buffers: vec![0; program.buffers as usize],
    };
    Recipe {
        schedule: Schedule::shared(program, known.iter().map(|recipe| &recipe.schedule)),
        ordinals: (0..loads).collect(),
        sizes,
        ..Recipe::default()
    }
}

/// Whether each element of the only result is computed from the operands' elements in the same
/// place, so that a call can be cut between any two elements.
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
