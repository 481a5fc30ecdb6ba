//! Uncaptured errors in the browser, from the raw device: wgpu's own handler
//! panics on an internal error there.

use js_sys::Reflect;
use wasm_bindgen::prelude::*;

use super::Faults;
use crate::error::Error;

#[wasm_bindgen]
extern "C" {
    /// What the listener needs of a `GPUDevice`.
    type EventSource;
    #[wasm_bindgen(method, js_name = addEventListener)]
    fn add_event_listener(this: &EventSource, name: &str, listener: &JsValue);
}

pub(super) fn errors(device: &wgpu::Device, faults: &Faults) {
    let Some(raw) = device.as_webgpu() else {
        return;
    };
    let faults = faults.clone();
    let listener =
        Closure::<dyn Fn(JsValue)>::new(move |event: JsValue| faults.note(translate(&event)));
    // The device keeps its listener for as long as the device itself lives.
    let listener = listener.into_js_value();
    let source: &EventSource = AsRef::<JsValue>::as_ref(raw).unchecked_ref();
    source.add_event_listener("uncapturederror", &listener);
}

fn translate(event: &JsValue) -> Error {
    let field =
        |object: &JsValue, name: &str| Reflect::get(object, &name.into()).unwrap_or_default();
    let error = field(event, "error");
    let message = field(&error, "message").as_string().unwrap_or_default();
    let kind = field(&field(&error, "constructor"), "name")
        .as_string()
        .unwrap_or_default();
    match kind.as_str() {
        "GPUOutOfMemoryError" => Error::OutOfMemory(message),
        _ => Error::Fatal(message),
    }
}
