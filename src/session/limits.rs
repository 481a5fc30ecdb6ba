//! The limits of a session: what its batches may take of memory, and how much of a batch may
//! be in flight at once.
//!
//! Numbers only: what tensors take, and what a device can hold, comes in as arguments.

use super::budget::default_budget;
use super::in_flight::{Allowance, BYTES_IN_FLIGHT};
use crate::batch::{BatchConfig, MemoryBudget};
use crate::device::DeviceLimits;
use crate::plan::ChunkLimits;

/// How often a batch's bytes lie in memory at once: in the batch that is filled, in those in
/// flight, and in the slots that they are computed in.
pub(super) const COPIES: u64 = 4;

/// How often operands and results of a GPU's chunk are in memory: uploaded, in slots and read
/// back, and so those of the chunks in flight beside it.
const COPIES_ON_GPU: u64 = 6;

/// Bytes that a batch, and each copy of a chunk, may have whatever tensors take, unless the budget
/// is smaller.
const LEAST_BATCH_BYTES: u64 = 1 << 20;

/// What a session may use.
#[derive(Debug)]
pub(super) struct Limits {
    budget: MemoryBudget,
    /// Bytes of a batch where no tensor takes memory.
    batch_bytes: u64,
    /// Chunks in flight at once.
    chunks: usize,
}

impl Limits {
    /// The limits of a session with these settings, whose device holds so many bytes of
    /// operands or results of one batch.
    pub(super) fn new(config: &BatchConfig, max_side_bytes: u64) -> Self {
        let given = config.memory_budget.map(MemoryBudget);
        Limits {
            budget: given.unwrap_or_else(|| default_budget(max_side_bytes)),
            // Operands, results and tables share what one buffer can hold.
            batch_bytes: config.max_batch_bytes.min(max_side_bytes / 4),
            chunks: config.max_pieces_in_flight.unwrap_or(usize::MAX),
        }
    }

    /// The budget of memory.
    pub(super) fn budget(&self) -> MemoryBudget {
        self.budget
    }

    /// Chunks that may be in flight at once, of all batches.
    pub(super) fn chunks(&self) -> usize {
        self.chunks
    }

    /// Bytes that a batch may have where tensors take so many.
    pub(super) fn batch_bytes(&self, tensor_bytes: u64) -> u64 {
        let fitting = |taken| {
            self.budget
                .optimal_batch_size(taken, COPIES, self.batch_bytes)
        };
        let least = fitting(0).min(LEAST_BATCH_BYTES);
        fitting(tensor_bytes).max(least)
    }

    /// What a chunk on a GPU may need, where tensors take so many bytes.
    pub(super) fn gpu_chunk(&self, device: &DeviceLimits, tensor_bytes: u64) -> ChunkLimits {
        let live = self.live(tensor_bytes);
        ChunkLimits {
            slot_bytes: device.max_side_bytes,
            bytes: live - live / 4,
            copies: COPIES_ON_GPU,
            threads: device.max_threads,
        }
    }

    /// What a chunk on a CPU may need, where tensors take so many bytes. The CPU answers
    /// nothing else while it computes a chunk.
    pub(super) fn cpu_chunk(&self, device: &DeviceLimits, tensor_bytes: u64) -> ChunkLimits {
        let live = self.live(tensor_bytes);
        ChunkLimits {
            slot_bytes: device.max_side_bytes,
            bytes: live / COPIES / 2,
            copies: 1,
            threads: device.max_threads,
        }
    }

    /// Live bytes that tensors leave to chunks: enough for chunks worth their launch.
    fn live(&self, tensor_bytes: u64) -> u64 {
        let live = self.budget.live();
        let least = live.min(2 * COPIES * LEAST_BATCH_BYTES);
        live.saturating_sub(tensor_bytes).max(least)
    }

    /// What of a batch may be in flight at once, whose chunks have these limits.
    pub(super) fn allowance(&self, chunk: &ChunkLimits) -> Allowance {
        Allowance {
            bytes: (chunk.bytes / chunk.copies).min(BYTES_IN_FLIGHT),
            chunks: self.chunks,
        }
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/limits.rs"]
mod tests;
