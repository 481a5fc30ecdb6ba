//! How one structure is computed: its graph, compiled once to stages.
//!
//! Free of lengths and addresses; those differ from call to call and are
//! filled in by `assemble`.

use crate::error::Error;
use crate::graph::{Graph, Measure, Mode, Node, Op, OpClass, Timing};
use crate::kernel::{Kernel, MAX_OPERANDS, Settings};
use crate::tensor::{Format, aligned};

/// A structure's stages, in order; the last one gives the result.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub(super) stages: Vec<Stage>,
    pub(super) inputs: Vec<Format>,
    scalar: Option<Format>,
    class: OpClass,
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
        Ok(Recipe {
            stages,
            inputs: graph.inputs().collect(),
            scalar: graph.scalar_format(),
            class,
        })
    }

    /// Words that the operands of a call of `rows` rows take in the arena:
    /// one after the other, each starting at a multiple of 16 bytes.
    pub fn input_words(&self, rows: u32) -> u64 {
        self.inputs
            .iter()
            .map(|format| (u64::from(rows) * u64::from(format.words())).next_multiple_of(4))
            .sum()
    }

    /// Words of the result of a call of `rows` rows.
    pub fn result_words(&self, rows: u32) -> u64 {
        u64::from(rows) * u64::from(self.result_row_words())
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
        self.inputs.iter().scan(at, move |next, format| {
            let address = *next;
            *next += aligned(rows * format.words());
            Some(address)
        })
    }

    /// The address of one of them.
    pub(super) fn address(&self, operand: usize, at: u32, rows: u32) -> u32 {
        let before = self.inputs[..operand].iter();
        before.fold(at, |next, format| next + aligned(rows * format.words()))
    }

    /// Where a row of a stage's result lies while it is not yet the result:
    /// every row-wise intermediate keeps the calls end to end in steps of 16
    /// bytes a row, so an address follows from the rows before it.
    pub(super) fn scratch(&self, stage: usize, rows_before: u32) -> u32 {
        rows_before * aligned(self.stages[stage].row_words)
    }

    /// Words of a row of the result.
    pub fn result_row_words(&self) -> u32 {
        self.stages.last().map_or(0, |stage| stage.row_words)
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
