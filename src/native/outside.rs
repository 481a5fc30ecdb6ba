//! The world outside as it is: threads, locks, time and devices.
//!
//! Unit tests build this face on a twin, `tests/outside.rs`, where threads run
//! in the order that a test tries and devices fail when it says.

pub(super) use std::sync::atomic::AtomicU64;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
pub(super) use std::thread;

pub(super) use pollster::block_on;

pub(super) use crate::device::{AnyDevice, Gpu};

use std::sync::LazyLock;
use std::time::Instant;

use crate::batch::Millis;
use crate::error::Error;

/// The device itself; `None` on the processor.
pub(super) fn wgpu_device(device: &AnyDevice) -> Option<wgpu::Device> {
    match device {
        AnyDevice::Gpu(gpu) => Some(gpu.wgpu_device().clone()),
        AnyDevice::Cpu(_) => None,
    }
}

/// Its queue.
pub(super) fn wgpu_queue(device: &AnyDevice) -> Option<wgpu::Queue> {
    match device {
        AnyDevice::Gpu(gpu) => Some(gpu.wgpu_queue().clone()),
        AnyDevice::Cpu(_) => None,
    }
}

/// Makes a tensor of somebody's buffer.
pub(super) fn import(
    device: &mut AnyDevice,
    tensor: u32,
    (buffer, words): (&wgpu::Buffer, u32),
) -> Result<(), Error> {
    match device {
        AnyDevice::Gpu(gpu) => gpu.import(tensor, buffer, words),
        AnyDevice::Cpu(_) => Err(Error::InvalidInput(
            "import_buffer: calls run on the processor, which reads no buffers; use `tensor`"
                .into(),
        )),
    }
}

/// The buffer of a tensor, to be seen by others.
pub(super) fn show(device: &mut AnyDevice, tensor: u32) -> Option<wgpu::Buffer> {
    match device {
        AnyDevice::Gpu(gpu) => gpu.show_buffer(tensor),
        AnyDevice::Cpu(_) => None,
    }
}

/// Milliseconds since it was first asked for, to measure batches by.
pub(super) fn now_ms() -> f64 {
    static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::start);
    CLOCK.now().0
}

/// The only place that asks what time it is. Counts from its own start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "faces are where time comes in; this one never runs in a browser"
    )]
    pub(super) fn start() -> Self {
        Clock {
            start: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Millis {
        Millis(self.start.elapsed().as_secs_f64() * 1e3)
    }
}
