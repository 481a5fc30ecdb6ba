//! The one place where errors become JavaScript values: `{ code, message }`.
//!
//! The WebAssembly files throw these values; TypeScript makes a `FramebatchError` of each.

use js_sys::{Object, Reflect};
use wasm_bindgen::JsValue;

use super::Error;

/// A plain object of the code's name and the message.
impl From<Error> for JsValue {
    fn from(error: Error) -> JsValue {
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
}
