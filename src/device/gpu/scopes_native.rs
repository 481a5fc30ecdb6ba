//! Error scopes around what a launch creates, natively.
//!
//! Only a launch that creates something can fail by itself, so a warm one has no
//! scopes. Errors outside of scopes are somebody else's: pages share the device.

use std::future::Future;

use super::poll::Poller;
use crate::error::Error;

/// Open scopes; dropped without [`Scopes::close`] they are closed unread.
pub(super) struct Scopes {
    // In the order of their closing: the last opened is the first.
    memory: wgpu::ErrorScopeGuard,
    validation: wgpu::ErrorScopeGuard,
}

impl Scopes {
    pub(super) fn open(device: &wgpu::Device) -> Self {
        let validation = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        Scopes { memory, validation }
    }

    /// Closes them at once; what they caught comes later. `invalid` makes the
    /// error of a validation that failed.
    pub(super) fn close(
        self,
        invalid: fn(String) -> Error,
    ) -> impl Future<Output = Result<(), Error>> + 'static {
        let memory = self.memory.pop();
        let validation = self.validation.pop();
        async move {
            if let Some(error) = memory.await {
                return Err(Error::OutOfMemory(text(error)));
            }
            validation
                .await
                .map_or(Ok(()), |error| Err(invalid(text(error))))
        }
    }
}

/// This error, unless it is the device that is lost: on a lost one not even four
/// bytes are mapped.
pub(super) async fn judge(poller: &Poller, error: Error) -> Error {
    let device = poller.device();
    let scopes = Scopes::open(device);
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 4,
        usage: wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let (sender, receiver) = futures_channel::oneshot::channel();
    buffer.map_async(wgpu::MapMode::Read, .., move |result| {
        let _ = sender.send(result); // It is awaited below.
    });
    drop(scopes); // What this causes is nobody's to hear of.
    match poller.finish(None, receiver).await {
        Ok(Ok(())) => error,
        Ok(Err(_)) | Err(_) => Error::DeviceLost("nothing on it is valid".into()),
    }
}

fn text(error: wgpu::Error) -> String {
    match error {
        wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. } => {
            description
        }
        wgpu::Error::OutOfMemory { .. } => "a buffer could not be created".into(),
    }
}
