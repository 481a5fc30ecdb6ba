//! An adapter's name in the browser, from the raw device: wgpu leaves it empty.

use js_sys::Reflect;
use wasm_bindgen::prelude::*;

use super::AdapterName;

pub(super) fn adapter(device: &wgpu::Device, _adapter: &wgpu::Adapter) -> AdapterName {
    let of = |object: &JsValue, name: &str| Reflect::get(object, &name.into()).unwrap_or_default();
    let raw = device.as_webgpu();
    let raw = raw.map_or(JsValue::UNDEFINED, |raw| {
        AsRef::<JsValue>::as_ref(raw).clone()
    });
    let info = of(&raw, "adapterInfo");
    let field = |name: &str| of(&info, name);
    let text = |name: &str| field(name).as_string().unwrap_or_default();
    // Browsers fill in what they are willing to tell.
    let names = [
        text("vendor"),
        text("architecture"),
        text("device"),
        text("description"),
    ];
    let told: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    AdapterName {
        adapter: told.join(" "),
        driver: text("architecture"),
        software: field("isFallbackAdapter").is_truthy(),
    }
}
