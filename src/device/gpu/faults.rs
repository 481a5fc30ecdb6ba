//! The loss of a device, and the suspicion that something on it is invalid.
//!
//! Errors are caught where they are made, by `scopes`; this only remembers that
//! there was one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;

use crate::error::Error;

#[cfg(not(target_arch = "wasm32"))]
#[path = "lost_native.rs"]
mod lost;
#[cfg(target_arch = "wasm32")]
#[path = "lost_web.rs"]
mod lost;

#[cfg(not(target_arch = "wasm32"))]
#[path = "uncaptured_native.rs"]
mod uncaptured;
#[cfg(target_arch = "wasm32")]
#[path = "uncaptured_web.rs"]
mod uncaptured;

/// The faults of one device, shared with its callbacks.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    lost: Option<String>,
    suspicion: Option<Suspicion>,
    /// Those who wait for the loss; dropped, and so told, when it comes.
    waiting: Vec<oneshot::Sender<()>>,
}

/// What may be invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Suspicion {
    /// Buffers: there was no memory for one.
    Buffers,
    /// Whatever was made.
    All,
}

impl Faults {
    /// Starts to listen to a device.
    pub(super) fn watch(device: &wgpu::Device) -> Faults {
        let faults = Faults::default();
        uncaptured::leave(device);
        let heard = faults.clone();
        lost::on_loss(device, move |reason| {
            let mut state = heard.lock();
            state.lost = Some(reason);
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

    /// Reports the loss of the device, which is for ever.
    pub(super) fn check(&self) -> Result<(), Error> {
        let reason = self.lock().lost.clone();
        reason.map_or(Ok(()), |reason| Err(Error::DeviceLost(reason)))
    }

    /// Something that was created may be invalid, by what came of it.
    pub(super) fn suspect(&self, error: &Error) {
        let suspicion = match error {
            Error::OutOfMemory(_) => Suspicion::Buffers,
            _ => Suspicion::All,
        };
        let mut state = self.lock();
        state.suspicion = state.suspicion.max(Some(suspicion));
    }

    /// What may be invalid; said once.
    pub(super) fn take_suspicion(&self) -> Option<Suspicion> {
        self.lock().suspicion.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
