//! What is known to be wrong with a device: its loss, and objects that may be invalid.
//!
//! Errors are caught by `error_scopes`, around the calls that cause them. This module only
//! remembers that there was one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;

use crate::error::Error;

#[cfg(not(target_arch = "wasm32"))]
#[path = "loss_native.rs"]
mod lost;
#[cfg(target_arch = "wasm32")]
#[path = "loss_web.rs"]
mod lost;

#[cfg(not(target_arch = "wasm32"))]
#[path = "uncaptured_native.rs"]
mod uncaptured;
#[cfg(target_arch = "wasm32")]
#[path = "uncaptured_web.rs"]
mod uncaptured;

/// The errors of one device. Clones share one state, with the device's callbacks too.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceErrors {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    lost: Option<String>,
    suspicion: Option<Suspicion>,
    /// Buffers of tensors that the last launch which failed over one could not use.
    unusable: Vec<wgpu::Buffer>,
    /// Launches that created objects whose error scopes have not reported yet.
    unreported: usize,
    /// Recorded launches that are not over.
    pending: usize,
    /// Resolves when the newest recorded launch is over.
    newest: Option<oneshot::Receiver<()>>,
    /// Senders for the futures that wait for the loss. Dropping a sender wakes its future.
    waiting: Vec<oneshot::Sender<()>>,
}

/// The objects that may be invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Suspicion {
    /// Buffers, because there was no memory for one.
    Buffers,
    /// All objects, pipelines included.
    All,
}

/// Whether a launch created objects on the device before its submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Created {
    Nothing,
    Something,
}

/// A launch whose error scopes have not reported yet, or that was sent behind one.
#[must_use = "its error scopes are to be reported"]
pub(super) struct Launched {
    errors: DeviceErrors,
    has_created: bool,
    /// Whether objects of an earlier launch were unreported when this one was sent.
    is_in_doubt: bool,
    is_reported: bool,
    /// Resolves when the recorded launch before this one is over.
    before: Option<oneshot::Receiver<()>>,
    /// Tells the launch behind by being dropped.
    _over: oneshot::Sender<()>,
}

impl Launched {
    /// Resolves when all launches before have reported what their error scopes caught. What
    /// such a launch failed to write, this one may have read.
    pub(super) async fn all_before(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = before.await; // The sender is dropped without a value.
        }
    }

    /// Takes what the error scopes of this launch caught. Where an earlier launch may have
    /// lacked memory, any failure counts as a lack of memory, so that the batch is sent
    /// again: only the second attempt tells whether the batch itself is at fault.
    pub(super) fn report(mut self, caught: Result<(), Error>) -> Result<(), Error> {
        self.is_reported = true;
        caught.map_err(|error| {
            let error = match error {
                Error::DeviceLost(_) | Error::OutOfMemory(_) => error,
                _ if !self.is_in_doubt => error,
                _ => Error::OutOfMemory("there was none for an object of an earlier batch".into()),
            };
            self.errors.suspect(&error);
            error
        })
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        let mut state = self.errors.lock();
        state.pending -= 1;
        state.unreported -= usize::from(self.has_created);
        if self.has_created && !self.is_reported {
            state.suspicion = Some(Suspicion::All); // The flight was dropped: nobody will know.
        }
    }
}

impl DeviceErrors {
    /// The errors of `device`, from now on.
    pub(super) fn watch(device: &wgpu::Device) -> DeviceErrors {
        let errors = DeviceErrors::default();
        uncaptured::leave(device);
        let heard = errors.clone();
        lost::on_loss(device, move |reason| heard.lose(&reason));
        errors
    }

    /// Records that the device is lost. The first reason stays.
    pub(super) fn lose(&self, reason: &str) {
        let mut state = self.lock();
        state.lost.get_or_insert_with(|| reason.into());
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting); // Outside of the lock: a woken future may ask for the state at once.
    }

    /// Resolves when the device is lost.
    pub(super) fn lost(&self) -> impl Future<Output = ()> + 'static {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        if state.lost.is_none() {
            state.waiting.push(sender);
        }
        async move {
            let _ = receiver.await; // The sender is dropped without a value.
        }
    }

    /// `DeviceLost` once the device is lost, for good.
    pub(super) fn check(&self) -> Result<(), Error> {
        let reason = self.lock().lost.clone();
        reason.map_or(Ok(()), |reason| Err(Error::DeviceLost(reason)))
    }

    /// Records a launch that is about to be submitted.
    pub(super) fn launched(&self, created: Created) -> Launched {
        let has_created = created == Created::Something;
        let mut state = self.lock();
        let is_in_doubt = state.unreported > 0;
        state.pending += 1;
        state.unreported += usize::from(has_created);
        let (over, newest) = oneshot::channel();
        let before = state.newest.replace(newest);
        Launched {
            errors: self.clone(),
            has_created,
            is_in_doubt,
            is_reported: false,
            before,
            _over: over,
        }
    }

    /// Whether a launch created objects that are not known to be valid yet.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.lock().unreported > 0
    }

    /// Whether a recorded launch is not over, and may still turn out to have failed.
    pub(super) fn has_pending(&self) -> bool {
        self.lock().pending > 0
    }

    /// Records that the device cannot use the buffer of a tensor.
    pub(super) fn note_unusable(&self, buffer: &wgpu::Buffer) {
        self.lock().unusable.push(buffer.clone());
    }

    /// Forgets that the device could not use the buffer of a tensor.
    pub(super) fn note_usable(&self, buffer: &wgpu::Buffer) {
        self.lock().unusable.retain(|known| known != buffer);
    }

    /// Whether the device cannot use this buffer of a tensor.
    pub(super) fn is_unusable(&self, buffer: &wgpu::Buffer) -> bool {
        self.lock().unusable.contains(buffer)
    }

    /// Records which objects may be invalid after this error.
    fn suspect(&self, error: &Error) {
        let suspicion = match error {
            // An imported buffer that is at fault is bound by no pipeline.
            Error::OutOfMemory(_) | Error::InvalidInput(_) => Suspicion::Buffers,
            _ => Suspicion::All,
        };
        let mut state = self.lock();
        state.suspicion = state.suspicion.max(Some(suspicion));
    }

    /// The objects that may be invalid; each suspicion is returned once.
    pub(super) fn take_suspicion(&self) -> Option<Suspicion> {
        self.lock().suspicion.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::Code;

    fn memory() -> Error {
        Error::OutOfMemory("planned".into())
    }

    fn fatal() -> Error {
        Error::Fatal("planned".into())
    }

    fn code(launched: Launched, caught: Result<(), Error>) -> Option<Code> {
        let reported = launched.report(caught);
        reported.err().map(|error| error.code())
    }

    #[test]
    fn what_a_launch_creates_is_in_doubt_until_it_is_reported() {
        let errors = DeviceErrors::default();
        let [first, second] = [Created::Something; 2].map(|made| errors.launched(made));
        let warm = errors.launched(Created::Nothing);
        assert_eq!(code(first, Ok(())), None);
        assert!(errors.is_in_doubt());
        assert_eq!(code(second, Ok(())), None);
        assert!(!errors.is_in_doubt());
        assert_eq!(code(warm, Ok(())), None);
        assert_eq!(errors.take_suspicion(), None);
        // A dropped flight reports nothing.
        drop(errors.launched(Created::Something));
        assert!(!errors.is_in_doubt());
        assert_eq!(errors.take_suspicion(), Some(Suspicion::All));
        drop(errors.launched(Created::Nothing));
        assert_eq!(errors.take_suspicion(), None);
    }

    /// Whether a future is ready without being waited for.
    fn is_ready(future: impl Future) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(future).poll(&mut context).is_ready()
    }

    #[test]
    fn launches_land_in_the_order_in_which_they_were_sent() {
        let errors = DeviceErrors::default();
        let kinds = [Created::Something, Created::Nothing, Created::Nothing];
        let [mut first, mut second, mut third] = kinds.map(|made| errors.launched(made));
        assert!(is_ready(first.all_before()));
        assert!(!is_ready(second.all_before()));
        assert_eq!(code(first, Err(memory())), Some(Code::OutOfMemory));
        assert!(is_ready(second.all_before()));
        assert!(!is_ready(third.all_before()));
        drop(second);
        assert!(is_ready(third.all_before()));
    }

    #[test]
    fn a_failure_behind_a_lack_of_memory_counts_as_one() {
        let errors = DeviceErrors::default();
        let first = errors.launched(Created::Something);
        let behind = [fatal(), Error::Shader("planned".into())];
        let behind = behind.map(|error| (errors.launched(Created::Something), error));
        let lost = errors.launched(Created::Nothing);
        // Flights arrive in any order.
        for (launched, error) in behind {
            assert_eq!(code(launched, Err(error)), Some(Code::OutOfMemory));
            assert_eq!(errors.take_suspicion(), Some(Suspicion::Buffers));
        }
        assert_eq!(code(first, Err(memory())), Some(Code::OutOfMemory));
        assert_eq!(errors.take_suspicion(), Some(Suspicion::Buffers));
        let loss = Error::DeviceLost("planned".into());
        assert_eq!(code(lost, Err(loss)), Some(Code::DeviceLost));
        // No other launch was unreported when this one was sent.
        let alone = errors.launched(Created::Something);
        assert_eq!(code(alone, Err(fatal())), Some(Code::Fatal));
        assert_eq!(errors.take_suspicion(), Some(Suspicion::All));
    }
}
