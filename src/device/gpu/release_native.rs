//! When the buffers of tensors that are gone are freed, natively.

/// Not by the thread that lets go of a tensor: whoever waits for the GPU holds a lock that
/// freeing needs, and a thread that may end must not enter a GPU driver. The session's worker
/// frees them.
pub(super) const IS_AT_ONCE: bool = false;
