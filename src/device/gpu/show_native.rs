//! The buffers of tensors, for other users of the device. The browser's twin is in
//! `raw_web.rs`.

use super::Gpu;

impl Gpu {
    /// The buffer of a tensor, if it has one. Nothing else lies in it from then on,
    /// also when the tensor is gone.
    pub fn show_buffer(&mut self, tensor: u32) -> Option<wgpu::Buffer> {
        let tensors = &mut self.memory.tensors;
        let kept = tensors.get_mut(tensor as usize)?.as_mut()?;
        kept.is_shown = true;
        Some(kept.buffer.clone())
    }
}
