//! The raw `GPUDevice` and its buffers, to share with the page's own renderer.

use wasm_bindgen::prelude::*;

use super::{Gpu, bytes_of, stand_in};
use crate::error::Error;
use crate::tensor::{Packing, WORD};

/// Words that are copied at a time; most tensors are one such portion. A browser clears a buffer
/// that is filled in several writes.
const PORTION: u32 = (4 << 20) / WORD;

#[wasm_bindgen]
extern "C" {
    /// The method of a `GPUQueue` that is used here.
    type Writer;
    #[wasm_bindgen(method, js_name = writeBuffer)]
    fn write_buffer(this: &Writer, buffer: &JsValue, offset: f64, data: &js_sys::Uint32Array);
}

/// Copies words to a mapped buffer.
fn copy(words: &js_sys::Uint32Array, to: &wgpu::Buffer) -> Result<(), wgpu::MapRangeError> {
    let (start, length) = (words.byte_offset(), words.length() * WORD);
    let view = to.get_mapped_range(0..length.into())?;
    let buffer = words.buffer();
    let bytes = js_sys::Uint8Array::new_with_byte_offset_and_length(&buffer, start, length);
    view.as_uint8array().set(&bytes, 0);
    Ok(())
}

impl Gpu {
    /// Copies a tensor's data to the device, past the memory of WebAssembly unless the data is to
    /// be packed: in portions, through mapped buffers where there are some, so that the browser
    /// sends one portion while the next is copied.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] where no buffer holds it, [`Error::InvalidInput`] where
    /// the packing does not.
    pub fn fill_raw(
        &mut self,
        tensor: u32,
        data: &js_sys::Uint32Array,
        to_pack: Option<Packing>,
    ) -> Result<(), Error> {
        let count = data.length();
        let words = to_pack.map_or(count, |to_pack| to_pack.words(count));
        self.keep(tensor, words.into())?;
        let Some(buffer) = self.buffers.tensor(tensor) else {
            return Ok(());
        };
        let mut from = 0;
        let mut filled = 0;
        while from < count {
            let end = count.min(from + PORTION);
            let mut portion = data.subarray(from, end);
            if let Some(to_pack) = to_pack {
                portion = js_sys::Uint32Array::from(&to_pack.pack(&portion.to_vec())?[..]);
            }
            let at = filled;
            filled += bytes_of(portion.length());
            let bytes = bytes_of(portion.length());
            match self
                .uploads
                .write_with(bytes, &|staged| copy(&portion, staged))
            {
                Some(written) => {
                    let mut encoder = self.encoder();
                    written.copy_to(&mut encoder, buffer, at);
                    self.queue.submit([encoder.finish()]);
                    self.uploads.reclaim(written);
                }
                None => {
                    self.write_raw(&raw(self.buffers.tensor(tensor)), at as f64, &portion);
                    let limit = self.max_buffer_bytes();
                    self.uploads.prepare(&self.device, bytes, limit);
                }
            }
            from = end;
        }
        Ok(())
    }

    /// Copies words to a part of a tensor, from word number `at` on, past the memory of
    /// WebAssembly.
    pub fn patch_raw(&mut self, tensor: u32, at: u32, data: &js_sys::Uint32Array) {
        let buffer = raw(self.buffers.tensor(tensor));
        if buffer.is_undefined() {
            return; // The tensor went with its device; the next device gets all of it.
        }
        self.write_raw(&buffer, bytes_of(at) as f64, data);
        self.counters.uploads += 1;
        self.counters.bytes_up += bytes_of(data.length());
    }

    fn write_raw(&self, buffer: &JsValue, offset: f64, data: &js_sys::Uint32Array) {
        if let Some(queue) = self.queue.as_webgpu() {
            let queue: &JsValue = queue.as_ref();
            queue
                .unchecked_ref::<Writer>()
                .write_buffer(buffer, offset, data);
        }
    }

    /// The `GPUBuffer` of a tensor for the page, or undefined where there is none.
    pub fn show_buffer(&mut self, tensor: u32) -> JsValue {
        let tensors = &mut self.buffers.tensors;
        let entry = tensors.get_mut(tensor as usize).and_then(Option::as_mut);
        raw(entry.map(|entry| entry.export()))
    }

    /// The device as the browser's own object.
    pub fn raw_device(&self) -> JsValue {
        stand_in::raw(&self.device)
    }
}

fn raw(buffer: Option<&wgpu::Buffer>) -> JsValue {
    let raw = buffer.and_then(wgpu::Buffer::as_webgpu);
    raw.map_or(JsValue::UNDEFINED, |raw| {
        AsRef::<JsValue>::as_ref(&raw).clone()
    })
}
