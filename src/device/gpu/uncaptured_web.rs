//! Errors that no scope catches, in the browser: it reports them to the console,
//! and to whoever listens on the device.

/// Leaves them to whoever made them.
pub(super) fn leave(_device: &wgpu::Device) {}
