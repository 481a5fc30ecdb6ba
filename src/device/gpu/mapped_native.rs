//! A mapped range natively: a slice of host-visible memory.

use super::meter::Stamps;
use super::reads::Staged;

/// Results of a batch, mapped until dropped.
#[derive(Debug)]
pub struct Mapped {
    // Dropped before the buffer that it is a view of goes back to the ring.
    view: wgpu::BufferView,
    _staged: Staged,
    stamps: Option<Stamps>,
}

impl Mapped {
    /// `None` where the platform has no memory for the range.
    pub(super) fn new(staged: Staged, bytes: u64, stamps: Option<Stamps>) -> Option<Self> {
        let view = staged.buffer().get_mapped_range(0..bytes).ok()?;
        Some(Mapped {
            view,
            _staged: staged,
            stamps,
        })
    }

    /// When the kernels began and ended, if that was measured.
    pub(crate) fn stamps_ns(&self) -> Option<[u64; 2]> {
        let stamps = self.stamps?;
        let at = usize::try_from(stamps.at).ok()? / 4;
        let words = self.words().get(at..)?.first_chunk()?;
        Some(stamps.in_ns(*words))
    }

    /// The results' words.
    pub fn words(&self) -> &[u32] {
        bytemuck::cast_slice(&self.view)
    }
}
