//! What went wrong on a device outside any one call's view: uncaptured errors
//! and the loss of the device.
//!
//! A fault fails the batches that were on their way, so that none of them is
//! answered with what a failed submission left in its buffers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;

use crate::error::Error;

#[cfg(not(target_arch = "wasm32"))]
#[path = "watch_native.rs"]
mod watch;
#[cfg(target_arch = "wasm32")]
#[path = "watch_web.rs"]
mod watch;

/// The faults of one device, shared with its callbacks.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    lost: Option<String>,
    error: Option<Error>,
    /// Those who wait for the loss; dropped, and so told, when it comes.
    waiting: Vec<oneshot::Sender<()>>,
}

impl Faults {
    /// Starts to listen to a device.
    pub(super) fn watch(device: &wgpu::Device) -> Faults {
        let faults = Faults::default();
        watch::errors(device, &faults);
        let lost = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            let mut state = lost.lock();
            state.lost = Some(format!("{reason:?}: {message}"));
            state.waiting.clear();
        });
        faults
    }

    /// Resolves when the device is lost.
    pub(super) fn lost(&self) -> impl Future<Output = ()> + 'static {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        if state.lost.is_none() {
            state.waiting.push(sender);
        }
        async move {
            let _ = receiver.await; // The sender says nothing, it goes away.
        }
    }

    /// Reports what happened since the last check; a loss is for ever.
    pub(super) fn check(&self) -> Result<(), Error> {
        let mut state = self.lock();
        if let Some(reason) = &state.lost {
            return Err(Error::DeviceLost(reason.clone()));
        }
        state.error.take().map_or(Ok(()), Err)
    }

    fn note(&self, error: Error) {
        self.lock().error.get_or_insert(error);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
