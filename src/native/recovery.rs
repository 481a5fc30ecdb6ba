//! What the worker does when the device is lost: it opens another one, with
//! growing pauses; after too many losses in a row the processor takes over.
//!
//! Batches on their way are the session's matter; it sends them again. What
//! tensors are filled with is theirs.

use std::time::Duration;

use super::config::{Config, open_device};
use super::outside::{self, AnyDevice, block_on, thread};
use super::shared::Shared;
use super::tensor::lost_with_device;
use crate::device::Cpu;
use crate::session::LOSSES;

/// Milliseconds before each request for a device: a driver that restarts has
/// none for a while.
const PAUSES: [u64; 4] = [0, 50, 100, 200];

/// How a session stands with its device.
#[derive(Debug)]
pub(super) struct Recovery {
    config: Config,
    losses: u32,
}

impl Recovery {
    /// To open a lost device again with the settings of the first one.
    pub(super) fn new(config: Config) -> Self {
        Recovery { config, losses: 0 }
    }

    /// The device has answered a batch, so it works.
    pub(super) fn works(&mut self) {
        self.losses = 0;
    }

    /// Replaces the session's device if it is lost.
    pub(super) fn look_after(&mut self, shared: &Shared) {
        if !shared.lock().session.is_lost() {
            return;
        }
        self.losses += 1;
        shared.hand_over();
        let device = self.find_device(shared);
        let mut state = shared.lock();
        if state.closed.is_some() {
            drop(state);
            outside::free(device, Duration::ZERO);
        } else {
            let is_sound = matches!(device, AnyDevice::Gpu(_));
            let old = state.session.replace_device(device);
            let unreadable = state.restore();
            shared.tell_waiting(state);
            for answer in unreadable {
                answer.send(Err(lost_with_device()));
            }
            // One that is stalled may be at work for ever.
            outside::free(old, Duration::ZERO);
            match is_sound {
                true => shared.recovered(),
                false => shared.hand_over(),
            }
        }
    }

    fn find_device(&self, shared: &Shared) -> AnyDevice {
        if self.losses < LOSSES && !shared.lock().session.is_exhausted() {
            for pause in PAUSES {
                thread::sleep(Duration::from_millis(pause));
                if shared.lock().closed.is_some() {
                    break;
                }
                // Where the settings would not have chosen a GPU at first, it is none now.
                if let Ok(device @ AnyDevice::Gpu(_)) = block_on(open_device(&self.config)) {
                    return device;
                }
            }
        }
        AnyDevice::Cpu(Cpu::default())
    }
}
