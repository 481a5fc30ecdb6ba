//! The best size of chunks that are cut by rows, in the browser.

/// Bytes of a chunk: a page copies each result twice, on one thread, and one copy waits less for
/// the other where both are small.
pub(super) const BY_ROW: u64 = 1 << 20;
