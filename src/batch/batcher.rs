//! The queue as a state machine.
//!
//! A ticket is queued, then in flight, then gone; it leaves exactly once: with
//! its batch, by abort, superseded, or when everything is drained.

use super::{BatchConfig, Capacity, Millis, Overflow, Policy};
use crate::error::Error;

/// A call's number. Numbers rise and are not reused while a call is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u32);

impl Ticket {
    /// Whether a call is older than another, both pending: numbers may wrap, the
    /// distance between two that are pending does not.
    pub fn is_before(self, other: Ticket) -> bool {
        let distance = other.0.wrapping_sub(self.0);
        distance != 0 && distance <= u32::MAX / 2
    }
}

/// A batch's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId(pub u32);

/// What a call weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Items, as the op counts them.
    pub items: u64,
    /// Bytes of operands and results.
    pub bytes: u64,
    /// Calls of one key may take each other's place.
    pub key: Option<u32>,
}

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

/// Calls that are sent together.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Its number.
    pub id: BatchId,
    /// When its oldest call came.
    pub oldest: Millis,
    /// Items of its calls.
    pub items: u64,
    entries: Vec<Entry>,
    bytes: u64,
    /// In flight in name only: what is left of it waits for a device.
    is_held: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    ticket: Ticket,
    request: Request,
}

/// Decides when a batch is sent.
#[derive(Debug)]
pub struct Batcher {
    config: BatchConfig,
    open: Batch,
    /// A flush was asked for that the open batch still waits for.
    asked: bool,
    sealed: Vec<Batch>,
    in_flight: Vec<Batch>,
    next_ticket: u32,
    pending_calls: usize,
    pending_bytes: u64,
}

impl Batch {
    fn new(id: BatchId) -> Self {
        Batch {
            id,
            oldest: Millis::default(),
            items: 0,
            entries: Vec::new(),
            bytes: 0,
            is_held: false,
        }
    }

    /// Its calls, oldest first.
    pub fn tickets(&self) -> impl ExactSizeIterator<Item = Ticket> {
        self.entries.iter().map(|entry| entry.ticket)
    }

    /// Whether it holds no call.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn remove(&mut self, ticket: Ticket) -> Option<Request> {
        let index = self
            .entries
            .binary_search_by_key(&ticket, |entry| entry.ticket)
            .ok()?;
        let Request { items, bytes, .. } = self.entries[index].request;
        self.items -= items;
        self.bytes -= bytes;
        Some(self.entries.remove(index).request)
    }
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
            open: Batch::new(BatchId(0)),
            asked: false,
            sealed: Vec::new(),
            in_flight: Vec::new(),
            next_ticket: 0,
            pending_calls: 0,
            pending_bytes: 0,
        })
    }

    /// Takes a call.
    ///
    /// # Errors
    ///
    /// [`Error::QueueFull`] under [`Overflow::Reject`], and under
    /// [`Overflow::Latest`] when no queued call has the same key. Nothing
    /// changes then.
    pub fn push(&mut self, request: Request, now: Millis) -> Result<Accepted, Error> {
        let superseded = self.make_room(&request)?;
        if self.exceeds(&request) {
            self.seal();
        }
        let ticket = self.number();
        if self.open.is_empty() {
            self.open.oldest = now;
            self.asked = false; // Whoever asked has given up every call since.
        }
        self.open.entries.push(Entry { ticket, request });
        self.open.items += request.items;
        self.open.bytes += request.bytes;
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

    /// Whether a batch waits for [`Batcher::take`].
    pub fn is_ready(&self) -> bool {
        let asked = self.asked && !self.open.is_empty();
        asked || self.sealed.iter().any(|batch| !batch.is_empty())
    }

    /// Closes the open batch; later calls go to the next one.
    fn seal(&mut self) {
        self.asked = false;
        if !self.open.is_empty() {
            let next = BatchId(self.open.id.0.wrapping_add(1));
            let full = std::mem::replace(&mut self.open, Batch::new(next));
            self.sealed.push(full);
        }
    }

    /// The next batch that is full or was asked for, now in flight, unless too
    /// many are.
    pub fn take(&mut self) -> Option<BatchId> {
        self.sealed.retain(|batch| !batch.is_empty());
        if self.busy() >= self.config.max_in_flight {
            return None;
        }
        if self.sealed.is_empty() && self.asked {
            self.seal();
        }
        if self.sealed.is_empty() {
            return None;
        }
        let batch = self.sealed.remove(0); // Few batches ever wait.
        let id = batch.id;
        self.in_flight.push(batch);
        Some(id)
    }

    /// A batch in flight.
    pub fn in_flight(&self, id: BatchId) -> Option<&Batch> {
        self.in_flight.iter().find(|batch| batch.id == id)
    }

    /// How full a batch is against the limit that would close it, 0 to 1.
    pub fn fill(&self, batch: &Batch) -> f64 {
        let share = match self.config.max_batch_size {
            Some(most) => batch.items as f64 / most as f64,
            None => batch.bytes as f64 / self.config.max_batch_bytes as f64,
        };
        share.min(1.0)
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
        let (items, bytes) = (&mut batch.items, &mut batch.bytes);
        batch.entries.retain(|Entry { ticket, request }| {
            while back.next_if(|other| other.is_before(*ticket)).is_some() {}
            let is_back = back.next_if_eq(&ticket).is_some();
            if is_back {
                *items -= request.items;
                *bytes -= request.bytes;
            }
            !is_back
        });
        self.pending_bytes -= before - batch.bytes;
        self.pending_calls -= count - batch.entries.len();
    }

    /// What is left of a batch in flight waits for a device, and keeps no other
    /// from being sent, until [`Batcher::requeue`].
    pub fn hold(&mut self, id: BatchId) {
        let batch = self.in_flight.iter_mut().find(|batch| batch.id == id);
        if let Some(batch) = batch {
            batch.is_held = true;
        }
    }

    /// A batch in flight was lost on its way: it waits to be sent again, before
    /// everything that came after it. `false` for a batch not in flight.
    pub fn requeue(&mut self, id: BatchId) -> bool {
        let Some(index) = self.in_flight.iter().position(|batch| batch.id == id) else {
            return false;
        };
        let mut batch = self.in_flight.remove(index);
        batch.is_held = false;
        let place = self
            .sealed
            .partition_point(|sealed| self.age(sealed.id) > self.age(id));
        self.sealed.insert(place, batch);
        true
    }

    /// Gives up a call; `true` if it was pending.
    pub fn abort(&mut self, ticket: Ticket) -> bool {
        let batches = self
            .in_flight
            .iter_mut()
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
        // A batch that was sent again may be older than one in flight before it.
        let mut batches = std::mem::take(&mut self.sealed);
        batches.append(&mut self.in_flight);
        let mut tickets = Vec::with_capacity(self.pending_calls);
        while let Some(oldest) = (0..batches.len()).max_by_key(|at| self.age(batches[*at].id)) {
            let batch = batches.swap_remove(oldest);
            self.forget(&batch);
            tickets.extend(batch.tickets());
        }
        tickets
    }

    /// What should happen next, and when.
    pub fn due(&self, now: Millis) -> Due {
        if self.busy() >= self.config.max_in_flight {
            return Due::Idle;
        }
        if self.is_ready() {
            return Due::Now;
        }
        if self.open.is_empty() {
            return Due::Idle;
        }
        let idle_device = self.busy() == 0;
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

    /// Calls pending: queued and in flight.
    pub fn pending(&self) -> usize {
        self.pending_calls
    }

    /// Bytes pending: queued and in flight.
    pub fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Calls that still fit before the queue is full; not above 0 when full.
    pub fn desired_size(&self) -> i64 {
        let Capacity { calls, bytes } = self.config.queue_capacity;
        if self.pending_bytes >= bytes {
            return 0;
        }
        i64::try_from(calls).unwrap_or(i64::MAX)
            - i64::try_from(self.pending_calls).unwrap_or(i64::MAX)
    }

    /// Batches in flight that a device is at work on.
    fn busy(&self) -> usize {
        self.in_flight.iter().filter(|batch| !batch.is_held).count()
    }

    /// Batches opened since. Numbers may wrap; the distance to the open one does not.
    fn age(&self, id: BatchId) -> u32 {
        self.open.id.0.wrapping_sub(id.0)
    }

    /// A call larger than the whole capacity still fits an empty queue.
    fn has_room(&self, request: &Request) -> bool {
        let Capacity { calls, bytes } = self.config.queue_capacity;
        self.pending_calls == 0
            || (self.pending_calls < calls && self.pending_bytes + request.bytes <= bytes)
    }

    fn make_room(&mut self, request: &Request) -> Result<Option<Ticket>, Error> {
        if self.has_room(request) {
            return Ok(None);
        }
        let full = Error::QueueFull {
            calls: self.pending_calls,
            bytes: self.pending_bytes,
        };
        match self.config.overflow {
            Overflow::Wait => {
                // Sealing at every newcomer would send batches of one.
                if self.open_reaches_capacity(request) {
                    self.seal();
                }
                Ok(None)
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
                Ok(Some(older))
            }
        }
    }

    fn open_reaches_capacity(&self, request: &Request) -> bool {
        let Capacity { calls, bytes } = self.config.queue_capacity;
        self.open.entries.len() >= calls || self.open.bytes + request.bytes > bytes
    }

    fn oldest_of(&self, key: Option<u32>) -> Option<Ticket> {
        let key = key?;
        let queued = self.sealed.iter().chain([&self.open]);
        let mut entries = queued.flat_map(|batch| &batch.entries);
        entries
            .find(|entry| entry.request.key == Some(key))
            .map(|entry| entry.ticket)
    }

    /// Whether the open batch cannot take the call as well.
    fn exceeds(&self, request: &Request) -> bool {
        let BatchConfig {
            max_batch_size,
            max_batch_bytes,
            ..
        } = self.config;
        self.open.bytes + request.bytes > max_batch_bytes
            || max_batch_size.is_some_and(|most| self.open.items + request.items > most)
    }

    fn is_full(&self) -> bool {
        let BatchConfig {
            max_batch_size,
            max_batch_bytes,
            ..
        } = self.config;
        self.open.bytes >= max_batch_bytes
            || max_batch_size.is_some_and(|most| self.open.items >= most)
    }

    fn forget(&mut self, batch: &Batch) {
        self.pending_calls -= batch.entries.len();
        self.pending_bytes -= batch.bytes;
    }
}
