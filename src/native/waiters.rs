//! Tasks that wait for room in a session's queue, each registered once.
//!
//! Whether there is room, the session says.

use std::task::Waker;

/// The wakers of the tasks that wait for room.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// Each waker with the number of its waiter.
    wakers: Vec<(u64, Waker)>,
    numbered: u64,
}

/// A task that may wait for room; it waits if it has a number.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    pub(super) number: Option<u64>,
}

impl Waiters {
    /// Registers the waker of a waiter, in place of the waiter's older one.
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

    /// Ends the registration of a waiter; the waker that was kept.
    pub(super) fn leave(&mut self, waiter: &Waiter) -> Option<Waker> {
        let mut wakers = self.wakers.iter();
        let at = wakers.position(|(known, _)| Some(*known) == waiter.number)?;
        Some(self.wakers.swap_remove(at).1)
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.wakers.len()
    }

    /// Takes all wakers, to be woken.
    pub(super) fn take(&mut self) -> Vec<(u64, Waker)> {
        std::mem::take(&mut self.wakers)
    }
}
