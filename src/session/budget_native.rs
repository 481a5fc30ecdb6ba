//! A program may take more than a page.

use crate::batch::MemoryBudget;

/// What a session may use unless it was told.
pub(super) fn default_budget(_max_side_bytes: u64) -> MemoryBudget {
    MemoryBudget(2 << 30)
}
