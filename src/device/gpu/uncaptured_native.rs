//! Errors that no scope catches, natively.

use std::sync::Arc;

/// Leaves them to whoever made them. Without a handler wgpu panics.
pub(super) fn leave(device: &wgpu::Device) {
    device.on_uncaptured_error(Arc::new(|_: wgpu::Error| {}));
}
