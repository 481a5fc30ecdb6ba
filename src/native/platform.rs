//! The world outside as it is: threads, locks, time and devices.
//!
//! Unit tests build this face on a twin, `tests/outside.rs`, where threads run
//! in the order that a test tries and devices fail when it says.

pub(super) use std::sync::atomic::AtomicU64;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
pub(super) use std::thread;

pub(super) use pollster::block_on;

pub(super) use super::gpu_driver_threads::{Task, enter, run, spawn};
pub(super) use crate::device::{AnyDevice, Gpu};

use std::future::poll_fn;
use std::sync::LazyLock;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::batch::Millis;
use crate::device::{self, Device};
use crate::error::Error;

/// Frees a device that is no longer used, once it is idle. Of one that stays at work for
/// longer than `patience` a thread of its own takes care, which is to be waited for before
/// the program ends, for so long as anybody cares: the GPU driver waits for work without an
/// end when a device is freed.
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
    // Where there is no thread for it, both are dropped with the job, here.
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

    fn has_passed(&self, time: Duration) -> bool {
        self.start.elapsed() >= time
    }
}
