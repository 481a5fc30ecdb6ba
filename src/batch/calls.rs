//! Calls that are sent together: their numbers, and what they weigh in all.

use super::Millis;

/// A call's number. Numbers rise and are not reused while a call is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

impl BatchId {
    /// Whether a batch was opened before another, both of this session: numbers wrap as
    /// those of tickets do.
    pub fn is_before(self, other: BatchId) -> bool {
        Ticket(self.0).is_before(Ticket(other.0))
    }
}

/// What a call weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Items, as the op counts them.
    pub items: u64,
    /// What it takes of [`BatchConfig::max_batch_cost`](super::BatchConfig::max_batch_cost), as the op counts it.
    pub cost: u64,
    /// Bytes of operands and results.
    pub bytes: u64,
    /// Calls of one key may take each other's place.
    pub key: Option<u32>,
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
    /// Its oldest call, given up or not, or that of the batch it was divided from:
    /// batches are as old as that.
    pub(super) first: Ticket,
    pub(super) entries: Vec<Entry>,
    pub(super) cost: u64,
    pub(super) bytes: u64,
    /// Whether somebody asked for it now, however many are in flight.
    pub(super) is_urgent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) ticket: Ticket,
    pub(super) request: Request,
}

impl Batch {
    /// One that has memory for so many calls.
    pub(super) fn new(id: BatchId, calls: usize) -> Self {
        Batch {
            id,
            oldest: Millis::default(),
            items: 0,
            first: Ticket(0),
            entries: Vec::with_capacity(calls),
            cost: 0,
            bytes: 0,
            is_urgent: false,
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

    pub(super) fn add(&mut self, request: &Request) {
        self.items += request.items;
        self.cost += request.cost;
        self.bytes += request.bytes;
    }

    fn subtract(&mut self, request: &Request) {
        self.items -= request.items;
        self.cost -= request.cost;
        self.bytes -= request.bytes;
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Request> {
        let is_older = |entry: &Entry| entry.ticket.is_before(ticket);
        let index = self.entries.partition_point(is_older);
        self.entries
            .get(index)
            .filter(|entry| entry.ticket == ticket)?;
        let request = self.entries.remove(index).request;
        self.subtract(&request);
        Some(request)
    }
}
