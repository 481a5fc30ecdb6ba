//! An adapter's name in the browser, from the raw device: wgpu leaves it empty.

use js_sys::Reflect;

use super::AdapterName;

pub(super) fn adapter(device: &wgpu::Device, _adapter: &wgpu::Adapter) -> AdapterName {
    let info = device
        .as_webgpu()
        .map(|raw| Reflect::get(raw.as_ref(), &"adapterInfo".into()));
    let info = info.and_then(Result::ok).unwrap_or_default();
    let field = |name: &str| Reflect::get(&info, &name.into()).unwrap_or_default();
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
