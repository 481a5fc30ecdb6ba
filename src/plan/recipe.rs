//! How one structure is computed: its graph or chain, compiled once to stages.
//!
//! Free of lengths and addresses; those differ from call to call and are
//! filled in by `assemble`.

use super::fused::Shaped;
use super::{MOST_THREADS, Part, sampled, searched};
use crate::error::Error;
use crate::graph::chain::Chain;
use crate::graph::sampling::Sampling;
use crate::graph::searching::Searching;
use crate::graph::{Graph, Measure, Mode, Node, Op, OpClass, Timing};
use crate::kernel::{Kernel, MAX_OPERANDS, Settings};
use crate::tensor::{DType, Format, aligned};

/// Calls are cut at multiples of so many rows.
pub(super) const GRAIN: u32 = 4;

/// Places that are looked at for a cut.
const TRIES: usize = 4;

/// How a structure is computed. The default is the recipe of nothing.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    pub(super) work: Work,
    /// Its operands as they lie in the arena: one after the other, each
    /// starting at a multiple of 16 bytes.
    pub(super) operands: Vec<Extent>,
    /// The words of each result.
    results: Vec<Extent>,
    /// Formats of the operands that callers give values for.
    inputs: Vec<Format>,
    scalar: Option<Format>,
    class: OpClass,
}

/// What is done.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// An op's stages, in order; the last one gives the result.
    Stages(Vec<Stage>),
    /// A chain's program.
    Fused(Shaped),
    /// A sampling of clips.
    Sampled(Sampling),
    /// A search of an index, and its kernels.
    Searched(Searching, [Kernel; 2]),
}

impl Default for Work {
    fn default() -> Work {
        Work::Stages(Vec::new())
    }
}

/// Words that depend on a call's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) per_row: u32,
    fixed: u32,
}

impl Extent {
    pub(super) const fn rows(words: u32) -> Extent {
        Extent {
            per_row: words,
            fixed: 0,
        }
    }

    pub(super) const fn fixed(words: u32) -> Extent {
        Extent {
            per_row: 0,
            fixed: words,
        }
    }

    /// Words for so many rows.
    pub(super) const fn words(self, rows: u32) -> u32 {
        self.per_row * rows + self.fixed
    }

    fn wide(self, rows: u32) -> u64 {
        u64::from(self.per_row) * u64::from(rows) + u64::from(self.fixed)
    }
}

/// One kernel at work on rows.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) kernel: Kernel,
    pub(super) settings: Settings,
    pub(super) operands: Vec<Source>,
    /// Words in a row of the result.
    pub(super) row_words: u32,
}

impl Stage {
    /// Where a row of the result lies while it is not yet the call's: every
    /// row-wise intermediate keeps the calls end to end in steps of 16 bytes a
    /// row, so an address follows from the rows before it. More words than have addresses
    /// are as many as have, which no device holds.
    pub(super) fn scratch(&self, rows_before: u32) -> u32 {
        rows_before.saturating_mul(aligned(self.row_words))
    }
}

/// Where a stage's operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The call's operand of this number.
    Input(usize),
    /// The call's scalar.
    Scalar,
    /// The result of an earlier stage.
    Stage(usize),
}

impl Recipe {
    /// Compiles a graph.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a graph without an operation.
    pub fn new(graph: &Graph) -> Result<Recipe, Error> {
        let mut sources = Vec::with_capacity(graph.nodes().len());
        let mut stages: Vec<Stage> = Vec::new();
        let mut class = OpClass::RowWise;
        for node in graph.nodes() {
            sources.push(match node {
                Node::Input { index, .. } => Source::Input(*index),
                Node::Scalar { .. } => Source::Scalar,
                Node::Op {
                    op,
                    operands,
                    format,
                } => {
                    let formats: Vec<Format> =
                        operands.iter().map(|id| graph.node(*id).format()).collect();
                    let operands: Vec<Source> =
                        operands.iter().map(|id| sources[id.index()]).collect();
                    debug_assert!(operands.len() <= MAX_OPERANDS);
                    let (kernel, settings) = choose(op, &formats, operands.last());
                    stages.push(Stage {
                        kernel,
                        settings,
                        operands,
                        row_words: format.words(),
                    });
                    class = wider(class, op.class());
                    Source::Stage(stages.len() - 1)
                }
            });
        }
        if !matches!(sources.last(), Some(Source::Stage(_))) {
            return Err(Error::InvalidInput(
                "a graph needs an operation as its last node".into(),
            ));
        }
        let inputs: Vec<Format> = graph.inputs().collect();
        let operands = inputs.iter().map(|format| Extent::rows(format.words()));
        let last = stages.last().map_or(0, |stage| stage.row_words);
        Ok(Recipe {
            operands: operands.collect(),
            results: vec![Extent::rows(last)],
            work: Work::Stages(stages),
            inputs,
            scalar: graph.scalar_format(),
            class,
        })
    }

    /// Fuses a chain. `known` are recipes of which equal ones share a program,
    /// so that their calls are computed together.
    pub fn fuse(chain: &Chain, known: &[Recipe]) -> Recipe {
        let known = known.iter().filter_map(|recipe| match &recipe.work {
            Work::Fused(shaped) => Some(&shaped.fused),
            Work::Stages(_) | Work::Sampled(_) | Work::Searched(..) => None,
        });
        let shaped = Shaped::new(chain, known);
        Recipe {
            operands: shaped.operands(chain),
            results: shaped.results(),
            // One row at a time is each call's own affair.
            class: match shaped.is_flat() && shaped.rows() > 1 {
                false => OpClass::SegmentWise,
                true => OpClass::RowWise,
            },
            work: Work::Fused(shaped),
            inputs: Vec::new(),
            scalar: None,
        }
    }

    /// A sampling of clips.
    pub fn sample(sampling: &Sampling) -> Recipe {
        let times = Format {
            dtype: DType::Parameter,
            width: sampling.row,
        };
        Recipe {
            work: Work::Sampled(*sampling),
            operands: sampled::operands(sampling),
            results: vec![sampled::result(sampling)],
            inputs: vec![times],
            scalar: None,
            // A part of what is stored would have no answer of its own.
            class: match sampling.is_stored {
                true => OpClass::SegmentWise,
                false => OpClass::RowWise,
            },
        }
    }

    /// A search of an index.
    pub fn search(searching: &Searching) -> Recipe {
        Recipe {
            work: Work::Searched(*searching, searched::kernels(searching)),
            operands: searched::operands(searching),
            results: vec![Extent::rows(2 * searching.count)],
            inputs: Vec::new(),
            scalar: None,
            class: OpClass::RowWise,
        }
    }

    /// Rows of every call, where the structure says so.
    pub fn rows(&self) -> Option<u32> {
        match &self.work {
            Work::Fused(shaped) => Some(shaped.rows()),
            Work::Stages(_) | Work::Sampled(_) | Work::Searched(..) => None,
        }
    }

    /// Which of these a call writes to, where its result stays on the device.
    pub fn target(&self) -> Option<usize> {
        match &self.work {
            Work::Sampled(sampling) if sampling.is_stored => Some(1),
            _ => None,
        }
    }

    /// Numbers that come with a call: the last of its operands.
    pub fn numbers(&self) -> u32 {
        match (&self.work, self.operands.last()) {
            (Work::Fused(_), Some(numbers)) => numbers.fixed,
            _ => 0,
        }
    }

    /// Tensors on the device that a call names behind its operands.
    pub fn residents(&self) -> u32 {
        match &self.work {
            Work::Fused(shaped) => shaped.residents(),
            Work::Sampled(sampling) => sampling.tensors(),
            Work::Searched(searching, _) => searching.pages(),
            Work::Stages(_) => 0,
        }
    }

    /// The tensor that a call writes, of those that it names.
    pub fn written(&self, set: &[u32]) -> Option<u32> {
        match &self.work {
            Work::Sampled(sampling) if sampling.is_stored => set.last().copied(),
            _ => None,
        }
    }

    /// Words that the operands of a call of `rows` rows take in the arena:
    /// one after the other, each starting at a multiple of 16 bytes.
    pub fn input_words(&self, rows: u32) -> u64 {
        let operands = self.operands.iter();
        operands
            .map(|operand| operand.wide(rows).next_multiple_of(4))
            .sum()
    }

    /// Words of the result of a call of `rows` rows.
    pub fn result_words(&self, rows: u32) -> u64 {
        self.results.iter().fold(0, |before, result| {
            u64::next_multiple_of(before, 4) + result.wide(rows)
        })
    }

    /// The parts of a call's result that a part of its rows gives, for each
    /// result of the call: where in what these rows give, where in the whole,
    /// and how many words.
    pub fn parts(&self, part: Part, rows: u32) -> impl Iterator<Item = (u32, u32, u32)> {
        let mut next = (0, 0);
        self.results.iter().map(move |result| {
            let (at, home) = (aligned(next.0), aligned(next.1));
            let words = result.words(part.rows);
            next = (at + words, home + result.words(rows));
            (at, home + result.per_row * part.first, words)
        })
    }

    /// Words that rows of a call cost one way or the other. Those of two parts
    /// are together those of both: what each part carries again counts nothing.
    ///
    /// Of a program that needs its calls whole the words of both ways count half,
    /// and less the more stages there are: each is one more dispatch a piece, for
    /// copies that are less of the work.
    pub(super) fn weight(&self, rows: u32) -> u64 {
        let is_cut = self.class == OpClass::RowWise;
        let operands = self.operands.iter();
        let carried = operands.filter(|operand| !is_cut || operand.per_row > 0);
        let up: u64 = carried
            .map(|operand| operand.wide(rows).next_multiple_of(4))
            .sum();
        let down = self.result_words(rows);
        match &self.work {
            Work::Fused(shaped) if !is_cut => (up + down).div_ceil(2 * shaped.stages()),
            _ => up.max(down),
        }
    }

    /// How many of a call's last `rows` rows go first if these are cut after
    /// about so many: a multiple of [`GRAIN`], which keeps all operands at
    /// multiples of 16 bytes whatever their width. `None` where they cannot be cut.
    pub(super) fn cut(&self, rows: u32, about: u32) -> Option<u32> {
        let first = (about / GRAIN * GRAIN).max(GRAIN);
        if self.class == OpClass::RowWise {
            return (first < rows).then_some(first);
        }
        if !matches!(self.work, Work::Fused(_)) {
            return None;
        }
        let suits = |rows| self.computes(rows);
        // Where both sides are computed by the same program; one row need not be.
        let near = (first..rows.saturating_sub(GRAIN - 1)).step_by(GRAIN as usize);
        near.take(TRIES)
            .find(|first| suits(*first) && (rows - first > *first || suits(rows - first)))
    }

    /// Whether so many rows of a call are computed as all of them are.
    pub(super) fn computes(&self, rows: u32) -> bool {
        match &self.work {
            _ if self.class == OpClass::RowWise => true,
            Work::Fused(shaped) => rows == shaped.rows() || shaped.of_rows(rows).is_some(),
            Work::Stages(_) | Work::Sampled(_) | Work::Searched(..) => false,
        }
    }

    /// Whether a chain reads a tensor that it names.
    pub(super) fn reads(&self, place: usize) -> bool {
        matches!(&self.work, Work::Fused(shaped) if shaped.reads(place))
    }

    /// Words of a row of a tensor that a chain names; 0 where it has none.
    pub(super) fn resident_row(&self, place: usize) -> u32 {
        match &self.work {
            Work::Fused(shaped) => shaped.resident_row(place),
            Work::Stages(_) | Work::Sampled(_) | Work::Searched(..) => 0,
        }
    }

    /// Rows of a part that is no larger than it must be.
    pub fn least(&self, rows: u32) -> u32 {
        match &self.work {
            Work::Fused(shaped) if shaped.rows() == 1 => rows,
            _ if self.class == OpClass::RowWise => rows.min(GRAIN),
            Work::Fused(_) => rows.min(2 * GRAIN),
            Work::Stages(_) | Work::Sampled(_) | Work::Searched(..) => rows,
        }
    }

    /// Whether no dispatch has more threads than there may be, in a part that is no
    /// larger than it must be.
    pub fn is_countable(&self) -> bool {
        let Work::Fused(shaped) = &self.work else {
            return true;
        };
        let is_countable = |shaped: &Shaped| {
            let mut stages = shaped.work();
            stages.all(|(_, sizes)| u64::from(sizes.threads) <= MOST_THREADS)
        };
        let least = || shaped.of_rows(self.least(shaped.rows()));
        is_countable(shaped) || least().is_some_and(|least| is_countable(&least))
    }

    /// What a call of so many rows counts for in a batch: what is computed row by
    /// row along an axis is one item.
    pub fn items(&self, rows: u32) -> u64 {
        match self.class {
            OpClass::RowWise => rows.into(),
            _ if matches!(self.work, Work::Fused(_)) => 1,
            _ => rows.into(),
        }
    }

    /// Formats of the operands.
    pub fn inputs(&self) -> &[Format] {
        &self.inputs
    }

    /// Format of the scalar, if calls have one.
    pub fn scalar(&self) -> Option<Format> {
        self.scalar
    }

    /// Which rows may be computed together.
    pub fn class(&self) -> OpClass {
        self.class
    }

    /// Addresses of the operands of a call that begins at `at`.
    pub(super) fn addresses(&self, at: u32, rows: u32) -> impl Iterator<Item = u32> {
        self.operands.iter().scan(at, move |next, operand| {
            let address = *next;
            *next += aligned(operand.words(rows));
            Some(address)
        })
    }

    /// The address of one of them.
    pub(super) fn address(&self, operand: usize, at: u32, rows: u32) -> u32 {
        let before = self.operands[..operand].iter();
        before.fold(at, |next, operand| next + aligned(operand.words(rows)))
    }

    /// The same, of rows that are known to fit.
    pub fn words_of(&self, rows: u32) -> u32 {
        u32::try_from(self.result_words(rows)).expect("rows that fit")
    }

    /// The kernels that compute it.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let (stages, fused) = match &self.work {
            Work::Stages(stages) => (&stages[..], &[][..]),
            Work::Fused(shaped) => (&[][..], &shaped.fused.kernels[..]),
            Work::Sampled(_) => (&[][..], &[Kernel::Clip][..]),
            Work::Searched(_, kernels) => (&[][..], &kernels[..]),
        };
        stages.iter().map(|stage| &stage.kernel).chain(fused)
    }
}

/// The kernel of an op. Chosen by op and inner sizes alone, never by how many
/// rows were merged, so that neighbors cannot change a call's result.
fn choose(op: &Op, operands: &[Format], last: Option<&Source>) -> (Kernel, Settings) {
    let width = match op {
        Op::StateSequence { steps, .. } => *steps,
        _ => operands[0].width,
    };
    // The parameter of an op that has one comes last.
    let has_t = operands.last().is_some_and(|t| t.dtype.is_encoded());
    let timing = match last {
        Some(Source::Input(_) | Source::Stage(_)) if has_t => Timing::Row,
        Some(_) | None => Timing::Call,
    };
    let (kernel, mode) = match op {
        Op::Lerp => (Kernel::Lerp, 0),
        Op::Slerp => (Kernel::Slerp, 0),
        Op::Bezier => (Kernel::Bezier, 0),
        Op::StateGradients => (Kernel::StateGradients, 0),
        Op::StateField(field) => (Kernel::StateField(field.clone()), 0),
        Op::StateInterpolate(mode) => (Kernel::StateInterpolate, number(*mode)),
        Op::StateSequence { mode, .. } => (Kernel::StateSequence, number(*mode)),
        Op::StateBezier => (Kernel::StateBezier, 0),
        Op::StateDistance(Measure::Straight) => (Kernel::StateDistance, 0),
        Op::StateDistance(Measure::Geodesic) => (Kernel::StateDistance, 1),
        Op::StateDescend => (Kernel::StateDescend, 0),
    };
    let settings = Settings {
        width,
        timing,
        mode,
    };
    (kernel, settings)
}

/// A mode as kernels know it.
fn number(mode: Mode) -> u32 {
    match mode {
        Mode::Lerp => 0,
        Mode::Slerp => 1,
    }
}

fn wider(a: OpClass, b: OpClass) -> OpClass {
    match (a, b) {
        (OpClass::Whole, _) | (_, OpClass::Whole) => OpClass::Whole,
        (OpClass::SegmentWise, _) | (_, OpClass::SegmentWise) => OpClass::SegmentWise,
        (OpClass::RowWise, OpClass::RowWise) => OpClass::RowWise,
    }
}
