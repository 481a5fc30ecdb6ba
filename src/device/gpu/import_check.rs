//! Finds out which imported buffers made a launch fail: WebGPU tells neither whether a buffer
//! is destroyed nor of which device it is, and refuses a submission as a whole.

use super::Gpu;
use super::buffer_pool::create;
use super::device_errors::DeviceErrors;
use super::error_scopes::ErrorScopes;
use crate::error::Error;
use crate::plan::Slot;

/// The imported buffers of a launch.
pub(super) struct ImportCheck {
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: DeviceErrors,
    /// Each with the number of its tensor.
    buffers: Vec<(u32, wgpu::Buffer)>,
}

impl Gpu {
    /// The check of a launch that names these imported tensors.
    pub(super) fn import_check(&self, imported: Vec<u32>) -> ImportCheck {
        let buffer = |tensor| {
            let slot = Slot::resident(tensor);
            (tensor, self.buffers.buffer(slot).clone())
        };
        ImportCheck {
            device: self.device.clone(),
            queue: self.queue.clone(),
            errors: self.errors.clone(),
            buffers: imported.into_iter().map(buffer).collect(),
        }
    }
}

impl ImportCheck {
    /// Notes which of the buffers are unusable; `true` if one is. Otherwise the launch failed over
    /// something else.
    pub(super) async fn note_unusable(self) -> bool {
        let mut has_some = false;
        for (tensor, buffer) in &self.buffers {
            let copied = self.copy_from(buffer).await;
            // Behind the await: another launch may be settled meanwhile, and reads the notes.
            self.errors.note_usable(*tensor);
            if matches!(copied, Err(Error::InvalidInput(_))) {
                self.errors.note_unusable(*tensor);
                has_some = true;
            }
        }
        has_some
    }

    /// Submits a copy from a buffer, which fails as a launch that binds the buffer does.
    fn copy_from(&self, buffer: &wgpu::Buffer) -> impl Future<Output = Result<(), Error>> + use<> {
        let scopes = ErrorScopes::open(&self.device);
        let target = create(&self.device, 4, wgpu::BufferUsages::COPY_DST);
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None });
        encoder.copy_buffer_to_buffer(buffer, 0, &target, 0, 4);
        self.queue.submit([encoder.finish()]);
        target.destroy();
        scopes.close(Error::InvalidInput)
    }
}
