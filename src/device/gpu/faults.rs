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
    /// Launches on their way that made something.
    unheard: usize,
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

/// What a launch made on the device before it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    Nothing,
    Something,
}

/// A launch on its way.
#[must_use = "what comes of it is to be heard"]
pub(super) struct Launched {
    faults: Faults,
    has_made: bool,
    /// Whether it was sent while something else was.
    is_in_doubt: bool,
    is_heard: bool,
}

impl Launched {
    /// Takes what scopes caught of it. One that may have used what an earlier one had
    /// no memory for goes again: whether it failed of that is only known then.
    pub(super) fn hear(mut self, caught: Result<(), Error>) -> Result<(), Error> {
        self.is_heard = true;
        caught.map_err(|error| {
            let error = match error {
                Error::DeviceLost(_) | Error::OutOfMemory(_) => error,
                _ if !self.is_in_doubt => error,
                _ => Error::OutOfMemory("there was none for what a batch before made".into()),
            };
            self.faults.suspect(&error);
            error
        })
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        let mut state = self.faults.lock();
        state.unheard -= usize::from(self.has_made);
        if self.has_made && !self.is_heard {
            state.suspicion = Some(Suspicion::All); // Nobody waited for it.
        }
    }
}

impl Faults {
    /// Starts to listen to a device.
    pub(super) fn watch(device: &wgpu::Device) -> Faults {
        let faults = Faults::default();
        uncaptured::leave(device);
        let heard = faults.clone();
        lost::on_loss(device, move |reason| heard.lose(&reason));
        faults
    }

    /// The device is lost. The first reason stays.
    pub(super) fn lose(&self, reason: &str) {
        let mut state = self.lock();
        state.lost.get_or_insert_with(|| reason.into());
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting); // Outside the lock: whoever waits may look again at once.
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

    /// A launch is sent.
    pub(super) fn launched(&self, made: Made) -> Launched {
        let has_made = made == Made::Something;
        let mut state = self.lock();
        let is_in_doubt = state.unheard > 0;
        state.unheard += usize::from(has_made);
        Launched {
            faults: self.clone(),
            has_made,
            is_in_doubt,
            is_heard: false,
        }
    }

    /// Whether a launch made something of which nobody knows yet that it is valid.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.lock().unheard > 0
    }

    /// Something that was created may be invalid, by what came of it.
    fn suspect(&self, error: &Error) {
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

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::Code;

    fn memory() -> Error {
        Error::OutOfMemory("planned".into())
    }

    fn fatal() -> Error {
        Error::Fatal("planned".into())
    }

    fn code(launched: Launched, caught: Result<(), Error>) -> Option<Code> {
        let heard = launched.hear(caught);
        heard.err().map(|error| error.code())
    }

    #[test]
    fn what_a_launch_made_is_in_doubt_until_it_is_heard_of() {
        let faults = Faults::default();
        let [first, second] = [Made::Something; 2].map(|made| faults.launched(made));
        let warm = faults.launched(Made::Nothing);
        assert_eq!(code(first, Ok(())), None);
        assert!(faults.is_in_doubt());
        assert_eq!(code(second, Ok(())), None);
        assert!(!faults.is_in_doubt());
        assert_eq!(code(warm, Ok(())), None);
        assert_eq!(faults.take_suspicion(), None);
        // Of one that nobody waits for nobody will know.
        drop(faults.launched(Made::Something));
        assert!(!faults.is_in_doubt());
        assert_eq!(faults.take_suspicion(), Some(Suspicion::All));
        drop(faults.launched(Made::Nothing));
        assert_eq!(faults.take_suspicion(), None);
    }

    #[test]
    fn what_may_use_what_there_was_no_memory_for_goes_again() {
        let faults = Faults::default();
        let first = faults.launched(Made::Something);
        let behind = [fatal(), Error::Shader("planned".into())];
        let behind = behind.map(|error| (faults.launched(Made::Something), error));
        let lost = faults.launched(Made::Nothing);
        // Flights arrive in any order.
        for (launched, error) in behind {
            assert_eq!(code(launched, Err(error)), Some(Code::OutOfMemory));
            assert_eq!(faults.take_suspicion(), Some(Suspicion::Buffers));
        }
        assert_eq!(code(first, Err(memory())), Some(Code::OutOfMemory));
        assert_eq!(faults.take_suspicion(), Some(Suspicion::Buffers));
        let loss = Error::DeviceLost("planned".into());
        assert_eq!(code(lost, Err(loss)), Some(Code::DeviceLost));
        // Sent when there was nothing else.
        let alone = faults.launched(Made::Something);
        assert_eq!(code(alone, Err(fatal())), Some(Code::Fatal));
        assert_eq!(faults.take_suspicion(), Some(Suspicion::All));
    }
}
