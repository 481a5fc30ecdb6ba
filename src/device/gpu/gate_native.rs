//! One device of a process is made or freed at a time, natively.
//!
//! Where several are made at once, NVIDIA's driver 580 on Linux may come to a stop: a thread of
//! its own spins, and every other one that enters the driver waits for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

static GATE: Mutex<()> = Mutex::new(());

/// Makes a device.
#[expect(clippy::unused_async, reason = "its twin waits for the browser")]
pub(super) async fn request(
    adapter: &wgpu::Adapter,
    desc: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    let _gate = pass();
    // Natively the device is made while this is called: nobody waits here for long.
    pollster::block_on(adapter.request_device(desc))
}

/// Held while a device is made or freed.
pub(crate) fn pass() -> MutexGuard<'static, ()> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}
