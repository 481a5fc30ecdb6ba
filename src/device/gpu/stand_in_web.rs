//! Stands in for a method of the `GPUDevice` while wgpu calls that method.
//!
//! Workaround: wgpu 30 cannot adopt an object that somebody else created. So a function of
//! ours takes the place of the method that creates such objects: to record what wgpu asks for,
//! or to return an object that exists. wgpu's call is synchronous, so no other code of the page
//! ever sees the stand-in.

use js_sys::{Array, Function, Reflect};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = Reflect, js_name = getOwnPropertyDescriptor)]
    fn own_property(device: &JsValue, name: &str) -> JsValue;
    #[wasm_bindgen(js_namespace = Reflect, js_name = deleteProperty)]
    fn delete_property(device: &JsValue, name: &str) -> bool;
    #[wasm_bindgen(js_namespace = Reflect, js_name = defineProperty)]
    fn define_property(device: &JsValue, name: &str, property: &JsValue) -> bool;
}

/// A method of a list in the place of a method of the device.
pub(super) struct StandIn<'a> {
    /// The device's method, which wgpu calls.
    pub(super) creates: &'a str,
    pub(super) list: &'a Array,
    /// The list's method: `push` records what wgpu asks for, `pop` returns what the list holds.
    pub(super) method: &'a str,
}

impl StandIn<'_> {
    /// Runs `make` while the stand-in is in place.
    pub(super) fn run<T>(&self, device: &JsValue, make: impl FnOnce() -> T) -> T {
        // A page may have replaced the device's method: the page's own is put back afterwards.
        let before = own_property(device, self.creates);
        let method: Function = Reflect::get(self.list, &self.method.into())
            .unwrap_or_default()
            .unchecked_into();
        let _ = Reflect::set(device, &self.creates.into(), &method.bind0(self.list));
        let made = make();
        delete_property(device, self.creates);
        if !before.is_undefined() {
            define_property(device, self.creates, &before);
        }
        made
    }
}

/// The device as the browser's own object.
pub(super) fn raw(device: &wgpu::Device) -> JsValue {
    let raw = device.as_webgpu();
    raw.map_or(JsValue::UNDEFINED, |raw| {
        AsRef::<JsValue>::as_ref(raw).clone()
    })
}
