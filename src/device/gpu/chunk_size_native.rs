//! The best size of chunks that are cut by rows, natively.

/// Bytes of a chunk: all cores copy its results, and waking these costs as much as a smaller
/// copy.
pub(super) const BY_ROW: u64 = 16 << 20;
