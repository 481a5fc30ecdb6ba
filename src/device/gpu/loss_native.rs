//! The loss of a device natively.

/// Calls `hear` with the reason once the device is lost.
pub(super) fn on_loss(device: &wgpu::Device, hear: impl Fn(String) + Send + 'static) {
    device.set_device_lost_callback(move |reason, message| hear(format!("{reason:?}: {message}")));
}
