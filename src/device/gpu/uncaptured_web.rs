//! Errors that no scope catches, in the browser, which reports them to the console and to
//! listeners on the device.

/// Does nothing: these errors belong to other users of the device.
pub(super) fn leave(_device: &wgpu::Device) {}
