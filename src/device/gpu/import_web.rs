//! Buffers of the page as tensors.
//!
//! Usages, sizes and map states were checked by TypeScript. A buffer of another device, or one
//! that is destroyed, shows itself when a launch that binds the buffer fails.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::Gpu;
use super::buffer_pool::create;
use super::buffers::{Part, Sharing, TensorBuffer};
use super::stand_in::{StandIn, raw};
use crate::error::Error;
use crate::plan::Slot;
use crate::tensor::{Packing, WORD};

/// Where a tensor lies in a buffer of the page.
#[derive(Clone, Copy, Debug)]
pub struct BufferPart {
    /// Bytes of the buffer in front of the tensor.
    pub offset: u64,
    /// Bytes of the tensor, up to a multiple of 16.
    pub bytes: u64,
    /// How the tensor's floats are packed, if they are packed.
    pub packing: Option<Packing>,
}

impl Gpu {
    /// Makes a place in a `GPUBuffer` a tensor. The buffer is bound where it lies, and never
    /// destroyed here.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] for more bytes than one binding holds.
    pub fn import(
        &mut self,
        tensor: u32,
        buffer: &JsValue,
        place: BufferPart,
    ) -> Result<(), Error> {
        let alignment = u64::from(self.limits.min_storage_buffer_offset_alignment);
        let front = place.offset % alignment;
        let (bytes, limit) = (front + place.bytes, self.max_buffer_bytes());
        if bytes > limit {
            return Err(Error::TooLarge {
                what: "a tensor in a GPUBuffer",
                need: bytes,
                limit,
            });
        }
        let words = u32::try_from(front).expect("less than an alignment") / WORD;
        self.pipelines.forget_bind_groups_of(Slot::resident(tensor));
        let entry = TensorBuffer {
            buffer: self.adopt(buffer, place.offset + place.bytes),
            sharing: Sharing::Imported(Part {
                offset: place.offset - front,
                bytes,
                skipped: place.packing.map_or(words, |packing| packing.floats(words)),
            }),
        };
        self.buffers.put(tensor, entry);
        Ok(())
    }

    /// wgpu's handle of a buffer of the page, which has at least so many bytes.
    fn adopt(&self, buffer: &JsValue, bytes: u64) -> wgpu::Buffer {
        let replay = StandIn {
            creates: "createBuffer",
            list: &Array::of1(buffer),
            method: "pop",
        };
        replay.run(&raw(&self.device), || {
            let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
            create(&self.device, bytes, usage)
        })
    }
}
