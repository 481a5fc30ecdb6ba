//! A mapped range natively: a slice of host-visible memory.

use super::launch_timer::Timestamps;
use super::read_back::Staged;

/// Results of a launch, mapped until dropped.
#[derive(Debug)]
pub struct Mapped {
    // Fields drop in this order: the view goes before its buffer returns to the ring.
    view: wgpu::BufferView,
    _staged: Staged,
    stamps: Option<Timestamps>,
}

impl Mapped {
    /// `None` where the platform has no memory for the range.
    pub(super) fn new(staged: Staged, bytes: u64, stamps: Option<Timestamps>) -> Option<Self> {
        let view = staged.buffer().get_mapped_range(0..bytes).ok()?;
        Some(Mapped {
            view,
            _staged: staged,
            stamps,
        })
    }

    /// When the kernels began and ended, in nanoseconds of the device's clock, if measured.
    pub(crate) fn stamps_ns(&self) -> Option<[u64; 2]> {
        let stamps = self.stamps?;
        let at = usize::try_from(stamps.at).ok()? / 4;
        let words = self.words().get(at..)?.first_chunk()?;
        Some(stamps.in_ns(*words))
    }

    /// One word of the results.
    pub(crate) fn word(&self, at: u32) -> u32 {
        self.words()[at as usize]
    }

    /// Never: memory stays mapped until this value is dropped.
    pub(crate) fn is_detached(&self) -> bool {
        false
    }

    /// The results' words.
    pub fn words(&self) -> &[u32] {
        bytemuck::cast_slice(&self.view)
    }
}
