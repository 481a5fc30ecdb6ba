//! A future with several holders, each of whom gets its output.
//!
//! The shared future of `futures_util` answers "pending" to a holder while another one polls. If
//! that other holder is then woken and dropped instead of polled again, nobody is left to poll.
//! Here a holder waits until the other's poll is over, and polls itself.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, TryLockError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use crate::native::platform::{Mutex, MutexGuard};

/// A holder's part of a future. The future is dropped with the last of them.
pub(in crate::native) struct SharedFuture<F: Future> {
    state: Arc<State<F>>,
    /// The holder's number among the wakers, once the holder was polled.
    holder: Option<u64>,
}

/// A reference that does not keep the future alive.
pub(in crate::native) struct WeakFuture<F: Future>(Weak<State<F>>);

struct State<F: Future> {
    progress: Mutex<Progress<F>>,
    wakers: Arc<Wakers>,
}

enum Progress<F: Future> {
    Running(F),
    Done(F::Output),
}

/// The wakers of those who wait, by the holders' numbers.
#[derive(Default)]
struct Wakers(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl<F: Future> SharedFuture<F> {
    pub(in crate::native) fn new(future: F) -> Self {
        SharedFuture {
            state: Arc::new(State {
                progress: Mutex::new(Progress::Running(future)),
                wakers: Arc::default(),
            }),
            holder: None,
        }
    }

    pub(in crate::native) fn downgrade(&self) -> WeakFuture<F> {
        WeakFuture(Arc::downgrade(&self.state))
    }

    /// Whether there is an output; while a holder polls there is none yet.
    pub(in crate::native) fn is_done(&self) -> bool {
        match self.state.progress.try_lock() {
            Ok(progress) => matches!(*progress, Progress::Done(_)),
            Err(TryLockError::Poisoned(progress)) => {
                matches!(*progress.into_inner(), Progress::Done(_))
            }
            Err(TryLockError::WouldBlock) => false,
        }
    }
}

impl<F: Future> WeakFuture<F> {
    /// Another holder, if there still is one.
    pub(in crate::native) fn upgrade(&self) -> Option<SharedFuture<F>> {
        let state = self.0.upgrade()?;
        let holder = None;
        Some(SharedFuture { state, holder })
    }
}

impl<F> Future for SharedFuture<F>
where
    F: Future<Output: Clone> + Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let state = Arc::clone(&self.state);
        let progress = state.progress.lock();
        let mut progress = progress.unwrap_or_else(PoisonError::into_inner);
        let future = match &mut *progress {
            Progress::Running(future) => future,
            Progress::Done(output) => return Poll::Ready(output.clone()),
        };
        // Invariant: a holder that gets "pending" is among the wakers before the future is polled,
        // so every later wake-up reaches all who wait, and each of these polls by itself.
        let holder = state.wakers.add(self.holder, context.waker());
        self.holder = Some(holder);
        let waker = Waker::from(Arc::clone(&state.wakers));
        let Poll::Ready(output) = Pin::new(future).poll(&mut Context::from_waker(&waker)) else {
            return Poll::Pending;
        };
        let future = mem::replace(&mut *progress, Progress::Done(output.clone()));
        drop(progress);
        drop(future);
        state.wakers.wake_by_ref();
        Poll::Ready(output)
    }
}

impl<F: Future> Clone for SharedFuture<F> {
    fn clone(&self) -> Self {
        SharedFuture {
            state: Arc::clone(&self.state),
            holder: None,
        }
    }
}

impl<F: Future> Drop for SharedFuture<F> {
    fn drop(&mut self) {
        if let Some(holder) = self.holder {
            let waker = self.state.wakers.lock().wakers.remove(&holder);
            drop(waker); // Outside the lock: a waker may be the program's own.
        }
    }
}

impl<F: Future> Debug for SharedFuture<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFuture").finish_non_exhaustive()
    }
}

impl Wakers {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the waker of a holder; the holder's number.
    fn add(&self, holder: Option<u64>, waker: &Waker) -> u64 {
        let mut waiting = self.lock();
        let number = holder.unwrap_or(waiting.next);
        waiting.next = waiting.next.max(number + 1);
        let before = waiting.wakers.insert(number, waker.clone());
        drop(waiting);
        drop(before);
        number
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers = mem::take(&mut self.lock().wakers);
        wakers.into_values().for_each(Waker::wake);
    }
}
