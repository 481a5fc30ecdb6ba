//! The queue as a state machine.
//!
//! A ticket is queued, then in flight, then gone; it leaves exactly once: with
//! its batch, by abort, superseded, or when everything is drained. A batch whose
//! turn it is may be divided: what cannot go yet waits aside and holds up nobody
//! (`aside.rs`). What a full queue does is in `room.rs`.

use super::calls::Entry;
use super::{Batch, BatchConfig, BatchId, Millis, Policy, Request, Ticket};
use crate::error::Error;

/// The answer to an accepted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The call's number.
    pub ticket: Ticket,
    /// The batch it is in.
    pub batch: BatchId,
    /// A queued call whose place it took.
    pub superseded: Option<Ticket>,
}

/// When the caller should flush, or take a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Due {
    /// Nothing depends on time now; a push or a settlement may change that.
    Idle,
    /// A batch can be taken at once.
    Now,
    /// At the end of the current task.
    TaskEnd,
    /// At this moment.
    At(Millis),
}

/// Decides when a batch is sent.
#[derive(Debug)]
pub struct Batcher {
    pub(super) config: BatchConfig,
    pub(super) open: Batch,
    /// A flush was asked for that the open batch still waits for.
    asked: bool,
    pub(super) sealed: Vec<Batch>,
    /// Batches set aside until they are resumed.
    pub(super) aside: Vec<Batch>,
    pub(super) in_flight: Vec<Batch>,
    next_batch: u32,
    next_ticket: u32,
    pub(super) pending_calls: usize,
    pub(super) pending_bytes: u64,
}

impl Batcher {
    /// An empty queue.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when the settings cannot work.
    pub fn new(config: BatchConfig) -> Result<Self, Error> {
        config.validate()?;
        Ok(Batcher {
            config,
            open: Batch::new(BatchId(0), 0),
            asked: false,
            sealed: Vec::new(),
            aside: Vec::new(),
            in_flight: Vec::new(),
            next_batch: 1,
            next_ticket: 0,
            pending_calls: 0,
            pending_bytes: 0,
        })
    }

    /// Takes a call.
    ///
    /// # Errors
    ///
    /// [`Error::QueueFull`] under [`Overflow::Reject`](super::Overflow::Reject), and under
    /// [`Overflow::Latest`](super::Overflow::Latest) when no queued call has the same key. Nothing
    /// changes then.
    pub fn push(&mut self, request: Request, now: Millis) -> Result<Accepted, Error> {
        let superseded = self.make_room(&request)?;
        if self.exceeds(&request) {
            self.seal();
        }
        let ticket = self.number();
        if self.open.is_empty() {
            self.open.oldest = now;
            self.open.first = ticket;
            // Whoever asked has given up every call since.
            self.asked = false;
            self.open.is_urgent = false;
        }
        self.open.entries.push(Entry { ticket, request });
        self.open.add(&request);
        self.pending_calls += 1;
        self.pending_bytes += request.bytes;
        let batch = self.open.id;
        if self.is_full() {
            self.seal();
        }
        Ok(Accepted {
            ticket,
            batch,
            superseded,
        })
    }

    /// A number for a call that is never queued.
    pub fn number(&mut self) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket = self.next_ticket.wrapping_add(1);
        ticket
    }

    /// Asks for the open batch to be sent. It stays open until [`Batcher::take`]
    /// can take it, so that the calls made meanwhile go along.
    pub fn flush(&mut self) {
        self.asked = true;
    }

    /// The same for everything queued, and however many batches are in flight: what
    /// the caller does next depends on what was sent.
    pub fn flush_at_once(&mut self) {
        self.flush();
        let waiting = self.sealed.iter_mut().chain(&mut self.aside);
        for batch in waiting.chain([&mut self.open]) {
            batch.is_urgent = true;
        }
    }

    /// Whether a batch waits for [`Batcher::take`].
    pub fn is_ready(&self) -> bool {
        let asked = self.asked && !self.open.is_empty();
        asked || self.sealed.iter().any(|batch| !batch.is_empty())
    }

    /// Closes the open batch; later calls go to the next one.
    pub(super) fn seal(&mut self) {
        self.asked = false;
        if !self.open.is_empty() {
            // The next is often as large.
            let next = self.new_batch(self.open.entries.len());
            let full = std::mem::replace(&mut self.open, next);
            self.sealed.push(full);
        }
    }

    pub(super) fn new_batch(&mut self, calls: usize) -> Batch {
        let id = BatchId(self.next_batch);
        self.next_batch = self.next_batch.wrapping_add(1);
        Batch::new(id, calls)
    }

    /// The next batch that is full or was asked for, now in flight, unless too
    /// many are.
    pub fn take(&mut self) -> Option<BatchId> {
        self.sealed.retain(|batch| !batch.is_empty());
        if !self.may_take() {
            return None;
        }
        if self.sealed.is_empty() && self.asked {
            self.seal();
        }
        if self.sealed.is_empty() {
            return None;
        }
        let batch = self.sealed.remove(0); // Few batches ever wait.
        Some(self.fly(batch))
    }

    pub(super) fn fly(&mut self, mut batch: Batch) -> BatchId {
        let id = batch.id;
        batch.is_urgent = false; // It has gone; if it goes again it has no hurry.
        self.in_flight.push(batch);
        id
    }

    /// Whether the next batch may go as far as those in flight are concerned.
    fn may_take(&self) -> bool {
        self.may_go(self.sealed.iter().chain([&self.open]))
    }

    /// Whether fewer batches are in flight than may be.
    pub fn may_fly(&self) -> bool {
        self.in_flight.len() < self.config.max_in_flight
    }

    /// Whether the oldest of these may go: there is room in flight, or it is urgent.
    pub(super) fn may_go<'a>(&self, mut waiting: impl Iterator<Item = &'a Batch>) -> bool {
        self.may_fly()
            || waiting
                .find(|batch| !batch.is_empty())
                .is_some_and(|oldest| oldest.is_urgent)
    }

    /// A batch in flight.
    pub fn in_flight(&self, id: BatchId) -> Option<&Batch> {
        self.in_flight.iter().find(|batch| batch.id == id)
    }

    /// A batch came back, well or not: the calls of it that are still waited
    /// for, oldest first. `None` for a batch that is not in flight.
    pub fn settle(&mut self, id: BatchId) -> Option<Vec<Ticket>> {
        let index = self.in_flight.iter().position(|batch| batch.id == id)?;
        let batch = self.in_flight.remove(index);
        self.forget(&batch);
        Some(batch.tickets().collect())
    }

    /// Some calls of a batch in flight came back, well or not: these, in order.
    pub fn advance(&mut self, id: BatchId, back: &[Ticket]) {
        let batch = self.in_flight.iter_mut().find(|batch| batch.id == id);
        let Some(batch) = batch else {
            return;
        };
        let (mut back, before) = (back.iter().peekable(), batch.bytes);
        let count = batch.entries.len();
        let (items, cost, bytes) = (&mut batch.items, &mut batch.cost, &mut batch.bytes);
        batch.entries.retain(|Entry { ticket, request }| {
            while back.next_if(|other| other.is_before(*ticket)).is_some() {}
            let is_back = back.next_if_eq(&ticket).is_some();
            if is_back {
                *items -= request.items;
                *cost -= request.cost;
                *bytes -= request.bytes;
            }
            !is_back
        });
        self.pending_bytes -= before - batch.bytes;
        self.pending_calls -= count - batch.entries.len();
    }

    /// A batch in flight was lost on its way: it waits to be sent again, before
    /// everything that came after it. `false` for a batch not in flight.
    pub fn requeue(&mut self, id: BatchId) -> bool {
        let Some(index) = self.in_flight.iter().position(|batch| batch.id == id) else {
            return false;
        };
        let batch = self.in_flight.remove(index);
        let place = self.place(&self.sealed, &batch);
        self.sealed.insert(place, batch);
        true
    }

    /// Gives up a call; `true` if it was pending.
    pub fn abort(&mut self, ticket: Ticket) -> bool {
        let batches = self
            .in_flight
            .iter_mut()
            .chain(&mut self.aside)
            .chain(&mut self.sealed)
            .chain([&mut self.open]);
        let removed = batches.into_iter().find_map(|batch| batch.remove(ticket));
        if let Some(request) = removed {
            self.pending_calls -= 1;
            self.pending_bytes -= request.bytes;
        }
        removed.is_some()
    }

    /// Gives up everything pending, oldest first.
    pub fn drain(&mut self) -> Vec<Ticket> {
        self.seal();
        // A batch that was sent again may be older than one in flight before it,
        // and the calls of one that was divided lie between those of the other.
        let mut batches = std::mem::take(&mut self.sealed);
        batches.append(&mut self.in_flight);
        batches.append(&mut self.aside);
        let mut tickets = Vec::with_capacity(self.pending_calls);
        for batch in &batches {
            self.forget(batch);
        }
        let mut done = vec![0; batches.len()];
        loop {
            let heads = batches.iter().zip(&mut done);
            let heads = heads.filter_map(|(batch, done)| {
                let entry = batch.entries.get(*done)?;
                Some((self.age(entry.ticket), entry.ticket, done))
            });
            let Some((_, ticket, done)) = heads.max_by_key(|(age, ..)| *age) else {
                return tickets;
            };
            *done += 1;
            tickets.push(ticket);
        }
    }

    /// What should happen next, and when.
    pub fn due(&self, now: Millis) -> Due {
        if !self.may_take() {
            return Due::Idle;
        }
        if self.is_ready() {
            return Due::Now;
        }
        if self.open.is_empty() {
            return Due::Idle;
        }
        let idle_device = self.in_flight.is_empty();
        let wait_over = self
            .config
            .max_wait
            .map(|wait| Millis(self.open.oldest.0 + wait));
        match (self.config.policy, wait_over) {
            (Policy::Eager, _) if !idle_device => Due::Idle,
            (Policy::Eager, _) if self.open.items >= self.config.min_batch_size => Due::TaskEnd,
            (_, Some(moment)) if moment <= now => Due::TaskEnd,
            (_, Some(moment)) => Due::At(moment),
            (Policy::Eager, None) => Due::TaskEnd,
            (Policy::Frame | Policy::Manual, None) => Due::Idle,
        }
    }

    /// Closes batches at so many bytes from here on.
    pub fn limit_bytes(&mut self, most: u64) {
        self.config.max_batch_bytes = most;
    }

    /// The settings.
    pub fn config(&self) -> &BatchConfig {
        &self.config
    }

    /// Whether the open batch holds no call.
    pub fn is_open_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The batch that the next call joins, if it fits.
    pub fn open_batch(&self) -> BatchId {
        self.open.id
    }

    /// The calls that it holds, oldest first.
    pub fn open_tickets(&self) -> impl ExactSizeIterator<Item = Ticket> {
        self.open.tickets()
    }

    /// Calls pending: queued and in flight.
    pub fn pending(&self) -> usize {
        self.pending_calls
    }

    /// Bytes pending: queued and in flight.
    pub fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Calls made since. Numbers may wrap; the distance to the next one does not.
    fn age(&self, ticket: Ticket) -> u32 {
        self.next_ticket.wrapping_sub(ticket.0)
    }

    /// Where a batch belongs among others, oldest first. Of those that were one,
    /// younger calls may have joined the last.
    pub(super) fn place(&self, others: &[Batch], batch: &Batch) -> usize {
        let age = |batch: &Batch| {
            let last = batch.entries.last().map_or(batch.first, |last| last.ticket);
            (self.age(batch.first), self.age(last))
        };
        let own = age(batch);
        others.partition_point(|other| age(other) > own)
    }

    fn forget(&mut self, batch: &Batch) {
        self.pending_calls -= batch.entries.len();
        self.pending_bytes -= batch.bytes;
    }
}
