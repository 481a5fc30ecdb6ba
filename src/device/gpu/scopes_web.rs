//! Error scopes around what a launch creates, in the browser: on the raw device,
//! because wgpu's own bring 6 KB gzip of error texts along.
//!
//! Only a launch that creates something can fail by itself, so a warm one has no
//! scopes. Errors outside of scopes are somebody else's: pages share the device.

use std::future::Future;

use js_sys::{Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::error::Error;

#[wasm_bindgen]
extern "C" {
    /// What scopes need of a `GPUDevice`.
    #[derive(Clone)]
    type ScopedDevice;
    #[wasm_bindgen(method, js_name = pushErrorScope)]
    fn push_error_scope(this: &ScopedDevice, filter: &str);
    #[wasm_bindgen(method, js_name = popErrorScope)]
    fn pop_error_scope(this: &ScopedDevice) -> Promise;
}

/// Open scopes. Invariant: closed before anything else opens scopes.
pub(super) struct Scopes {
    device: ScopedDevice,
}

impl Scopes {
    pub(super) fn open(device: &wgpu::Device) -> Self {
        let raw = device
            .as_webgpu()
            .map(|raw| AsRef::<JsValue>::as_ref(raw).clone());
        let device: ScopedDevice = raw.unwrap_or_default().unchecked_into();
        device.push_error_scope("validation");
        device.push_error_scope("out-of-memory");
        Scopes { device }
    }

    /// Closes them at once; what they caught comes later. `invalid` makes the
    /// error of a validation that failed.
    pub(super) fn close(
        self,
        invalid: fn(String) -> Error,
    ) -> impl Future<Output = Result<(), Error>> + 'static {
        // Listened to at once: after a loss both reject, and nobody may get to await them.
        let memory = JsFuture::from(self.device.pop_error_scope());
        let validation = JsFuture::from(self.device.pop_error_scope());
        async move {
            caught(memory, Error::OutOfMemory).await?;
            caught(validation, invalid).await
        }
    }
}

async fn caught(scope: JsFuture, make: fn(String) -> Error) -> Result<(), Error> {
    // A lost device rejects: its loss is seen elsewhere.
    let error = scope.await.unwrap_or_default();
    if error.is_null() || error.is_undefined() {
        return Ok(());
    }
    let message = Reflect::get(&error, &"message".into()).unwrap_or_default();
    Err(make(message.as_string().unwrap_or_default()))
}
