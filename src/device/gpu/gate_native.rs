//! One thread of a process at a time lists adapters, makes a device or frees one, natively.
//!
//! Where several do at once, NVIDIA's driver 580 on Linux may come to a stop: a thread of its
//! own spins, and every other one that enters the driver waits for it. Where several ask for
//! an adapter at once, about one process in a hundred ends with a segmentation fault, inside
//! of a question about the physical device.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Gpu;
use super::instance::instance;

static GATE: Mutex<()> = Mutex::new(());

// Natively wgpu answers these requests before it returns: waiting for them is no wait.

/// The adapters of this machine.
pub(super) fn enumerate() -> Vec<wgpu::Adapter> {
    let _gate = lock();
    pollster::block_on(instance().enumerate_adapters(wgpu::Backends::all()))
}

/// An adapter like this.
#[expect(clippy::unused_async, reason = "its twin waits for the browser")]
pub(super) async fn request_adapter(
    options: &wgpu::RequestAdapterOptions<'_, '_>,
) -> Result<wgpu::Adapter, wgpu::RequestAdapterError> {
    let _gate = lock();
    pollster::block_on(instance().request_adapter(options))
}

/// Makes a device.
#[expect(clippy::unused_async, reason = "its twin waits for the browser")]
pub(super) async fn request_device(
    adapter: &wgpu::Adapter,
    desc: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    let _gate = lock();
    pollster::block_on(adapter.request_device(desc))
}

/// Frees a device.
pub(crate) fn free(gpu: Gpu) {
    let _gate = lock();
    drop(gpu);
}

fn lock() -> MutexGuard<'static, ()> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(super) use tests::with_device;

#[cfg(test)]
mod tests {
    use super::{Gpu, free};
    use crate::device::gpu::GpuOptions;

    /// Runs a test with a device that no session owns, on a thread that may enter the driver.
    pub(in crate::device::gpu) fn with_device(test: fn(&mut Gpu)) {
        crate::native::on_driver_thread(move || {
            let opened = pollster::block_on(Gpu::open(&GpuOptions::default()));
            let mut gpu = opened.expect("an adapter, if in software");
            test(&mut gpu);
            free(gpu);
        });
    }
}
