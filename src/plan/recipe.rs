//! How one structure is computed: its graph or chain, compiled once to stages.
//!
//! Free of lengths and addresses; those differ from call to call and are
//! filled in by `assemble`.

use super::fused::Shaped;
use super::sampled;
use crate::error::Error;
use crate::graph::chain::Chain;
use crate::graph::sampling::Sampling;
use crate::graph::{Graph, Measure, Mode, Node, Op, OpClass, Timing};
use crate::kernel::{Kernel, MAX_OPERANDS, Settings};
use crate::tensor::{DType, Format, aligned};

/// How a structure is computed. The default is the recipe of nothing.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    pub(super) work: Work,
    /// Its operands as they lie in the arena: one after the other, each
    /// starting at a multiple of 16 bytes.
    pub(super) operands: Vec<Extent>,
    result: Extent,
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
    /// row, so an address follows from the rows before it.
    pub(super) fn scratch(&self, rows_before: u32) -> u32 {
        rows_before * aligned(self.row_words)
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
            result: Extent::rows(last),
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
            Work::Stages(_) | Work::Sampled(_) => None,
        });
        let shaped = Shaped::new(chain, known);
        Recipe {
            operands: shaped.operands(chain),
            result: shaped.result(),
            // One row at a time is each call's own affair.
            class: match shaped.rows() {
                1 => OpClass::SegmentWise,
                _ => OpClass::RowWise,
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
            result: sampled::result(sampling),
            inputs: vec![times],
            scalar: None,
            // A part of what is stored would have no answer of its own.
            class: match sampling.is_stored {
                true => OpClass::SegmentWise,
                false => OpClass::RowWise,
            },
        }
    }

    /// Rows of every call, where the structure says so.
    pub fn rows(&self) -> Option<u32> {
        match &self.work {
            Work::Fused(shaped) => Some(shaped.rows()),
            Work::Stages(_) | Work::Sampled(_) => None,
        }
    }

    /// Which of these a call writes to, where its result stays on the device.
    pub fn target(&self) -> Option<usize> {
        match &self.work {
            Work::Sampled(sampling) if sampling.is_stored => Some(1),
            _ => None,
        }
    }

    /// Tensors on the device that a call names behind its operands.
    pub fn residents(&self) -> u32 {
        match &self.work {
            Work::Fused(shaped) => shaped.residents,
            Work::Sampled(sampling) => sampling.tensors(),
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
        self.result.wide(rows)
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
            Work::Fused(_) | Work::Sampled(_) | Work::Stages(_) => up.max(down),
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
    pub(super) fn words_of(&self, rows: u32) -> u32 {
        self.result.words(rows)
    }

    /// The kernels that compute it.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let (stages, fused) = match &self.work {
            Work::Stages(stages) => (&stages[..], &[][..]),
            Work::Fused(shaped) => (&[][..], &shaped.fused.kernels[..]),
            Work::Sampled(_) => (&[][..], &[Kernel::Clip][..]),
        };
        stages.iter().map(|stage| &stage.kernel).chain(fused)
    }

    /// Words of a row of the result.
    pub fn result_row_words(&self) -> u32 {
        self.result.per_row
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
