//! Uncaptured errors natively. Without a handler wgpu panics on them.

use std::sync::Arc;

use super::Faults;
use crate::error::Error;

pub(super) fn errors(device: &wgpu::Device, faults: &Faults) {
    let faults = faults.clone();
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        faults.note(match error {
            wgpu::Error::OutOfMemory { source } => Error::OutOfMemory(source.to_string()),
            wgpu::Error::Validation { description, .. } => Error::Fatal(description),
            wgpu::Error::Internal { description, .. } => Error::Fatal(description),
        });
    }));
}
