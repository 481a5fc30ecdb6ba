//! Whether there is memory for tensors, in the browser: nobody waits to hear of it when
//! one is made, for its calls are made by then. They are told.

use super::Gpu;
use crate::error::Error;

/// What a launch that reads tensors fails of if it is invalid: there was no memory for
/// one of them. What a launch makes itself has scopes, and is nothing that is invalid.
pub(super) const INVALID: fn(String) -> Error = Error::OutOfMemory;

impl Gpu {
    /// Makes and fills a tensor by `make`.
    pub(super) fn make(
        &mut self,
        _: u32,
        make: impl FnOnce(&mut Gpu) -> Result<(), Error>,
    ) -> Result<(), Error> {
        make(self)
    }
}
