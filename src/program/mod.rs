//! What is computed: programs of stages, without any number in them.
//!
//! Equal programs merge into one dispatch a stage, whatever the shapes of
//! their calls: every count, stride, offset and constant is in [`Sizes`] or
//! comes with the call. Stages that differ only in what they read and write share
//! a pipeline. How programs come about, how they are laid out for a batch and what
//! text their kernels have is not said here.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a stage has few loads, and no shape more than 2^30 elements"
)]

mod body;
mod effort;
mod formula;
mod layout;
mod named;
mod print;
mod row_op;
mod stage;
mod tiling;

pub use body::{
    Attention, Body, Fold, LANES, Map, NARROW, QUERIES, RowResult, RowStep, Rows, STRIP, TALL,
    Tile, Width,
};
pub use effort::{Effort, KINDS, Kind};
pub(crate) use effort::{FUNCTION, terms};
pub(crate) use formula::Number;
pub use layout::Layout;
pub use named::{Named, Settings};
pub use row_op::RowOp;
pub use stage::{Access, BufferId, Load, MAX_OPERANDS, RESULT, Scalar, Source, Stage, Target};
pub use tiling::{Products, SMALL_TILE, TILE, Tiles, tiles};

/// Stages, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    /// The stages.
    pub stages: Vec<Stage>,
    /// Where the results are.
    ///
    /// Invariant: no stage reads them, so that results can share a buffer.
    pub outputs: Vec<BufferId>,
    /// How many buffers the stages write.
    pub buffers: u32,
}

impl Program {
    /// The program of one stage, whose result is its only one unless it stays on the
    /// device.
    pub(crate) fn of(stage: Stage) -> Program {
        let outputs: Vec<BufferId> = stage.buffer().into_iter().collect();
        Program {
            buffers: u32::from(!outputs.is_empty()),
            stages: vec![stage],
            outputs,
        }
    }
}

/// The numbers of one call's program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Those of each stage.
    pub stages: Vec<StageSizes>,
    /// Words of each buffer.
    pub buffers: Vec<u32>,
}

/// The numbers of one stage for one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageSizes {
    /// Threads that the call takes: one for four elements of a map, one or
    /// [`LANES`] for a row. Of a named kernel what a row counts for. As many as there are numbers where it takes more, which
    /// is more than [`MOST_THREADS`](crate::plan::MOST_THREADS).
    pub threads: u32,
    /// For each load, how far behind the start of its source it begins.
    pub offsets: Vec<u32>,
    /// How far behind the start of the buffer the result begins.
    pub result: u32,
    /// The words of the call's entry behind its addresses, see [`Layout`].
    pub words: Vec<u32>,
}
