//! Finds out which imported buffers made a launch fail: WebGPU tells neither whether a buffer
//! is destroyed nor of which device it is, and refuses a submission as a whole.

use super::Gpu;
use super::buffer_pool::create;
use super::device_errors::DeviceErrors;
use super::error_scopes::ErrorScopes;
use crate::error::Error;
use crate::plan::Plan;

/// The imported buffers of a launch.
pub(super) struct ImportCheck {
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: DeviceErrors,
    /// Each with the number of its tensor.
    buffers: Vec<(u32, wgpu::Buffer)>,
}

impl Gpu {
    /// The check for a plan; `None` where the plan reads no imported buffer.
    pub(super) fn import_check(&self, plan: &Plan) -> Option<ImportCheck> {
        let mut buffers: Vec<(u32, wgpu::Buffer)> = Vec::new();
        for tensor in plan.tensors() {
            let imported = self
                .buffers
                .entry(tensor)
                .filter(|entry| entry.is_imported());
            if let Some(entry) = imported.filter(|_| !buffers.iter().any(|own| own.0 == tensor)) {
                buffers.push((tensor, entry.buffer.clone()));
            }
        }
        (!buffers.is_empty()).then(|| ImportCheck {
            device: self.device.clone(),
            queue: self.queue.clone(),
            errors: self.errors.clone(),
            buffers,
        })
    }
}

impl ImportCheck {
    /// Notes which of the buffers are unusable: all of them where none is any more, as after a
    /// map that is over.
    pub(super) async fn note_unusable(self) {
        let mut unusable = Vec::new();
        for (tensor, buffer) in &self.buffers {
            if self.copy_from(buffer).await.is_err() {
                unusable.push(*tensor);
            }
        }
        let tensors = || self.buffers.iter().map(|(tensor, _)| *tensor);
        if unusable.is_empty() {
            unusable.extend(tensors());
        }
        self.errors.note_unusable(tensors(), &unusable);
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
