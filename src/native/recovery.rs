//! What the worker does when the device is lost: it has another one opened, and where
//! there is none the processor takes over until there is.
//!
//! Devices are opened on a thread of their own, because the processor answers calls
//! meanwhile. When one is due is the session's matter, and so are batches on their way;
//! what tensors are filled with is the tensors'.

use std::sync::Arc;
use std::time::Duration;

use super::config::{Config, open_device};
use super::outside::{self, AnyDevice, Task, block_on, thread};
use super::shared::Shared;
use super::tensor::lost_with_device;
use super::worker::{arrive, supervise};
use crate::device::Cpu;
use crate::session::{Remedy, try_out};

/// Milliseconds before each request for a device: a driver that restarts has
/// none for a while.
const PAUSES: [u64; 4] = [0, 50, 100, 200];

/// How a session finds another device.
#[derive(Debug)]
pub(super) struct Recovery {
    config: Arc<Config>,
    /// Who looked for a device last.
    opening: Option<Task>,
}

impl Recovery {
    /// To open a lost device again with the settings of the first one.
    pub(super) fn new(config: Config) -> Self {
        Recovery {
            config: Arc::new(config),
            opening: None,
        }
    }

    /// Sees to it that there is a device, now or soon.
    pub(super) fn look_after(&mut self, shared: &Arc<Shared>) {
        let mut state = shared.lock();
        let remedy = state.session.remedy(shared.clock.now());
        drop(state);
        let pauses = match remedy {
            None => return,
            Some(Remedy::FallBack) => return go_on_with(shared, AnyDevice::Cpu(Cpu::default())),
            Some(Remedy::Look) => &PAUSES[..1],
            Some(Remedy::Reopen) => {
                shared.hand_over();
                &PAUSES[..]
            }
        };
        let (shared, config) = (Arc::clone(shared), Arc::clone(&self.config));
        let own = Arc::clone(&shared);
        let open = move || {
            supervise(&own, || open(&own, &config, pauses));
        };
        self.join(shared.stall);
        match outside::spawn(open) {
            Ok(opening) => self.opening = Some(opening),
            Err(error) => shared.close(&error),
        }
    }

    /// Waits for who looks for a device, for so long at most: a driver may keep it.
    pub(super) fn join(&mut self, longest: Duration) {
        if let Some(opening) = self.opening.take() {
            opening.wait(longest);
        }
    }
}

/// Looks for a device, and gives the session what there is.
fn open(shared: &Shared, config: &Config, pauses: &[u64]) {
    let found = find_device(shared, config, pauses);
    let mut state = shared.lock();
    if state.closed.is_some() {
        drop(state);
        return found.into_iter().for_each(|gpu| shared.free(gpu));
    }
    let now = shared.clock.now();
    if state.session.is_lost() {
        drop(state);
        go_on_with(shared, found.unwrap_or(AnyDevice::Cpu(Cpu::default())));
    } else {
        match found {
            Some(gpu) => state.session.welcome(gpu, now),
            None => state.session.missed(now),
        }
        drop(state);
    }
    shared.work.notify_one();
}

/// Replaces a lost device, tensors and all.
fn go_on_with(shared: &Shared, device: AnyDevice) {
    let mut state = shared.lock();
    if state.closed.is_some() {
        drop(state);
        return shared.free(device);
    }
    let is_gpu = matches!(device, AnyDevice::Gpu(_));
    let old = state.session.replace_device(device, shared.clock.now());
    let unreadable = state.restore();
    if is_gpu {
        shared.recovered();
    }
    shared.tell_waiting(state);
    for answer in unreadable {
        answer.send(Err(lost_with_device()));
    }
    if !is_gpu {
        shared.hand_over();
    }
    shared.free(old);
}

/// A GPU that works, if there is one.
fn find_device(shared: &Shared, config: &Config, pauses: &[u64]) -> Option<AnyDevice> {
    for pause in pauses {
        thread::sleep(Duration::from_millis(*pause));
        if shared.lock().closed.is_some() {
            return None;
        }
        // Where the settings would not have chosen a GPU at first, it is none now.
        if let Ok(mut device @ AnyDevice::Gpu(_)) = block_on(open_device(config)) {
            let answer = try_out(&mut device);
            if let Some(Ok(_)) = arrive(shared, answer) {
                return Some(device);
            }
            shared.free(device);
        }
    }
    None
}
