//! Opens the device that replaces a lost one, and tries it out, on a thread of its own. When that
//! is due, the driver says.
//!
//! What tensors are filled with is the matter of `residents`.

use std::sync::Arc;
use std::time::Duration;

use super::arrival::arrive;
use super::config::{Config, open_device};
use super::platform::{self, AnyDevice, Task, block_on, thread};
use super::residents::lost_with_device;
use super::shared::Shared;
use super::supervision::supervise;
use super::watch;
use crate::driver::{News, Takeover};
use crate::error::Error;
use crate::session::try_out;

/// Opens devices for a session.
#[derive(Debug)]
pub(super) struct Opener {
    config: Arc<Config>,
    /// The last job that looked for a device.
    opening: Option<Task>,
}

impl Opener {
    /// An opener of devices with these settings.
    pub(super) fn new(config: Config) -> Self {
        Opener {
            config: Arc::new(config),
            opening: None,
        }
    }

    /// Looks for a GPU, in the background.
    pub(super) fn open(&mut self, shared: &Arc<Shared>, pauses: &'static [f64]) {
        if pauses.is_empty() {
            return replace(shared, None); // The CPU needs no thread to be opened.
        }
        let (own, config) = (Arc::clone(shared), Arc::clone(&self.config));
        let open = move || {
            supervise(&own, || replace(&own, find_device(&own, &config, pauses)));
        };
        self.join(shared.stall);
        match platform::spawn(open) {
            Ok(opening) => self.opening = Some(opening),
            Err(error) => shared.close(&error),
        }
    }

    /// Waits for the job that looks for a device, `longest` at most: a GPU driver may keep it.
    pub(super) fn join(&mut self, longest: Duration) {
        if let Some(opening) = self.opening.take() {
            opening.wait(longest);
        }
    }
}

/// Gives the driver the device that was found, or none, and fills the tensors.
fn replace(shared: &Shared, found: Option<AnyDevice>) {
    let mut state = shared.lock();
    let Takeover { unneeded, news } = state.driver.take_device(found, shared.clock.now());
    if let Some(news) = news {
        let unreadable = state.restore(shared.clock.now());
        if news == News::Restored {
            shared.mark_sound();
        }
        // Noted with the lock: without it the worker may find this device lost as well, and
        // listeners would hear of that first.
        let calls = state.device_listeners.note(news.into());
        shared.tell_waiting(state);
        for answer in unreadable {
            answer.send(Err(lost_with_device()));
        }
        if news == News::FellBack {
            shared.hand_over();
        }
        if calls {
            watch::call_device_listeners(shared);
        }
    } else {
        drop(state);
    }
    if let Some(device) = unneeded {
        shared.free(device);
    }
    shared.state.work.notify_one();
}

/// A GPU that works, if there is one.
fn find_device(shared: &Shared, config: &Config, pauses: &[f64]) -> Option<AnyDevice> {
    for pause in pauses {
        thread::sleep(Duration::from_secs_f64(pause / 1e3));
        if shared.lock().closed.is_some() {
            return None;
        }
        // With settings that now choose the CPU, no GPU is found.
        if let Ok(mut device @ AnyDevice::Gpu(_)) = block_on(open_device(config)) {
            let answer = try_out(&mut device);
            let start = shared.clock.now();
            let arrived = arrive(shared, answer, |_, now| {
                let waited = now.0 - start.0;
                let is_late = waited > shared.stall.as_secs_f64() * 1e3;
                is_late.then(|| Error::DeviceLost("it answered nothing".into()))
            });
            if let Some(Ok(_)) = arrived {
                return Some(device);
            }
            shared.free(device);
        }
    }
    None
}
