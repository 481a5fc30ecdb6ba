//! A mapped range in the browser: an `ArrayBuffer` that never enters wasm
//! memory. Dereferencing wgpu's view would copy all of it.

use super::reads::Staged;
use crate::error::Error;

/// Results of a batch, mapped until dropped.
#[derive(Debug)]
pub struct Mapped {
    // Dropped before the buffer that it is a view of goes back to the ring.
    view: wgpu::BufferView,
    _staged: Staged,
}

impl Mapped {
    pub(super) fn new(staged: Staged, bytes: u64) -> Result<Self, Error> {
        let view = staged
            .buffer()
            .get_mapped_range(0..bytes)
            .map_err(|_| Error::DeviceLost("a read-back was not mapped".into()))?;
        Ok(Mapped {
            view,
            _staged: staged,
        })
    }

    /// The mapped range; detached when this value is dropped.
    pub fn array_buffer(&self) -> js_sys::ArrayBuffer {
        self.view.as_uint8array().buffer()
    }
}
