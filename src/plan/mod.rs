//! HOW a batch is computed: a list of steps that can be printed.
//!
//! Pure: no device, no clock, no policy. A plan holds addresses and counts, never values.

mod assemble;
mod call;
mod chunks;
mod coalesce;
mod copy_runs;
mod cost;
mod fit;
mod form;
pub mod fuse;
mod inputs;
mod insertion;
mod kernel_counts;
mod lowering;
mod merging;
mod phases;
mod print;
mod recipe;
mod schedule;
mod search;
mod shards;
mod slicing;
mod stored;
mod table;

pub use crate::program::{Effort, KINDS, Kind};
pub use assemble::assemble;
pub use call::{Call, NamedTensors, NumbersId, RecipeId, RowSlice, SetId};
pub use chunks::{Chunk, ChunkSize, ChunkSizes, chunks};
pub use fit::{ChunkLimits, assemble_next};
pub use kernel_counts::KernelCounts;
pub use lowering::Structure;
pub use recipe::{Recipe, WATCH};
pub use shards::{PlanSource, ShardedTensor};
pub use table::{MOST_THREADS, OPERANDS, Params, Table, grid, most_threads};

use crate::kernel::{Kernel, Settings};
use crate::tensor::Span;

/// A planned range of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

impl Slot {
    /// The slot of the operands of all calls.
    pub const INPUTS: Slot = Slot(0);
    /// The slot of the results of all calls.
    pub const RESULTS: Slot = Slot(1);

    /// The slot of a resident tensor.
    pub const fn resident(tensor: u32) -> Slot {
        Slot(RESIDENT | tensor)
    }

    /// The number of the resident tensor whose slot this is.
    pub const fn tensor(self) -> Option<u32> {
        if self.0 & RESIDENT == 0 {
            None
        } else {
            Some(self.0 & !RESIDENT)
        }
    }
}

/// The bit that is set in the slots of resident tensors.
const RESIDENT: u32 = 1 << 31;

/// What a device does for one chunk of a batch, in order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Where the result of each call of the chunk lies in [`Slot::RESULTS`], in the order of
    /// the calls.
    pub results: Vec<Span>,
    /// Words of each slot but those of resident tensors, by the slot's number.
    pub slots: Vec<u32>,
}

/// One action of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Copies operands from the arena to the device.
    Upload {
        /// The slot that the operands are copied to.
        slot: Slot,
        /// Words of the slot that are filled.
        words: u32,
        /// Runs of words from the arena to the slot, in rising order of both addresses.
        runs: Vec<CopyRun>,
    },
    /// Runs a kernel once for many calls.
    Dispatch(Dispatch),
    /// Lets later steps overwrite a slot.
    Free {
        /// The slot whose contents nobody reads from here on.
        slot: Slot,
    },
    /// Copies results back to the host.
    Download {
        /// The slot of the results.
        slot: Slot,
        /// Words that are copied.
        words: u32,
    },
}

/// Words that are copied as they lie: from the arena to a slot, or from a chunk's results to
/// a call's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRun {
    /// The word where the source begins.
    pub from: u32,
    /// The word where the copy begins.
    pub to: u32,
    /// Words that are copied.
    pub words: u32,
}

/// One run of a kernel for all calls of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The kernel.
    pub kernel: Kernel,
    /// What the kernel is told besides its operands.
    pub settings: Settings,
    /// The kernel's operands, in order.
    pub operands: Vec<Operand>,
    /// The slot that the kernel writes: a resident tensor's, where calls write a tensor.
    ///
    /// Invariant: never a slot that an operand reads, because WebGPU refuses a buffer that is
    /// bound for reading and writing at once. A stage that works in place reads this slot
    /// all the same, by the output's binding.
    pub output: Slot,
    /// Words in a row of the result.
    pub row_words: u32,
    /// How many calls the dispatch computes.
    pub calls: u32,
    /// One segment a call; calls whose rows lie end to end may share a segment.
    pub segments: Vec<Segment>,
    /// For each segment what follows the address of its result in the segment table, as many
    /// words for each: addresses of operands, the scalar itself, sizes.
    pub entries: Vec<u32>,
}

/// Where a dispatch reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Reads rows in a slot, at the addresses in the entries.
    Rows {
        /// The slot that is read.
        slot: Slot,
        /// Words in a row.
        words: u32,
    },
    /// Reads the scalars in the entries.
    Scalar,
}

/// The rows that a dispatch computes for one call, or for calls whose rows lie end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Rows; threads, where the kernel does not count rows.
    pub rows: u32,
    /// The word where the result begins.
    pub result: u32,
}

impl Plan {
    /// The dispatches among the steps.
    pub fn dispatches(&self) -> impl Iterator<Item = &Dispatch> {
        self.steps.iter().filter_map(|step| match step {
            Step::Dispatch(dispatch) => Some(dispatch),
            Step::Upload { .. } | Step::Free { .. } | Step::Download { .. } => None,
        })
    }

    /// The resident tensors that dispatches read or write.
    pub fn tensors(&self) -> impl Iterator<Item = u32> {
        let slots = self.dispatches().flat_map(|dispatch| {
            let operands = dispatch.operands.iter().map(|operand| match operand {
                Operand::Rows { slot, .. } => *slot,
                Operand::Scalar => Slot::INPUTS,
            });
            operands.chain([dispatch.output])
        });
        slots.filter_map(Slot::tensor)
    }

    /// The runs of the arena that are uploaded.
    pub fn uploads(&self) -> &[CopyRun] {
        match self.steps.first() {
            Some(Step::Upload { runs, .. }) => runs,
            _ => &[],
        }
    }

    /// Words of a slot; 0 for a resident tensor's.
    pub fn words(&self, slot: Slot) -> u32 {
        self.slots.get(slot.0 as usize).copied().unwrap_or(0)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
