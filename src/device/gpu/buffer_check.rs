//! Finds out which buffers of tensors made a launch fail: WebGPU tells neither whether a buffer
//! of the program's is destroyed nor of which device it is, tells late whether there was memory
//! for a buffer, and refuses a submission as a whole.

use super::buffer_pool::create;
use super::buffers::TensorBuffer;
use super::device_errors::DeviceErrors;
use super::error_scopes::ErrorScopes;
use super::{Gpu, allocation};
use crate::error::Error;
use crate::plan::Plan;

/// The buffers of a launch that may be at fault.
pub(super) struct BufferCheck {
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: DeviceErrors,
    buffers: Vec<TensorBuffer>,
}

impl Gpu {
    /// The check of a launch of this plan.
    pub(super) fn buffer_check(&self, plan: &Plan) -> BufferCheck {
        let mut buffers: Vec<TensorBuffer> = Vec::new();
        for own in plan
            .tensors()
            .filter_map(|tensor| self.buffers.entry(tensor))
        {
            let is_doubtful = own.is_imported() || allocation::IS_LATE;
            if is_doubtful && !buffers.iter().any(|known| known.buffer == own.buffer) {
                buffers.push(own.clone());
            }
        }
        BufferCheck {
            device: self.device.clone(),
            queue: self.queue.clone(),
            errors: self.errors.clone(),
            buffers,
        }
    }
}

impl BufferCheck {
    /// Notes which of the buffers are unusable; `true` if an imported one is. Otherwise the
    /// launch failed for lack of memory, or over something else.
    pub(super) async fn note_unusable(self) -> bool {
        let mut has_imported = false;
        for own in &self.buffers {
            let copied = self.copy_from(&own.buffer).await;
            // Behind the await: another launch may be settled meanwhile, and reads the notes.
            self.errors.note_usable(&own.buffer);
            if matches!(copied, Err(Error::InvalidInput(_))) {
                self.errors.note_unusable(&own.buffer);
                has_imported |= own.is_imported();
            }
        }
        has_imported
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
