//! When the buffers of tensors that are gone are freed, in the browser.

/// At once: nobody waits there, and the next launch may never come.
pub(super) const IS_AT_ONCE: bool = true;
