//! HOW a batch is done: a printable list of steps.
//!
//! Pure: no device, no clock, no policy. A plan holds addresses and counts,
//! never values.

mod assemble;
mod call;
mod chunks;
mod coalesce;
mod copy_runs;
mod cost;
mod fit;
pub mod fuse;
mod groups;
mod lowering;
mod print;
mod recipe;
mod schedule;
mod search;
mod shards;
mod slicing;
mod table;

pub use crate::program::{Effort, KINDS, Kind};
pub use assemble::assemble;
pub use call::{Call, NumbersId, Part, RecipeId, SetId};
pub use chunks::{Chunk, ChunkSizes, chunks};
pub use fit::{ChunkLimits, assemble_next};
pub use recipe::Recipe;
pub use shards::{Asked, Parted};
pub use table::{MOST_THREADS, Params, Table, grid, most_threads};

use crate::kernel::{Kernel, Settings};
use crate::tensor::Span;

/// A planned range of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

impl Slot {
    /// The operands of all calls.
    pub const INPUTS: Slot = Slot(0);
    /// The results of all calls.
    pub const RESULTS: Slot = Slot(1);
    /// The first of the slots for what lies between.
    pub const SCRATCH: Slot = Slot(2);

    /// The slot of a tensor that stays on the device.
    pub const fn resident(tensor: u32) -> Slot {
        Slot(RESIDENT | tensor)
    }

    /// The tensor, if it is the slot of one.
    pub const fn tensor(self) -> Option<u32> {
        if self.0 & RESIDENT == 0 {
            None
        } else {
            Some(self.0 & !RESIDENT)
        }
    }
}

/// Set in the slots of tensors that stay on the device.
const RESIDENT: u32 = 1 << 31;

/// What a device does for one chunk of a batch, in order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Where the result of each call of the chunk lies in [`Slot::RESULTS`], in
    /// the calls' order.
    pub results: Vec<Span>,
    /// Words of each slot, by its number.
    pub slots: Vec<u32>,
}

/// One thing that a device does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Copies operands from the arena to the device.
    Upload {
        /// Where to.
        slot: Slot,
        /// Words of the slot that are filled.
        words: u32,
        /// What of the arena goes where, in both orders.
        runs: Vec<Run>,
    },
    /// Runs a kernel once for many calls.
    Dispatch(Dispatch),
    /// The slot's contents are needed no more.
    Free {
        /// Which.
        slot: Slot,
    },
    /// Copies results back to the host.
    Download {
        /// Where from.
        slot: Slot,
        /// Words of results.
        words: u32,
    },
}

/// A run of words of the arena, and where it goes in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its address in the arena.
    pub from: u32,
    /// Its word in the slot.
    pub to: u32,
    /// Its words.
    pub words: u32,
}

/// One kernel for all calls of one structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The kernel.
    pub kernel: Kernel,
    /// What it is told besides its operands.
    pub settings: Settings,
    /// Its operands, in order.
    pub operands: Vec<Operand>,
    /// Where results go: a tensor's, for what is stored. Invariant: never a slot that an operand reads,
    /// because WebGPU refuses a buffer bound for reading and writing at once. A
    /// stage that works in place reads it all the same, by the output's binding.
    pub output: Slot,
    /// Words in a row of the result.
    pub row_words: u32,
    /// How many calls it computes.
    pub calls: u32,
    /// The calls; those whose rows lie end to end may be one.
    pub segments: Vec<Segment>,
    /// What follows the result's word in the segments' entries, as many words for each:
    /// where its operands begin, the scalar itself, sizes.
    pub entries: Vec<u32>,
}

/// Where a dispatch reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Rows in a slot, at the addresses that the entries have.
    Rows {
        /// The slot.
        slot: Slot,
        /// Words in a row.
        words: u32,
    },
    /// The scalars that the entries have.
    Scalar,
}

/// One call's share of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Rows of the call; threads, where the kernel is not one of rows.
    pub rows: u32,
    /// Word where its result begins.
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

    /// The tensors that dispatches read or write on the device.
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

    /// What of the arena is uploaded.
    pub fn uploads(&self) -> &[Run] {
        match self.steps.first() {
            Some(Step::Upload { runs, .. }) => runs,
            _ => &[],
        }
    }

    /// Words of a slot.
    pub fn words(&self, slot: Slot) -> u32 {
        self.slots.get(slot.0 as usize).copied().unwrap_or(0)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
