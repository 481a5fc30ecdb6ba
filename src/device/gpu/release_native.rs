//! When the buffers of tensors that are gone are freed, natively.

/// Whether the thread that lets go of a tensor frees its buffer. The session's worker does:
/// whoever waits for the GPU holds a lock that freeing needs, and a thread that may end must
/// not enter a GPU driver.
pub(super) const IS_AT_ONCE: bool = false;
