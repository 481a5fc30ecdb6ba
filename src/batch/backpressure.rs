//! Backpressure: how much the queue and a batch may hold, and what a full queue does with a
//! call.

use super::{Batch, BatchConfig, Capacity, Overflow, Queue, Request, Ticket};
use crate::error::Error;

/// The room that a call finds in the queue.
pub(super) enum Room {
    /// There is room: the call joins the open batch, if that has a place for it.
    Free,
    /// The open batch is as large as the whole queue may be, and is to be sealed.
    Sealed,
    /// The call takes the place of a queued call.
    Superseded(Ticket),
}

impl<W, P, F> Queue<W, P, F> {
    /// Calls that still fit before the queue is full; not above 0 when full.
    pub fn desired_size(&self) -> i64 {
        let Capacity { calls, bytes } = self.config.queue_capacity;
        if self.pending_bytes >= bytes {
            return 0;
        }
        i64::try_from(calls).unwrap_or(i64::MAX)
            - i64::try_from(self.pending_calls).unwrap_or(i64::MAX)
    }

    /// How full a batch is against the limit that would seal it, 0 to 1.
    pub fn fill(&self, batch: &Batch<W, P>) -> f64 {
        let share = match self.config.max_batch_size {
            Some(most) => batch.items as f64 / most as f64,
            None => batch.bytes as f64 / self.config.max_batch_bytes as f64,
        };
        let of_cost = batch.cost as f64 / self.config.max_batch_cost as f64;
        share.max(of_cost).min(1.0)
    }

    /// Whether the queue has room for a call. A call larger than the whole capacity still
    /// fits an empty queue.
    fn has_room(&self, request: &Request) -> bool {
        let Capacity { calls, bytes } = self.config.queue_capacity;
        self.pending_calls == 0
            || (self.pending_calls < calls && self.pending_bytes + request.bytes <= bytes)
    }

    /// Makes room for a call in a queue that is full, as its settings say.
    pub(super) fn make_room(&mut self, request: &Request) -> Result<Room, Error> {
        if self.has_room(request) {
            return Ok(Room::Free);
        }
        let full = Error::QueueFull {
            calls: self.pending_calls,
            bytes: self.pending_bytes,
        };
        match self.config.overflow {
            Overflow::Wait => {
                // Sealing the open batch at every newcomer would send batches of one.
                Ok(match self.open_reaches_capacity(request) {
                    true => Room::Sealed,
                    false => Room::Free,
                })
            }
            Overflow::Reject => {
                self.flush();
                Err(full)
            }
            Overflow::Latest => {
                let Some(older) = self.oldest_of(request.key) else {
                    self.flush();
                    return Err(full);
                };
                self.abort(older);
                Ok(Room::Superseded(older))
            }
        }
    }

    /// Whether a call that is taken now opens the next batch, because the open one has
    /// no place for it.
    pub fn closes_for(&self, request: &Request) -> bool {
        let waits = self.config.overflow == Overflow::Wait && !self.has_room(request);
        let is_over = || waits && self.open_reaches_capacity(request);
        !self.open.is_empty() && (self.exceeds(request) || is_over())
    }

    fn open_reaches_capacity(&self, request: &Request) -> bool {
        let Capacity { calls, bytes } = self.config.queue_capacity;
        self.open.live >= calls || self.open.bytes + request.bytes > bytes
    }

    fn oldest_of(&self, key: Option<u32>) -> Option<Ticket> {
        let key = key?;
        let queued = self.parked.iter().chain(&self.sealed).chain([&self.open]);
        let mut calls = queued.flat_map(Batch::calls);
        calls
            .find(|call| call.is_live && call.request.key == Some(key))
            .map(|call| call.ticket)
    }

    /// Whether the open batch is too full for one more call.
    pub(super) fn exceeds(&self, request: &Request) -> bool {
        let BatchConfig {
            max_batch_size,
            max_batch_cost,
            max_batch_bytes,
            ..
        } = self.config;
        self.open.bytes + request.bytes > max_batch_bytes
            || self.open.cost + request.cost > max_batch_cost
            || max_batch_size.is_some_and(|most| self.open.items + request.items > most)
    }

    pub(super) fn is_full(&self) -> bool {
        let BatchConfig {
            max_batch_size,
            max_batch_cost,
            max_batch_bytes,
            ..
        } = self.config;
        self.open.bytes >= max_batch_bytes
            || self.open.cost >= max_batch_cost
            || max_batch_size.is_some_and(|most| self.open.items >= most)
    }
}
