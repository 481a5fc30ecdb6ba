//! An adapter's name natively.

use super::AdapterName;

pub(super) fn adapter(_device: &wgpu::Device, adapter: &wgpu::Adapter) -> AdapterName {
    let info = adapter.get_info();
    AdapterName {
        adapter: info.name,
        driver: info.driver,
        software: info.device_type == wgpu::DeviceType::Cpu,
    }
}
