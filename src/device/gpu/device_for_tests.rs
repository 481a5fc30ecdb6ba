//! A device that no session owns, for the tests of this folder.

use super::{Gpu, GpuOptions, driver_lock};
use crate::native::on_driver_thread;

/// Runs a test with a device, on a thread that may enter the driver.
pub(super) fn with_device(test: fn(&mut Gpu)) {
    on_driver_thread(move || {
        let opened = pollster::block_on(Gpu::open(&GpuOptions::default()));
        let mut gpu = opened.expect("an adapter, if in software");
        test(&mut gpu);
        driver_lock::free_device(gpu);
    });
}
