//! The memory budget: how many items memory holds.
//!
//! Numbers only: the caller knows whose memory it is, and what an item is.

/// Memory that may be used, in bytes. A fifth of it is kept for what no plan counts:
/// tables, rounding, and buffers that are still to be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget(pub u64);

impl MemoryBudget {
    /// Bytes for live data: 80 % of the budget.
    pub fn live(self) -> u64 {
        self.0 - self.0.div_ceil(5)
    }

    /// How many items fit beside a model: ⌊(0.8 · budget − model) / item⌋, at least 1 and
    /// at most `most`. Items without bytes always fit.
    pub fn optimal_batch_size(self, model_bytes: u64, bytes_per_item: u64, most: u64) -> u64 {
        let room = self.live().saturating_sub(model_bytes);
        let fitting = room.checked_div(bytes_per_item).unwrap_or(most);
        fitting.clamp(1, most.max(1))
    }
}
