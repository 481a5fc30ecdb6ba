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

impl Room {
    /// The queued call whose place the new one takes, if it takes one.
    pub(super) fn superseded(&self) -> Option<Ticket> {
        match self {
            Room::Superseded(older) => Some(*older),
            Room::Free | Room::Sealed => None,
        }
    }
}

impl<W, P, F> Queue<W, P, F> {
    /// Calls that may still wait before the queue is full; not above 0 when full.
    pub fn desired_size(&self) -> i64 {
        let Capacity { calls, bytes } = self.config.queue_capacity;
        let waiting = self.waiting_load();
        if waiting.bytes >= bytes {
            return 0;
        }
        i64::try_from(calls).unwrap_or(i64::MAX) - i64::try_from(waiting.calls).unwrap_or(i64::MAX)
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
    /// fits where none waits.
    pub(super) fn has_room(&self, request: &Request) -> bool {
        let Capacity { calls, bytes } = self.config.queue_capacity;
        if self.pending_calls < calls && self.pending_bytes + request.bytes <= bytes {
            return true; // What is in flight need not be told apart.
        }
        let waiting = self.waiting_load();
        waiting.calls == 0 || (waiting.calls < calls && waiting.bytes + request.bytes <= bytes)
    }

    /// Makes room for a call in a queue that is full, as its settings say.
    pub(super) fn make_room(&mut self, request: &Request) -> Result<Room, Error> {
        if self.has_room(request) {
            return Ok(Room::Free);
        }
        let Capacity { calls, bytes } = self.waiting_load();
        let full = Error::QueueFull { calls, bytes };
        match self.config.overflow {
            Overflow::Wait => {
                // Sealing the open batch at every newcomer would send batches of one.
                Ok(match self.reaches_capacity(&self.open, request) {
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
        let is_over = || waits && self.reaches_capacity(&self.open, request);
        !self.open.is_empty() && (self.exceeds(&self.open, request) || is_over())
    }

    /// Whether a batch is as large as the whole queue may be.
    pub(super) fn reaches_capacity(&self, batch: &Batch<W, P>, request: &Request) -> bool {
        let Capacity { calls, bytes } = self.config.queue_capacity;
        batch.live >= calls || batch.bytes + request.bytes > bytes
    }

    fn oldest_of(&self, key: Option<u32>) -> Option<Ticket> {
        let key = key?;
        let calls = self.waiting().flat_map(Batch::calls);
        let calls = calls.filter(|call| call.is_live && call.request.key == Some(key));
        calls.map(|call| call.ticket).reduce(older)
    }

    /// Whether a batch is too full for one more call.
    pub(super) fn exceeds(&self, batch: &Batch<W, P>, request: &Request) -> bool {
        let BatchConfig {
            max_batch_size,
            max_batch_cost,
            max_batch_bytes,
            ..
        } = self.config;
        batch.bytes + request.bytes > max_batch_bytes
            || batch.cost + request.cost > max_batch_cost
            || max_batch_size.is_some_and(|most| batch.items + request.items > most)
    }

    pub(super) fn is_full(&self, batch: &Batch<W, P>) -> bool {
        let BatchConfig {
            max_batch_size,
            max_batch_cost,
            max_batch_bytes,
            ..
        } = self.config;
        batch.bytes >= max_batch_bytes
            || batch.cost >= max_batch_cost
            || max_batch_size.is_some_and(|most| batch.items >= most)
    }
}

fn older(a: Ticket, b: Ticket) -> Ticket {
    if b.is_before(a) { b } else { a }
}
