//! Compiles a kernel in the browser, beside the page and what it submits.
//!
//! wgpu has no way to `createComputePipelineAsync`, nor to a pipeline that somebody
//! else made. So another function stands in place of the device's own
//! `createComputePipeline` while wgpu calls it: first one that keeps what wgpu asks
//! for, and later one that has the result. Nothing else runs meanwhile.

use std::pin::Pin;

use js_sys::{Array, Function, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::faults::Faults;
use super::pipelines::{Pipeline, Source};
use super::scopes::{self, Scopes};
use crate::device::Compiled;
use crate::error::Error;

/// A kernel being compiled. Await it, and give what comes out to
/// [`Device::adopt`](crate::device::Device::adopt).
pub type Compile = Pin<Box<dyn Future<Output = Compiled>>>;

#[wasm_bindgen]
extern "C" {
    /// What this needs of a `GPUDevice`.
    type Compiler;
    #[wasm_bindgen(method, js_name = createComputePipelineAsync)]
    fn create_compute_pipeline_async(this: &Compiler, asked: &JsValue) -> Promise;

    #[wasm_bindgen(js_namespace = Reflect, js_name = getOwnPropertyDescriptor)]
    fn own_property(device: &JsValue, name: &str) -> JsValue;
    #[wasm_bindgen(js_namespace = Reflect, js_name = deleteProperty)]
    fn delete_property(device: &JsValue, name: &str) -> bool;
    #[wasm_bindgen(js_namespace = Reflect, js_name = defineProperty)]
    fn define_property(device: &JsValue, name: &str, property: &JsValue) -> bool;
}

/// What wgpu calls.
const CREATE: &str = "createComputePipeline";

pub(super) fn compile(device: &wgpu::Device, faults: &Faults, source: Source) -> Compile {
    let (device, faults) = (device.clone(), faults.clone());
    let raw: Compiler = raw(&device).unchecked_into();
    let scopes = Scopes::open(&device);
    let module = source.module(&device);
    let caught = scopes.close(Error::Shader);
    let asked = Array::new();
    in_place(&raw, (&asked, "push"), || source.pipeline(&device, &module));
    let made = JsFuture::from(raw.create_compute_pipeline_async(&asked.get(0)));
    Box::pin(async move {
        let made = made.await;
        let caught = caught.await;
        let outcome = match (faults.check().and(caught), made) {
            (Err(error), _) => Err(error),
            (Ok(()), Ok(made)) => {
                let made = Array::of1(&made);
                let pipeline = in_place(&raw, (&made, "pop"), || source.pipeline(&device, &module));
                Ok(Some(Pipeline::new(pipeline)))
            }
            (Ok(()), Err(why)) => {
                let error = Error::Shader(scopes::message(&why));
                Err(scopes::judge_on(&device, error).await)
            }
        };
        Compiled {
            kernel: source.kernel,
            outcome,
        }
    })
}

/// Has something made while a list's method is the device's.
fn in_place<T>(device: &JsValue, (list, method): (&Array, &str), make: impl FnOnce() -> T) -> T {
    // Where the page has put one of its own there, it gets it back.
    let before = own_property(device, CREATE);
    let method: Function = Reflect::get(list, &method.into())
        .unwrap_or_default()
        .unchecked_into();
    let _ = Reflect::set(device, &CREATE.into(), &method.bind0(list));
    let made = make();
    delete_property(device, CREATE);
    if !before.is_undefined() {
        define_property(device, CREATE, &before);
    }
    made
}

fn raw(device: &wgpu::Device) -> JsValue {
    let raw = device.as_webgpu();
    raw.map_or(JsValue::UNDEFINED, |raw| {
        AsRef::<JsValue>::as_ref(raw).clone()
    })
}
