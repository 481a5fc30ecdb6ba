//! One thread of a process at a time lists adapters, makes a device or frees one, natively.
//!
//! Where several do at once, NVIDIA's driver 580 on Linux may come to a stop: a thread of its
//! own spins, and every other one that enters that driver waits for it. Where several ask for
//! an adapter at once, about one process in a hundred ends with a segmentation fault, inside
//! of a question about the physical device.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Gpu;
use super::instance::instance;

static LOCK: Mutex<()> = Mutex::new(());

// Natively wgpu answers these requests before it returns: waiting for them is no wait.

/// The adapters of this machine.
pub(super) fn enumerate() -> Vec<wgpu::Adapter> {
    let _lock = lock();
    pollster::block_on(instance().enumerate_adapters(wgpu::Backends::all()))
}

/// An adapter that suits these options.
#[expect(clippy::unused_async, reason = "its twin waits for the browser")]
pub(super) async fn request_adapter(
    options: &wgpu::RequestAdapterOptions<'_, '_>,
) -> Result<wgpu::Adapter, wgpu::RequestAdapterError> {
    let _lock = lock();
    pollster::block_on(instance().request_adapter(options))
}

/// Makes a device.
#[expect(clippy::unused_async, reason = "its twin waits for the browser")]
pub(super) async fn request_device(
    adapter: &wgpu::Adapter,
    desc: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    let _lock = lock();
    pollster::block_on(adapter.request_device(desc))
}

/// Frees a device.
pub(crate) fn free_device(gpu: Gpu) {
    let _lock = lock();
    drop(gpu);
}

fn lock() -> MutexGuard<'static, ()> {
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
