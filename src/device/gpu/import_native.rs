//! Buffers of other users of the device as tensors, natively.

use super::buffers::{Part, Sharing, TensorBuffer};
use super::error_scopes::ErrorScopes;
use super::{Gpu, bytes_of};
use crate::error::Error;
use crate::plan::Slot;
use crate::tensor::aligned;

/// The usages that an imported buffer must have: kernels bind it, and it is copied from.
const USAGES: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC);

impl Gpu {
    /// Makes the first words of a buffer of the program's a tensor. The buffer is bound where
    /// it lies, and never destroyed here.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a buffer of other usages, of another device or
    /// too short, [`Error::TooLarge`] for one that cannot be bound whole.
    pub fn import(&mut self, tensor: u32, buffer: &wgpu::Buffer, words: u32) -> Result<(), Error> {
        // Kernels read four words at a time.
        let need = bytes_of(aligned(words.max(1)));
        if !buffer.usage().contains(USAGES) {
            return Err(refuse(
                "the buffer needs the usages STORAGE and COPY_SRC; make it with both",
            ));
        }
        if buffer.size() < need {
            return Err(Error::InvalidInput(format!(
                "import_buffer: {words} floats need a buffer of {need} bytes, a multiple of 16, and this one has {}",
                buffer.size()
            )));
        }
        let limit = self.max_buffer_bytes();
        if buffer.size() > limit {
            return Err(Error::TooLarge {
                what: "an imported buffer, which is bound whole,",
                need: buffer.size(),
                limit,
            });
        }
        self.try_to_bind(buffer)?;
        self.pipelines.forget_bind_groups_of(Slot::resident(tensor));
        let entry = TensorBuffer {
            buffer: buffer.clone(),
            sharing: Sharing::Imported(Part {
                offset: 0,
                bytes: buffer.size(),
                skipped: 0,
            }),
        };
        self.buffers.put(tensor, entry);
        Ok(())
    }

    /// Refuses a buffer of another device, or one that is destroyed.
    fn try_to_bind(&self, buffer: &wgpu::Buffer) -> Result<(), Error> {
        self.errors.check()?;
        let scopes = ErrorScopes::open(&self.device);
        let layout = self
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: None,
                entries: &[wgpu::BindGroupLayoutEntry {
                    binding: 0,
                    visibility: wgpu::ShaderStages::COMPUTE,
                    ty: wgpu::BindingType::Buffer {
                        ty: wgpu::BufferBindingType::Storage { read_only: true },
                        has_dynamic_offset: false,
                        min_binding_size: None,
                    },
                    count: None,
                }],
            });
        let _ = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &[wgpu::BindGroupEntry {
                binding: 0,
                resource: buffer.as_entire_binding(),
            }],
        });
        // Natively the future of closed scopes is ready at once.
        pollster::block_on(scopes.close(Error::InvalidInput)).map_err(|error| match error {
            Error::InvalidInput(why) => refuse(&format!(
                "the buffer cannot be bound, it is destroyed or of another device than `wgpu_device`'s: {why}"
            )),
            other => other,
        })
    }
}

fn refuse(problem: &str) -> Error {
    Error::InvalidInput(format!("import_buffer: {problem}"))
}
