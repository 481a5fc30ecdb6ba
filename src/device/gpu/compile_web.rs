//! Compiles a kernel in the browser without blocking the page or its submissions.
//!
//! Workaround: wgpu 30 has no `createComputePipelineAsync`, and cannot adopt a pipeline that
//! somebody else created. So a function of ours stands in for the device's
//! `createComputePipeline` while wgpu calls that: first one that records the descriptor, and
//! later one that returns the finished pipeline.

use std::cell::RefCell;
use std::pin::Pin;

use js_sys::{Array, Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::device_errors::DeviceErrors;
use super::error_scopes::{self, ErrorScopes};
use super::pipelines::{Pipeline, Source};
use super::stand_in::{StandIn, raw};
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

    /// What a pipeline is made of, as far as it is used here: `GPUComputePipelineDescriptor`.
    type Descriptor;
    #[wasm_bindgen(method, getter)]
    fn compute(this: &Descriptor) -> Descriptor;
    #[wasm_bindgen(method, getter)]
    fn module(this: &Descriptor) -> JsValue;
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
        creates: CREATE,
        list: &asked,
        method: "push",
    };
    record.run(&raw, || source.pipeline(&device, &module));
    let made = JsFuture::from(raw.create_compute_pipeline_async(&asked.get(0)));
    Box::pin(async move {
        let made = made.await;
        let caught = caught.await;
        let outcome = match (errors.check().and(caught), made) {
            (Err(error), _) => Err(explained(&source, &asked, error).await),
            (Ok(()), Ok(made)) => {
                let made = Array::of1(&made);
                let replay = StandIn {
                    creates: CREATE,
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

thread_local! {
    /// What tells in callers' own lines what compilers say of callers' code.
    static EXPLAINER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Has errors in callers' code told by a function: of a `GPUShaderModule` and its source it returns
/// a promise of what to say, or of nothing.
pub fn explain_by(function: Function) {
    EXPLAINER.set(Some(function));
}

/// An error of a compiler, which names the caller's own line where a caller wrote it. `asked` holds
/// what the pipeline should have been made of.
async fn explained(source: &Source, asked: &Array, error: Error) -> Error {
    let explainer = EXPLAINER.with_borrow(Clone::clone);
    let (Error::Shader(_), Some(explainer)) = (&error, explainer) else {
        return error;
    };
    let descriptor: Descriptor = asked.get(0).unchecked_into();
    let (module, source) = (descriptor.compute().module(), source.text().into());
    let Ok(told) = explainer.call2(&JsValue::NULL, &module, &source) else {
        return error;
    };
    let told = JsFuture::from(Promise::resolve(&told)).await;
    let told = told.ok().and_then(|told| told.as_string());
    told.map_or(error, Error::Shader)
}
