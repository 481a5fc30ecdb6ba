//! The loss of a device in the browser, heard on the `GPUDevice`'s own promise: wgpu's
//! callback leaks a function for every device.

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// What this needs of a `GPUDevice`.
    type MortalDevice;
    #[wasm_bindgen(method, getter)]
    fn lost(this: &MortalDevice) -> Loss;

    /// A promise of why the device was lost, which is never rejected.
    type Loss;
    #[wasm_bindgen(method)]
    fn then(this: &Loss, hear: &JsValue);

    /// A `GPUDeviceLostInfo`.
    type LossInfo;
    #[wasm_bindgen(method, getter)]
    fn message(this: &LossInfo) -> String;
}

/// Calls `hear` with the reason once the device is lost.
pub(super) fn on_loss(device: &wgpu::Device, hear: impl Fn(String) + 'static) {
    let raw = device
        .as_webgpu()
        .map(|raw| AsRef::<JsValue>::as_ref(raw).clone());
    let device: MortalDevice = raw.unwrap_or_default().unchecked_into();
    // `once_into_js` frees the closure when the promise calls it.
    let hear = Closure::once_into_js(move |info: LossInfo| hear(info.message()));
    device.lost().then(&hear);
}
