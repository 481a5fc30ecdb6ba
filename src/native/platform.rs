//! The outside world: threads, locks, time and devices.
//!
//! Unit tests build this face on a twin, `tests/platform.rs`, where threads run in the order that a
//! test tries, and devices fail when the test says.

pub(super) use std::sync::atomic::AtomicU64;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
pub(super) use std::thread;

pub(super) use pollster::block_on;

pub(super) use super::gpu_driver_threads::{Task, enter, is_lasting, run, spawn};
pub(super) use crate::device::{AnyDevice, Gpu};

use std::future::poll_fn;
use std::sync::LazyLock;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::batch::Millis;
use crate::device::{self, Device};
use crate::error::Error;

/// Frees a device that is no longer used, once it is idle: a GPU driver that frees a device waits
/// for the device's work without an end. A device that is at work for longer than `patience` is
/// left to a thread of its own, which the caller may wait for before the program ends.
pub(super) fn free(device: AnyDevice, patience: Duration) -> Option<Task> {
    let AnyDevice::Gpu(mut gpu) = device else {
        return None;
    };
    gpu.destroy();
    let mut idle = Box::pin(gpu.idle());
    let clock = Clock::start();
    let is_idle = block_on(poll_fn(|context| match idle.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending if clock.has_passed(patience) => Poll::Ready(false),
        Poll::Pending => Poll::Pending,
    }));
    if is_idle {
        device::free_device(gpu);
        return None;
    }
    // Where the system gives no thread, device and future are dropped here with the job.
    let freeing = spawn(move || {
        let mut pause = Duration::from_millis(1);
        block_on(poll_fn(|context| {
            thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_secs(1));
            idle.as_mut().poll(context)
        }));
        device::free_device(gpu);
    });
    freeing.ok()
}

/// The wgpu device; `None` for a CPU device.
pub(super) fn wgpu_device(device: &AnyDevice) -> Option<wgpu::Device> {
    match device {
        AnyDevice::Gpu(gpu) => Some(gpu.wgpu_device().clone()),
        AnyDevice::Cpu(_) => None,
    }
}

/// The device's wgpu queue; `None` for a CPU device.
pub(super) fn wgpu_queue(device: &AnyDevice) -> Option<wgpu::Queue> {
    match device {
        AnyDevice::Gpu(gpu) => Some(gpu.wgpu_queue().clone()),
        AnyDevice::Cpu(_) => None,
    }
}

/// Makes a buffer of the program's a tensor.
pub(super) fn import(
    device: &mut AnyDevice,
    tensor: u32,
    buffer: &wgpu::Buffer,
    words: u32,
) -> Result<(), Error> {
    match device {
        AnyDevice::Gpu(gpu) => gpu.import(tensor, buffer, words),
        AnyDevice::Cpu(_) => Err(Error::InvalidInput(
            "import_buffer: calls run on the CPU, which reads no buffers; use `tensor`".into(),
        )),
    }
}

/// The buffer of a tensor, for the program.
pub(super) fn show(device: &mut AnyDevice, tensor: u32) -> Option<wgpu::Buffer> {
    match device {
        AnyDevice::Gpu(gpu) => gpu.show_buffer(tensor),
        AnyDevice::Cpu(_) => None,
    }
}

/// Milliseconds since this was first called: the clock by which batches are measured.
pub(super) fn now_ms() -> f64 {
    static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::start);
    CLOCK.now().0
}

/// A clock that counts from its own start. Nothing else of this face asks for the time.
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

    fn has_passed(&self, time: Duration) -> bool {
        self.start.elapsed() >= time
    }
}
