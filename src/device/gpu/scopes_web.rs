//! Error scopes around what a launch creates, in the browser: on the raw device,
//! because wgpu's own bring 6 KB gzip of error texts along.
//!
//! Only a launch that creates something can fail by itself, so a warm one has no
//! scopes. Errors outside of scopes are somebody else's: pages share the device.

use std::future::Future;

use js_sys::{Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::poll::Poller;
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

    /// What this needs of a `GPUBuffer`.
    type MappedBuffer;
    #[wasm_bindgen(method, js_name = mapAsync)]
    fn map_async(this: &MappedBuffer, mode: u32) -> Promise;
}

/// `GPUMapMode.READ`.
const READ: u32 = 1;

/// Open scopes. Invariant: closed before anything else opens scopes.
pub(super) struct Scopes {
    device: wgpu::Device,
    scoped: ScopedDevice,
}

impl Scopes {
    pub(super) fn open(device: &wgpu::Device) -> Self {
        let scopes = Self::of(device);
        scopes.scoped.push_error_scope("validation");
        scopes.scoped.push_error_scope("out-of-memory");
        scopes
    }

    /// None are open yet.
    fn of(device: &wgpu::Device) -> Self {
        let raw = device
            .as_webgpu()
            .map(|raw| AsRef::<JsValue>::as_ref(raw).clone());
        let scoped: ScopedDevice = raw.unwrap_or_default().unchecked_into();
        let device = device.clone();
        Scopes { device, scoped }
    }

    /// Closes them at once; what they caught comes later. `invalid` makes the
    /// error of a validation that failed.
    pub(super) fn close(
        self,
        invalid: fn(String) -> Error,
    ) -> impl Future<Output = Result<(), Error>> + 'static {
        let [memory, validation] = self.pop();
        async move {
            let error = match caught(memory).await {
                Some(message) => Error::OutOfMemory(message),
                None => match caught(validation).await {
                    Some(message) => invalid(message),
                    None => return Ok(()),
                },
            };
            Err(self.judge(error).await)
        }
    }

    async fn judge(&self, error: Error) -> Error {
        let (_probe, mapped) = self.probe();
        match mapped.await {
            Ok(_) => error,
            Err(_) => Error::DeviceLost("nothing on it is valid".into()),
        }
    }

    /// Listened to at once: after a loss both reject, and nobody may get to await them.
    fn pop(&self) -> [JsFuture; 2] {
        [(); 2].map(|()| JsFuture::from(self.scoped.pop_error_scope()))
    }

    /// Rejects if the device is lost. Firefox tells of that up to 100 ms late, and until
    /// then of errors: everything is invalid, also what cannot be. A device without
    /// memory for four bytes is as good as lost.
    fn probe(&self) -> (Probe, JsFuture) {
        let scopes = Scopes::open(&self.device);
        let probe = Probe(self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 4,
            usage: wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        }));
        let raw = probe
            .0
            .as_webgpu()
            .map(|raw| AsRef::<JsValue>::as_ref(raw).clone());
        let raw: MappedBuffer = raw.unwrap_or_default().unchecked_into();
        let mapped = raw.map_async(READ);
        scopes.pop(); // What this causes is not the page's to hear of.
        (probe, JsFuture::from(mapped))
    }
}

/// A buffer that is destroyed whether or not anybody waits for its map to the end.
struct Probe(wgpu::Buffer);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.destroy();
    }
}

/// The message of an error.
async fn caught(scope: JsFuture) -> Option<String> {
    // A lost device rejects: its loss is seen elsewhere.
    let error = scope.await.unwrap_or_default();
    if error.is_null() || error.is_undefined() {
        return None;
    }
    Some(message(&error))
}

pub(super) fn message(error: &JsValue) -> String {
    let message = Reflect::get(error, &"message".into()).unwrap_or_default();
    message.as_string().unwrap_or_default()
}

/// This error, unless it is the device that is lost.
pub(super) async fn judge(poller: &Poller, error: Error) -> Error {
    judge_on(poller.device(), error).await
}

/// The same for who has the device alone.
pub(super) async fn judge_on(device: &wgpu::Device, error: Error) -> Error {
    Scopes::of(device).judge(error).await
}
