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
    launches: u64,
    /// Launches on their way that made something.
    unheard: Vec<u64>,
    /// Those who wait until one of them is heard of; told like the others.
    listeners: Vec<oneshot::Sender<()>>,
    /// Launches that there was no memory for.
    shortages: u64,
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

/// A launch on its way.
#[must_use = "what comes of it is to be heard"]
pub(super) struct Launched {
    faults: Faults,
    number: u64,
    /// Those before it that there was no memory for.
    shortages: u64,
    is_heard: bool,
}

impl Launched {
    /// Takes what scopes caught of it. One that used what an earlier one had no
    /// memory for failed of that, whatever its own scopes say: it did nothing wrong,
    /// and may go again.
    pub(super) async fn hear(mut self, caught: Result<(), Error>) -> Result<(), Error> {
        let mut outcome = caught;
        if let Err(error) = &mut outcome {
            let is_own = matches!(error, Error::OutOfMemory(_));
            if !is_own && !matches!(error, Error::DeviceLost(_)) {
                self.earlier().await;
                if self.faults.lock().shortages > self.shortages {
                    *error = Error::OutOfMemory("there was none for the batch before".into());
                }
            }
            self.faults.lock().shortages += u64::from(is_own);
            self.faults.suspect(error);
        }
        self.is_heard = true;
        outcome
    }

    /// Waits until those before it are heard of, which nobody keeps from it: flights
    /// that one task awaits are awaited in order.
    async fn earlier(&self) {
        loop {
            let mut state = self.faults.lock();
            if state.unheard.iter().all(|number| *number >= self.number) {
                return;
            }
            let (sender, receiver) = oneshot::channel();
            state.listeners.push(sender);
            drop(state);
            let _ = receiver.await; // The sender says nothing, it goes away.
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        let mut state = self.faults.lock();
        let at = state.unheard.iter().position(|own| *own == self.number);
        let Some(at) = at else {
            return; // It made nothing.
        };
        state.unheard.swap_remove(at);
        state.listeners.clear();
        if !self.is_heard {
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

    /// A launch is sent, which made something or not.
    pub(super) fn launched(&self, has_made: bool) -> Launched {
        let mut state = self.lock();
        state.launches += 1;
        let number = state.launches;
        if has_made {
            state.unheard.push(number);
        }
        Launched {
            faults: self.clone(),
            number,
            shortages: state.shortages,
            is_heard: false,
        }
    }

    /// Whether a launch made something of which nobody knows yet that it is valid.
    pub(super) fn is_in_doubt(&self) -> bool {
        !self.lock().unheard.is_empty()
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
        let heard = pollster::block_on(launched.hear(caught));
        heard.err().map(|error| error.code())
    }

    #[test]
    fn what_a_launch_made_is_in_doubt_until_it_is_heard_of() {
        let faults = Faults::default();
        let [first, second] = [true, true].map(|has_made| faults.launched(has_made));
        let warm = faults.launched(false);
        assert_eq!(code(first, Ok(())), None);
        assert!(faults.is_in_doubt());
        assert_eq!(code(second, Ok(())), None);
        assert!(!faults.is_in_doubt());
        assert_eq!(code(warm, Ok(())), None);
        assert_eq!(faults.take_suspicion(), None);
        // Of one that nobody waits for nobody will know.
        drop(faults.launched(true));
        assert!(!faults.is_in_doubt());
        assert_eq!(faults.take_suspicion(), Some(Suspicion::All));
        drop(faults.launched(false));
        assert_eq!(faults.take_suspicion(), None);
    }

    #[test]
    fn what_uses_what_there_was_no_memory_for_failed_of_that() {
        let faults = Faults::default();
        let first = faults.launched(true);
        let behind = [fatal(), Error::Shader("planned".into())];
        let behind = behind.map(|error| (faults.launched(false), error));
        let lost = faults.launched(false);
        assert_eq!(code(first, Err(memory())), Some(Code::OutOfMemory));
        assert_eq!(faults.take_suspicion(), Some(Suspicion::Buffers));
        // Sent when all was made anew.
        let later = faults.launched(true);
        for (launched, error) in behind {
            assert_eq!(code(launched, Err(error)), Some(Code::OutOfMemory));
            assert_eq!(faults.take_suspicion(), Some(Suspicion::Buffers));
        }
        let loss = Error::DeviceLost("planned".into());
        assert_eq!(code(lost, Err(loss)), Some(Code::DeviceLost));
        assert_eq!(code(later, Err(fatal())), Some(Code::Fatal));
        assert_eq!(faults.take_suspicion(), Some(Suspicion::All));
    }

    #[test]
    fn what_comes_back_before_an_earlier_one_waits_for_it() {
        for (caught, expected) in [
            (Some(Err(memory())), Code::OutOfMemory),
            (Some(Err(fatal())), Code::Fatal),
            (Some(Ok(())), Code::Fatal),
            (None, Code::Fatal), // Nobody will know.
        ] {
            let faults = Faults::default();
            let first = faults.launched(true);
            let second = faults.launched(true).hear(Err(fatal()));
            let earlier = async {
                match caught {
                    Some(caught) => drop(first.hear(caught).await),
                    None => drop(first),
                }
            };
            let (second, ()) = pollster::block_on(futures_util::future::join(second, earlier));
            assert_eq!(second.expect_err("it failed").code(), expected);
            assert!(!faults.is_in_doubt());
        }
    }
}
