//! In the browser devices are made as the browser likes.

/// Makes a device.
pub(super) async fn request(
    adapter: &wgpu::Adapter,
    desc: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    adapter.request_device(desc).await
}
