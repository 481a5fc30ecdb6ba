//! The default budget of a page, which shares memory with everything that it shows.

use crate::batch::MemoryBudget;

const MIB: u64 = 1 << 20;

/// The memory that a session may use unless its settings say so.
pub(super) fn default_budget(max_side_bytes: u64) -> MemoryBudget {
    // A device that offers no more than WebGPU guarantees is a small one.
    let is_small = max_side_bytes < 256 * MIB;
    MemoryBudget(if is_small { 256 * MIB } else { 512 * MIB })
}

/// Bytes that the operands of a call may have. Operands lie in the memory of WebAssembly,
/// so a call may have a gibibyte, or what the device holds at once if that is more.
pub(super) fn most_room(max_side_bytes: u64) -> u64 {
    max_side_bytes.max(1 << 30)
}
