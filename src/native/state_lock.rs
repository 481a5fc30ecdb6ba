//! The lock around a session's state, and the threads that sleep until the state changes.
//!
//! A panic of whoever holds the lock closes the session. What is done with the state is not
//! known here.

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError, TryLockResult};
use std::time::Duration;

use super::platform::{Condvar, Mutex, MutexGuard};
use super::state::State;
use crate::error::Error;

/// A session's state behind its lock.
#[derive(Debug)]
pub(super) struct StateLock {
    state: Mutex<State>,
    /// Wakes the worker.
    pub(super) work: Condvar,
    /// Wakes threads that wait for room in the queue.
    pub(super) room: Condvar,
}

impl StateLock {
    pub(super) fn new(state: State) -> Self {
        StateLock {
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// The state. After a panic elsewhere the session is closed, not unreadable.
    pub(super) fn lock(&self) -> Guard<'_> {
        let locked = self.state.lock();
        self.guard(locked.unwrap_or_else(PoisonError::into_inner))
    }

    /// The state of a session that is not closed.
    pub(super) fn open(&self) -> Result<Guard<'_>, Error> {
        check_open(self.lock())
    }

    /// The state of a session that is not closed, if nobody else has the lock.
    pub(super) fn try_open(&self) -> Result<Option<Guard<'_>>, Error> {
        let unlocked = free(self.state.try_lock());
        let guarded = unlocked.map(|state| self.guard(state));
        guarded.map(check_open).transpose()
    }

    fn guard<'a>(&'a self, state: MutexGuard<'a, State>) -> Guard<'a> {
        Guard {
            lock: self,
            state: Some(state),
            was_panicking: std::thread::panicking(),
        }
    }
}

/// The state of a session, locked.
///
/// Invariant: a panic of the thread that holds the lock closes the session, so that nobody uses a
/// state that is half changed. The worker is woken and answers the calls.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    lock: &'a StateLock,
    /// `None` once the guard is unlocked.
    state: Option<MutexGuard<'a, State>>,
    /// Whether the thread was unwinding already when it took the lock.
    was_panicking: bool,
}

impl<'a> Guard<'a> {
    /// Unlocks the state until `woken` is notified or the time is over.
    pub(super) fn sleep(mut self, woken: &Condvar, longest: Option<Duration>) -> Guard<'a> {
        let state = self.state.take().expect("held until it is dropped");
        let state = match longest {
            None => woken.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(longest) => {
                let waited = woken.wait_timeout(state, longest);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        self.lock.guard(state)
    }
}

impl Deref for Guard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_ref().expect("held until it is dropped")
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("held until it is dropped")
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let Some(state) = self.state.as_mut().filter(|_| !self.was_panicking) else {
            return;
        };
        if std::thread::panicking() {
            let why = "a thread panicked with the session locked";
            state.closed.get_or_insert_with(|| Error::Fatal(why.into()));
            state.is_broken = true;
            self.lock.work.notify_all();
            self.lock.room.notify_all();
        }
    }
}

fn check_open(state: Guard<'_>) -> Result<Guard<'_>, Error> {
    match &state.closed {
        Some(reason) => Err(reason.clone()),
        None => Ok(state),
    }
}

/// The guard of a lock that nobody else holds, also after a panic of somebody who held it.
pub(super) fn free<G>(lock: TryLockResult<G>) -> Option<G> {
    match lock {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
