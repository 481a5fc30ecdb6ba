//! Compiles a kernel natively, on the thread that awaits it.

use std::pin::Pin;

use super::faults::Faults;
use super::pipelines::{Pipeline, Source};
use super::scopes::Scopes;
use crate::device::Compiled;
use crate::error::Error;

/// A kernel being compiled. Await it, and give what comes out to
/// [`Device::adopt`](crate::device::Device::adopt).
pub type Compile = Pin<Box<dyn Future<Output = Compiled> + Send>>;

pub(super) fn compile(device: &wgpu::Device, faults: &Faults, source: Source) -> Compile {
    let (device, faults) = (device.clone(), faults.clone());
    Box::pin(async move {
        let scopes = Scopes::open(&device);
        let pipeline = source.pipeline(&device, &source.module(&device));
        let caught = scopes.close(Error::Shader).await;
        let outcome = faults.check().and(caught);
        Compiled {
            kernel: source.kernel,
            outcome: outcome.map(|()| Some(Pipeline::new(pipeline))),
        }
    })
}
