//! The default budget of a native program, which may take more memory than a page.

use crate::batch::MemoryBudget;

/// The memory that a session may use unless its settings say so.
pub(super) fn default_budget(_max_side_bytes: u64) -> MemoryBudget {
    MemoryBudget(2 << 30)
}

/// Bytes that the operands of a call may have: addresses are 32-bit numbers of words.
pub(super) fn most_room(_max_side_bytes: u64) -> u64 {
    4 * u32::MAX as u64
}
