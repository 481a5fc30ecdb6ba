//! A mapped range in the browser: an `ArrayBuffer` outside of WebAssembly memory.
//! Dereferencing wgpu's view would copy all of it.

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
        let at = u32::try_from(stamps.at).ok()?;
        let words =
            js_sys::Uint32Array::new_with_byte_offset_and_length(&self.array_buffer(), at, 4);
        Some(stamps.in_ns([0, 1, 2, 3].map(|k| words.get_index(k))))
    }

    /// One word of the results.
    pub(crate) fn word(&self, at: u32) -> u32 {
        let words =
            js_sys::Uint32Array::new_with_byte_offset_and_length(&self.array_buffer(), at * 4, 1);
        words.get_index(0)
    }

    /// Whether the range is gone: a page that destroys the device detaches all ranges at once.
    pub(crate) fn is_detached(&self) -> bool {
        self.array_buffer().byte_length() == 0
    }

    /// The mapped range; detached when this value is dropped.
    pub fn array_buffer(&self) -> js_sys::ArrayBuffer {
        self.view.as_uint8array().buffer()
    }
}
