//! Errors that no scope catches, natively.

use std::sync::Arc;

/// Ignores these errors: they belong to other users of the device. Without a handler wgpu
/// panics.
pub(super) fn leave(device: &wgpu::Device) {
    device.on_uncaptured_error(Arc::new(|_: wgpu::Error| {}));
}
