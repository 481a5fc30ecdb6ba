//! One device of a process is made or freed at a time, natively.
//!
//! Where several are made at once, NVIDIA's driver 580 on Linux may come to a stop: a thread of
//! its own spins, and every other one that enters the driver waits for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Gpu;

static GATE: Mutex<()> = Mutex::new(());

/// Makes a device.
#[expect(clippy::unused_async, reason = "its twin waits for the browser")]
pub(super) async fn request(
    adapter: &wgpu::Adapter,
    desc: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    let _gate = lock();
    // Natively the device is made while this is called: nobody waits here for long.
    pollster::block_on(adapter.request_device(desc))
}

/// Frees a device.
pub(crate) fn free(gpu: Gpu) {
    let _gate = lock();
    drop(gpu);
}

/// Runs a test with a device that no session owns, on a thread that may enter the driver.
#[cfg(test)]
pub(super) fn with_device(test: fn(&mut Gpu)) {
    crate::native::on_driver_thread(move || {
        let opened = pollster::block_on(Gpu::open(&super::GpuOptions::default()));
        let mut gpu = opened.expect("an adapter, if in software");
        test(&mut gpu);
        free(gpu);
    });
}

fn lock() -> MutexGuard<'static, ()> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}
