//! Compiles a kernel natively, on the thread that polls the future.

use std::pin::Pin;

use super::device_errors::DeviceErrors;
use super::error_scopes::ErrorScopes;
use super::pipelines::{Pipeline, Source};
use crate::device::Compiled;
use crate::error::Error;

/// A kernel that is being compiled. Await it, and give the outcome to
/// [`Device::adopt`](crate::device::Device::adopt).
pub type Compile = Pin<Box<dyn Future<Output = Compiled> + Send>>;

pub(super) fn compile(device: &wgpu::Device, errors: &DeviceErrors, source: Source) -> Compile {
    let (device, errors) = (device.clone(), errors.clone());
    Box::pin(async move {
        let scopes = ErrorScopes::open(&device);
        let module = source.module(&device);
        let pipeline = source.pipeline(&device, &module);
        let caught = scopes.close(Error::Shader).await;
        let outcome = match errors.check().and(caught) {
            Ok(()) => Ok(Some(Pipeline::new(pipeline))),
            Err(error) => Err(explained(&source, &module, error).await),
        };
        Compiled {
            kernel: source.kernel,
            outcome,
        }
    })
}

/// An error of a compiler, which names the caller's own line where a caller wrote it.
async fn explained(source: &Source, module: &wgpu::ShaderModule, error: Error) -> Error {
    if !matches!(error, Error::Shader(_)) || source.kernel.caller_fns().is_empty() {
        return error;
    }
    let text = source.text();
    let messages = module.get_compilation_info().await.messages;
    let complaint = messages.iter().find_map(|said| {
        let at = said.location.as_ref()?;
        let at = [at.line_number, at.line_position];
        source.kernel.complaint(&text, at, &said.message)
    });
    complaint.map_or(error, Error::Shader)
}
