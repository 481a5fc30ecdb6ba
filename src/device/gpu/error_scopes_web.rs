//! Error scopes around the objects that a launch creates, in the browser: on the `GPUDevice`
//! itself, because wgpu's scopes add 6 KB gzip of error texts to the package.
//!
//! A launch that creates nothing has nothing that could be invalid, and opens no scopes.
//! Errors outside of scopes belong to other users of the device, the page among them.

use std::future::{Future, Ready, ready};
use std::pin::Pin;

use js_sys::{Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::buffer_pool::create;
use super::poll::Poller;
use crate::error::Error;

#[wasm_bindgen]
extern "C" {
    /// The methods of a `GPUDevice` that scopes use.
    #[derive(Clone)]
    type ScopedDevice;
    #[wasm_bindgen(method, js_name = pushErrorScope)]
    fn push_error_scope(this: &ScopedDevice, filter: &str);
    #[wasm_bindgen(method, js_name = popErrorScope)]
    fn pop_error_scope(this: &ScopedDevice) -> Promise;

    /// The method of a `GPUBuffer` that is used here.
    type MappedBuffer;
    #[wasm_bindgen(method, js_name = mapAsync)]
    fn map_async(this: &MappedBuffer, mode: u32) -> Promise;
}

/// `GPUMapMode.READ`.
const READ: u32 = 1;

/// Open scopes. Invariant: they are closed before anything else opens scopes.
pub(super) struct ErrorScopes {
    device: wgpu::Device,
    scoped: ScopedDevice,
}

impl ErrorScopes {
    pub(super) fn open(device: &wgpu::Device) -> Self {
        let scopes = Self::of(device);
        scopes.scoped.push_error_scope("validation");
        scopes.scoped.push_error_scope("out-of-memory");
        scopes
    }

    /// The device's stack of scopes, none of them opened here.
    fn of(device: &wgpu::Device) -> Self {
        let raw = device
            .as_webgpu()
            .map(|raw| AsRef::<JsValue>::as_ref(raw).clone());
        let scoped: ScopedDevice = raw.unwrap_or_default().unchecked_into();
        let device = device.clone();
        ErrorScopes { device, scoped }
    }

    /// Closes the scopes at once; the future resolves to what they caught. `invalid` makes
    /// the error for a failed validation.
    pub(super) fn close(
        self,
        invalid: fn(String) -> Error,
    ) -> Pin<Box<dyn Future<Output = Result<(), Error>>>> {
        let [memory, validation] = self.pop();
        // In a box: the future is a part of several others, and one copy of its code does.
        Box::pin(async move {
            let error = match caught(memory).await {
                Some(message) => Error::OutOfMemory(message),
                None => match caught(validation).await {
                    Some(message) => invalid(message),
                    None => return Ok(()),
                },
            };
            Err(self.judge(error).await)
        })
    }

    async fn judge(&self, error: Error) -> Error {
        let (_probe, mapped) = self.probe();
        match mapped.await {
            Ok(_) => error,
            Err(_) => Error::DeviceLost("nothing on it is valid".into()),
        }
    }

    /// The promises get a listener at once: after a loss both reject, and an awaiting future
    /// may be dropped before.
    fn pop(&self) -> [JsFuture; 2] {
        [(); 2].map(|()| JsFuture::from(self.scoped.pop_error_scope()))
    }

    /// A map that is rejected if the device is lost. Firefox reports a loss up to 100 ms late,
    /// and until then reports every object as invalid. A device without memory for four bytes
    /// counts as lost too.
    fn probe(&self) -> (Probe, JsFuture) {
        let scopes = ErrorScopes::open(&self.device);
        let probe = Probe(create(&self.device, 4, wgpu::BufferUsages::MAP_READ));
        let raw = probe
            .0
            .as_webgpu()
            .map(|raw| AsRef::<JsValue>::as_ref(raw).clone());
        let raw: MappedBuffer = raw.unwrap_or_default().unchecked_into();
        let mapped = raw.map_async(READ);
        scopes.pop(); // Errors of this probe are not reported to the page.
        (probe, JsFuture::from(mapped))
    }
}

/// A buffer that is destroyed when it is dropped, its map awaited or not.
struct Probe(wgpu::Buffer);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.destroy();
    }
}

/// The message of an error.
async fn caught(scope: JsFuture) -> Option<String> {
    // A lost device rejects the promise; the loss is reported by `device_errors`.
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

/// `error`, or `DeviceLost` where the device is lost.
pub(super) async fn judge(poller: &Poller, error: Error) -> Error {
    judge_on(poller.device(), error).await
}

/// `error`, or `DeviceLost` where this device is lost, for callers without a poller.
pub(super) async fn judge_on(device: &wgpu::Device, error: Error) -> Error {
    ErrorScopes::of(device).judge(error).await
}

/// What scopes around a launch caught: closing them has told a lost device from an invalid object.
pub(super) fn judge_caught(_: &Poller, caught: Result<(), Error>) -> Ready<Result<(), Error>> {
    ready(caught)
}
