//! The allocation check of tensors, in the browser: whether there is memory for a tensor is
//! known only after calls that read the tensor were made. These calls get the error.

use super::Gpu;
use crate::error::Error;

/// The error of a launch that reads tensors and is invalid: there was no memory for one of the
/// tensors. Objects that the launch itself creates are checked by error scopes before.
pub(super) const INVALID: fn(String) -> Error = Error::OutOfMemory;

/// Whether a launch tells which tensors there was no memory for.
pub(super) const IS_LATE: bool = true;

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
