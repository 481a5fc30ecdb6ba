//! Error scopes around the objects that a launch creates, natively.
//!
//! A launch that creates nothing has nothing that could be invalid, and opens no scopes.
//! Errors outside of scopes belong to other users of the device.

use std::future::Future;

use super::poll::Poller;
use crate::error::Error;

/// Open scopes; dropped without [`ErrorScopes::close`] they are closed unread.
pub(super) struct ErrorScopes {
    // Scopes are a stack: the one that was opened last is closed first.
    memory: wgpu::ErrorScopeGuard,
    validation: wgpu::ErrorScopeGuard,
}

impl ErrorScopes {
    pub(super) fn open(device: &wgpu::Device) -> Self {
        let validation = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        ErrorScopes { memory, validation }
    }

    /// Closes the scopes at once; the future resolves to what they caught. `invalid` makes
    /// the error for a failed validation.
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

/// What scopes around a launch caught, or `DeviceLost` where the device is lost: a device tells of
/// its loss later than of the objects that the loss made invalid.
pub(super) async fn judge_caught(poller: &Poller, caught: Result<(), Error>) -> Result<(), Error> {
    match caught {
        Ok(()) | Err(Error::OutOfMemory(_)) => caught,
        Err(error) => Err(judge(poller, error).await),
    }
}

/// `error`, or `DeviceLost` where the device is lost: on a lost device not even four bytes
/// can be mapped.
pub(super) async fn judge(poller: &Poller, error: Error) -> Error {
    let device = poller.device();
    let scopes = ErrorScopes::open(device);
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 4,
        usage: wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let (sender, receiver) = futures_channel::oneshot::channel();
    buffer.map_async(wgpu::MapMode::Read, .., move |result| {
        let _ = sender.send(result); // The receiver is awaited below.
    });
    drop(scopes); // Errors of this probe are reported to nobody.
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
