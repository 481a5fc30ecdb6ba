//! A mapped range natively: a slice of host-visible memory.

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
            .map_err(|error| Error::DeviceLost(format!("a read-back was not mapped: {error}")))?;
        Ok(Mapped {
            view,
            _staged: staged,
        })
    }

    /// The results' words.
    pub fn words(&self) -> &[u32] {
        bytemuck::cast_slice(&self.view)
    }
}
