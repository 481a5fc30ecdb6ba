//! Requests for adapters and devices in the browser, which needs no lock around them.

use super::instance::instance;

/// An adapter that suits these options.
pub(super) async fn request_adapter(
    options: &wgpu::RequestAdapterOptions<'_, '_>,
) -> Result<wgpu::Adapter, wgpu::RequestAdapterError> {
    instance().request_adapter(options).await
}

/// Makes a device.
pub(super) async fn request_device(
    adapter: &wgpu::Adapter,
    desc: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    adapter.request_device(desc).await
}
