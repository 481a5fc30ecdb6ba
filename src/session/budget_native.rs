//! A program may take more than a page.

use crate::batch::MemoryBudget;

/// What a session may use unless it was told.
pub(super) fn default_budget(_max_side_bytes: u64) -> MemoryBudget {
    MemoryBudget(2 << 30)
}

/// Bytes that the operands of a call may have: addresses are 32-bit numbers of words.
pub(super) fn most_room(_max_side_bytes: u64) -> u64 {
    4 * u32::MAX as u64
}
