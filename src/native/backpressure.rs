//! Tasks that wait for room in a session's queue, each registered once.
//!
//! Whether there is room, the session says.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::shared::Shared;
use crate::error::Error;

/// Room in the queue of one session, for one task to wait for. Dropped, it waits no more.
#[derive(Debug)]
pub(super) struct Room {
    shared: Arc<Shared>,
    waiter: Waiter,
}

impl Room {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Room {
            shared: Arc::clone(shared),
            waiter: Waiter::default(),
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether the queue has room; if not, the task that polls is told when it may have.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        self.shared.poll_room(&mut self.waiter, context)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.waiter.number.is_some() {
            let waker = self.shared.lock().waiting.leave(&self.waiter);
            drop(waker); // Outside the lock: it may be the last of its task.
        }
    }
}

/// The wakers of the tasks that wait for room.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// Each with the number of its waiter.
    wakers: Vec<(u64, Waker)>,
    numbered: u64,
}

/// One among those that wait, if it has a number.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    number: Option<u64>,
}

impl Waiters {
    /// From here on this waker is the one of its waiter.
    pub(super) fn wait(&mut self, waiter: &mut Waiter, waker: &Waker) {
        let number = *waiter.number.get_or_insert_with(|| {
            self.numbered += 1;
            self.numbered
        });
        let mut wakers = self.wakers.iter_mut();
        match wakers.find(|(known, _)| *known == number) {
            Some((_, known)) => known.clone_from(waker),
            None => self.wakers.push((number, waker.clone())),
        }
    }

    /// This waiter waits no more; the waker that was kept for it.
    fn leave(&mut self, waiter: &Waiter) -> Option<Waker> {
        let mut wakers = self.wakers.iter();
        let at = wakers.position(|(known, _)| Some(*known) == waiter.number)?;
        Some(self.wakers.swap_remove(at).1)
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.wakers.len()
    }

    /// All of them: they are told now.
    pub(super) fn take(&mut self) -> Vec<(u64, Waker)> {
        std::mem::take(&mut self.wakers)
    }
}
