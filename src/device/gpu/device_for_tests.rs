//! A device that no session owns, for the tests of this folder.

use super::{Gpu, GpuOptions, gpu_driver_lock};
use crate::native::on_gpu_driver_thread;

/// Runs a test with a device, on a thread that may enter a GPU driver.
pub(super) fn with_device(test: fn(&mut Gpu)) {
    on_gpu_driver_thread(move || {
        let opened = pollster::block_on(Gpu::open(&GpuOptions::default()));
        let mut gpu = opened.expect("an adapter, if in software");
        test(&mut gpu);
        gpu_driver_lock::free_device(gpu);
    });
}
