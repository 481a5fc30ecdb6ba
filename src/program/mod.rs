//! What is computed: programs of stages, which hold no numbers.
//!
//! Calls of equal programs merge into one dispatch for each stage, whatever the shapes of the
//! calls: every count, stride, offset and constant is in [`Sizes`] or comes with the call.
//! Stages that differ only in what they read and write share a pipeline. How programs come
//! about, how they are laid out for a batch and what text their kernels have is not said
//! here.

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
pub(crate) use effort::{FUNCTION, operations, terms};
pub(crate) use formula::Number;
pub use layout::Layout;
pub use named::{GEODESIC, Named, Settings};
pub use row_op::{Formats, RowOp};
pub use stage::{Access, BufferId, Load, MAX_OPERANDS, RESULT, Scalar, Source, Stage, Target};
pub use tiling::{Products, SMALL_TILE, TILE, Tiles, tiles};

/// What calls compute, as stages in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    /// The stages.
    pub stages: Vec<Stage>,
    /// The buffers of the results, in order.
    ///
    /// Invariant: no stage reads the buffer of a result, so that all results of a batch can
    /// share one device buffer.
    pub outputs: Vec<BufferId>,
    /// How many buffers the stages write.
    pub buffers: u32,
}

impl Program {
    /// The program of one stage, with the stage's buffer as the only result, if the stage
    /// writes a buffer.
    pub(crate) fn of(stage: Stage) -> Program {
        let outputs: Vec<BufferId> = stage.buffer().into_iter().collect();
        Program {
            buffers: u32::from(!outputs.is_empty()),
            stages: vec![stage],
            outputs,
        }
    }
}

/// The numbers that one shape of operands brings to a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The numbers of each stage.
    pub stages: Vec<StageSizes>,
    /// Words of each buffer.
    pub buffers: Vec<u32>,
}

/// The numbers of one stage for one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageSizes {
    /// Threads of a call: one for four elements of a map, one or [`LANES`] for a row; of a
    /// named kernel, threads or rows of each row of the call. A count that 32 bits do not hold
    /// is `u32::MAX`, which is more than [`MOST_THREADS`](crate::plan::MOST_THREADS).
    pub threads: u32,
    /// Elements that the stage gives; 0 of a named kernel and of a search.
    pub elements: u32,
    /// For each load, how many words behind the start of its source the load begins.
    pub offsets: Vec<u32>,
    /// How many words behind the start of the buffer the result begins.
    pub result: u32,
    /// The words of the call's entry behind the addresses, in the order that [`Layout`] says.
    pub words: Vec<u32>,
}
