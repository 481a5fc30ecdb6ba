//! The one place where errors become JavaScript values: `{ code, message }`.

use js_sys::{Object, Reflect};
use wasm_bindgen::JsValue;

use crate::error::Error;

/// A plain object; TypeScript makes a `FramebatchError` of it.
pub(super) fn to_js(error: Error) -> JsValue {
    let object = Object::new();
    let entries = [
        ("code", error.code().as_str().into()),
        ("message", JsValue::from(error.to_string())),
    ];
    for (name, value) in entries {
        Reflect::set(&object, &name.into(), &value).expect("a plain object takes properties");
    }
    object.into()
}
