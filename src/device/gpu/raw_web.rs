//! The raw `GPUDevice`, to share with the page's own renderer.

use wasm_bindgen::JsValue;

use super::Gpu;

impl Gpu {
    /// The device as the browser's own object.
    pub fn raw_device(&self) -> JsValue {
        self.device.as_webgpu().map_or(JsValue::UNDEFINED, |raw| {
            AsRef::<JsValue>::as_ref(raw).clone()
        })
    }
}
