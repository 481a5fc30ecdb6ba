//! What the worker does when the device is lost: it opens another one, with
//! growing pauses; after too many losses in a row the processor takes over.
//!
//! Batches on their way are the session's matter; it sends them again. What
//! tensors are filled with is theirs.

use std::time::Duration;

use super::outside::{AnyDevice, Gpu, block_on, thread};
use super::shared::Shared;
use super::tensor::lost_with_device;
use crate::device::{Cpu, Device, GpuOptions};
use crate::session::LOSSES;

/// Milliseconds before each request for a device: a driver that restarts has
/// none for a while.
const PAUSES: [u64; 4] = [0, 50, 100, 200];

/// How a session stands with its device.
#[derive(Debug)]
pub(super) struct Recovery {
    options: GpuOptions,
    losses: u32,
}

impl Recovery {
    /// To open a lost device again with the options of the first one.
    pub(super) fn new(options: GpuOptions) -> Self {
        Recovery { options, losses: 0 }
    }

    /// A batch was answered: the device works.
    pub(super) fn works(&mut self) {
        self.losses = 0;
    }

    /// Replaces the session's device if it is lost.
    pub(super) fn look_after(&mut self, shared: &Shared) {
        if !shared.lock().session.is_lost() {
            return;
        }
        self.losses += 1;
        let mut device = self.find_device(shared);
        let mut state = shared.lock();
        if state.closed.is_some() {
            device.destroy();
        } else {
            state.session.replace_device(device);
            let unreadable = state.restore();
            shared.tell_waiting(state);
            for answer in unreadable {
                answer.send(Err(lost_with_device()));
            }
        }
    }

    fn find_device(&self, shared: &Shared) -> AnyDevice {
        if self.losses < LOSSES {
            for pause in PAUSES {
                thread::sleep(Duration::from_millis(pause));
                if shared.lock().closed.is_some() {
                    break;
                }
                if let Ok(gpu) = block_on(Gpu::open(&self.options)) {
                    return AnyDevice::Gpu(gpu);
                }
            }
        }
        AnyDevice::Cpu(Cpu::default())
    }
}
