//! Buffers of tensors for other users of the device, natively.

use super::Gpu;

impl Gpu {
    /// The buffer of a tensor, if it has one. From now on the buffer is never used for another
    /// tensor, not even after this tensor is gone.
    pub fn show_buffer(&mut self, tensor: u32) -> Option<wgpu::Buffer> {
        let tensors = &mut self.buffers.tensors;
        let entry = tensors.get_mut(tensor as usize)?.as_mut()?;
        Some(entry.export().clone())
    }
}
