//! Compiles a kernel in the browser without blocking the page or its submissions.
//!
//! Workaround: wgpu 30 has no `createComputePipelineAsync`, and cannot adopt a pipeline that
//! somebody else created. So a function of ours stands in for the device's
//! `createComputePipeline` while wgpu calls that: first one that records the descriptor, and
//! later one that returns the finished pipeline.

use std::pin::Pin;

use js_sys::{Array, Promise};
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
            (Err(error), _) => Err(source.explained(&module, error).await),
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
