//! The raw `GPUDevice` and its buffers, to share with the page's own renderer.

use wasm_bindgen::prelude::*;

use super::Gpu;
use crate::error::Error;

#[wasm_bindgen]
extern "C" {
    /// What this needs of a `GPUQueue`.
    type Writer;
    #[wasm_bindgen(method, js_name = writeBuffer)]
    fn write_buffer(this: &Writer, buffer: &JsValue, offset: u32, data: &js_sys::Uint32Array);
}

impl Gpu {
    /// Copies a tensor's data to the device, past the memory of WebAssembly.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] where no buffer holds it.
    pub fn fill_raw(&mut self, tensor: u32, data: &js_sys::Uint32Array) -> Result<(), Error> {
        self.keep(tensor, data.length().into())?;
        if let Some(queue) = self.queue.as_webgpu() {
            let queue: &JsValue = queue.as_ref();
            let buffer = self.raw_buffer(tensor);
            queue
                .unchecked_ref::<Writer>()
                .write_buffer(&buffer, 0, data);
        }
        Ok(())
    }

    /// The `GPUBuffer` of a tensor, or undefined where there is none.
    pub fn raw_buffer(&self, tensor: u32) -> JsValue {
        let buffer = self.memory.tensor(tensor).and_then(wgpu::Buffer::as_webgpu);
        buffer.map_or(JsValue::UNDEFINED, |raw| {
            AsRef::<JsValue>::as_ref(&raw).clone()
        })
    }

    /// The device as the browser's own object.
    pub fn raw_device(&self) -> JsValue {
        self.device.as_webgpu().map_or(JsValue::UNDEFINED, |raw| {
            AsRef::<JsValue>::as_ref(raw).clone()
        })
    }
}
