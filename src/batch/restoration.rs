//! Restoration: calls that write anew what went with the last device. What waits reads what
//! these calls write, so that they go before all of it, however young they are.
//!
//! What was lost, and how it comes back, is not known here.

use super::{Batch, Queue};

/// What waits to go on while calls that restore are made.
#[derive(Debug)]
pub(super) struct Interrupted<W, P> {
    /// The batch that was open.
    pub(super) open: Batch<W, P>,
    /// Whether a flush was asked for that this batch waits for.
    asked: bool,
}

impl<W, P, F> Queue<W, P, F> {
    /// Calls of normal priority that are made from here on restore, until
    /// [`Queue::end_restoration`]; this is the payload of their batch.
    pub fn begin_restoration(&mut self, payload: P) {
        let mut own = self.new_batch(payload, 0);
        own.is_restoring = true;
        self.interrupted = Some(Interrupted {
            open: std::mem::replace(&mut self.open, own),
            asked: std::mem::take(&mut self.asked),
        });
    }

    /// Puts the calls made since [`Queue::begin_restoration`] before all that waits. Nothing
    /// else is taken before they are in flight.
    pub fn end_restoration(&mut self) {
        let Some(Interrupted { open, asked }) = self.interrupted.take() else {
            return;
        };
        let mut last = std::mem::replace(&mut self.open, open);
        self.asked = asked;
        last.is_urgent = true;
        self.sealed.push(last);
        self.sealed.sort_by_key(|batch| !batch.is_restoring);
    }

    /// Whether calls that restore wait, for their turn or for their kernels.
    pub fn has_restoring(&self) -> bool {
        let mut waiting = self.sealed.iter().chain(&self.parked);
        waiting.any(|batch| batch.is_restoring && !batch.is_empty())
    }

    /// Whether the oldest sealed batch restores.
    pub(super) fn restores_next(&self) -> bool {
        let mut sealed = self.sealed.iter();
        let next = sealed.find(|batch| !batch.is_empty());
        next.is_some_and(|next| next.is_restoring)
    }

    /// Where a batch that restores belongs among the sealed ones, when it waits again.
    pub(super) fn place_restoring(&self) -> usize {
        let restores = |batch: &Batch<W, P>| batch.is_restoring;
        self.sealed
            .iter()
            .take_while(|batch| restores(batch))
            .count()
    }
}
