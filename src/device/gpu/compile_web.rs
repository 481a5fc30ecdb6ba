//! Compiles a kernel in the browser without blocking the page or its submissions.
//!
//! Workaround: wgpu 30 has no `createComputePipelineAsync`, and cannot adopt a pipeline that
//! somebody else created. So a function of ours stands in for the device's
//! `createComputePipeline` while wgpu calls it: first one that records the descriptor, and
//! later one that returns the finished pipeline. Both calls are synchronous, so no other code
//! of the page ever sees the stand-in.

use std::pin::Pin;

use js_sys::{Array, Function, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::device_errors::DeviceErrors;
use super::error_scopes::{self, ErrorScopes};
use super::pipelines::{Pipeline, Source};
use crate::device::Compiled;
use crate::error::Error;

/// A kernel that is being compiled. Await it, and give the outcome to
/// [`Device::adopt`](crate::device::Device::adopt).
pub type Compile = Pin<Box<dyn Future<Output = Compiled>>>;

#[wasm_bindgen]
extern "C" {
    /// The methods of a `GPUDevice` that are used here.
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

/// The method that wgpu calls.
const CREATE: &str = "createComputePipeline";

pub(super) fn compile(device: &wgpu::Device, errors: &DeviceErrors, source: Source) -> Compile {
    let (device, errors) = (device.clone(), errors.clone());
    let raw: Compiler = raw(&device).unchecked_into();
    let scopes = ErrorScopes::open(&device);
    let module = source.module(&device);
    let caught = scopes.close(Error::Shader);
    let asked = Array::new();
    let record = StandIn {
        list: &asked,
        method: "push",
    };
    record.run(&raw, || source.pipeline(&device, &module));
    let made = JsFuture::from(raw.create_compute_pipeline_async(&asked.get(0)));
    Box::pin(async move {
        let made = made.await;
        let caught = caught.await;
        let outcome = match (errors.check().and(caught), made) {
            (Err(error), _) => Err(error),
            (Ok(()), Ok(made)) => {
                let made = Array::of1(&made);
                let replay = StandIn {
                    list: &made,
                    method: "pop",
                };
                let pipeline = replay.run(&raw, || source.pipeline(&device, &module));
                Ok(Some(Pipeline::new(pipeline)))
            }
            (Ok(()), Err(why)) => {
                let error = Error::Shader(error_scopes::message(&why));
                Err(error_scopes::judge_on(&device, error).await)
            }
        };
        Compiled {
            kernel: source.kernel,
            outcome,
        }
    })
}

/// A method of a list that stands in for the device's `createComputePipeline`.
struct StandIn<'a> {
    list: &'a Array,
    method: &'a str,
}

impl StandIn<'_> {
    /// Runs `make` while the stand-in is in place.
    fn run<T>(&self, device: &JsValue, make: impl FnOnce() -> T) -> T {
        // A page may have replaced the device's method: the page's own is put back afterwards.
        let before = own_property(device, CREATE);
        let method: Function = Reflect::get(self.list, &self.method.into())
            .unwrap_or_default()
            .unchecked_into();
        let _ = Reflect::set(device, &CREATE.into(), &method.bind0(self.list));
        let made = make();
        delete_property(device, CREATE);
        if !before.is_undefined() {
            define_property(device, CREATE, &before);
        }
        made
    }
}

fn raw(device: &wgpu::Device) -> JsValue {
    let raw = device.as_webgpu();
    raw.map_or(JsValue::UNDEFINED, |raw| {
        AsRef::<JsValue>::as_ref(raw).clone()
    })
}
