//! The calls of one batch: a list that the batch owns, and what its live calls weigh.
//!
//! A call that is given up or answered stays in the list, no longer live, so that the
//! places of other calls stay right. It leaves the list when the batch is taken to be sent.
//! When that is, the queue decides.

use super::{Call, Millis, Priority, Request, Ticket};
use std::ops::Range;

/// A batch's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId(pub u32);

impl BatchId {
    /// Whether a batch was opened before another one of this session: numbers wrap as those
    /// of tickets do.
    pub fn is_before(self, other: BatchId) -> bool {
        Ticket(self.0).is_before(Ticket(other.0))
    }
}

/// Calls that are sent together, and a payload of the caller's.
#[derive(Debug)]
pub struct Batch<W, P> {
    /// The batch's number.
    pub id: BatchId,
    /// The oldest batch that ever held one of these calls: an older one than this where
    /// calls left that one for this.
    pub origin: BatchId,
    /// When the oldest call was taken.
    pub oldest: Millis,
    /// The priority of the calls.
    pub priority: Priority,
    /// What the caller keeps with the batch.
    pub payload: P,
    /// The ticket that says how old the batch is: that of its oldest call, live or not, or
    /// that of the batch which its calls left.
    pub(super) first: Ticket,
    /// The number of the batch's last launch, if it was ever launched.
    pub(super) launch: Option<u64>,
    /// The calls, in two runs, each in the order of tickets. Of a batch that waits the second
    /// run, the back, is empty.
    calls: Vec<Call<W>>,
    back: usize,
    /// How many calls are live; the weights of these follow.
    pub(super) live: usize,
    pub(super) items: u64,
    pub(super) cost: u64,
    pub(super) bytes: u64,
    /// Whether somebody asked for the batch now, however many are in flight.
    pub(super) is_urgent: bool,
    /// Whether this batch is of calls of low priority and goes with those of a higher one: before
    /// the open batch, or already as one of that priority.
    pub(super) is_raised: bool,
    /// Whether these calls write anew what went with the last device.
    pub is_restoring: bool,
}

impl<W, P> Batch<W, P> {
    /// A batch without calls, with memory for so many.
    pub fn new(id: BatchId, payload: P, calls: usize) -> Self {
        Batch {
            id,
            origin: id,
            oldest: Millis::default(),
            priority: Priority::Normal,
            payload,
            first: Ticket(0),
            launch: None,
            calls: Vec::with_capacity(calls),
            back: 0,
            live: 0,
            items: 0,
            cost: 0,
            bytes: 0,
            is_urgent: false,
            is_raised: false,
            is_restoring: false,
        }
    }

    /// Has the batch go with those of another priority than low.
    pub(super) fn go_as(&mut self, priority: Priority) {
        self.is_raised |= self.priority == Priority::Low;
        self.priority = priority;
    }

    /// All calls, live or not.
    pub fn calls(&self) -> &[Call<W>] {
        &self.calls
    }

    /// What the calls compute and the payload, to be changed.
    pub fn works_and_payload(&mut self) -> (impl Iterator<Item = &mut W>, &mut P) {
        let works = self.calls.iter_mut().map(|call| &mut call.work);
        (works, &mut self.payload)
    }

    /// The calls that are not at the back.
    pub fn ahead(&self) -> &[Call<W>] {
        &self.calls[..self.calls.len() - self.back]
    }

    /// The calls at the back.
    pub fn behind(&self) -> &[Call<W>] {
        &self.calls[self.calls.len() - self.back..]
    }

    /// The calls at the back, and the payload to be changed.
    pub fn behind_and_payload(&mut self) -> (&[Call<W>], &mut P) {
        let from = self.calls.len() - self.back;
        (&self.calls[from..], &mut self.payload)
    }

    /// The tickets of the live calls; oldest first while the batch waits.
    pub fn live_tickets(&self) -> impl Iterator<Item = Ticket> {
        let live = self.calls.iter().filter(|call| call.is_live);
        live.map(|call| call.ticket)
    }

    /// How many calls are live.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Whether no call is live.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Adds a call that is younger than all others.
    pub fn push(&mut self, ticket: Ticket, request: Request, work: W) {
        self.add(&request);
        self.calls.push(Call {
            ticket,
            request,
            is_live: true,
            work,
        });
    }

    /// Where the call of a ticket is, live or not, while the batch waits.
    pub fn place(&self, ticket: Ticket) -> Option<usize> {
        self.place_in(0..self.calls.len(), ticket)
    }

    fn place_in(&self, run: Range<usize>, ticket: Ticket) -> Option<usize> {
        let calls = &self.calls[run.clone()];
        let at = calls.partition_point(|call| call.ticket.is_before(ticket));
        let is_it = calls.get(at).is_some_and(|call| call.ticket == ticket);
        is_it.then_some(run.start + at)
    }

    /// Gives up the call of a ticket; its weight, if it was a live call of this batch.
    pub(super) fn give_up(&mut self, ticket: Ticket) -> Option<Request> {
        let behind = self.calls.len() - self.back;
        let mut runs = [0..behind, behind..self.calls.len()].into_iter();
        let at = runs.find_map(|run| self.place_in(run, ticket))?;
        self.end(at)
    }

    /// Ends a call, by its place: it is live no more. Its weight, if it was live.
    pub(super) fn end(&mut self, at: usize) -> Option<Request> {
        let call = &mut self.calls[at];
        if !std::mem::take(&mut call.is_live) {
            return None;
        }
        let request = call.request;
        self.subtract(&request);
        Some(request)
    }

    /// Lets go of the calls that are not live.
    pub fn purge(&mut self) {
        if self.live < self.calls.len() {
            self.calls.retain(|call| call.is_live);
        }
    }

    /// Lets go of all calls, none of which is live.
    pub fn clear(&mut self) {
        self.calls.clear();
    }

    /// Moves the chosen calls of a batch that waited to its back.
    pub fn move_to_back(&mut self, is_chosen: impl Fn(&W) -> bool) {
        let all = std::mem::take(&mut self.calls).into_iter();
        let (back, ahead): (Vec<_>, Vec<_>) = all.partition(|call| is_chosen(&call.work));
        self.back = back.len();
        self.calls = ahead;
        self.calls.extend(back);
    }

    /// Puts the calls back into the order of their tickets.
    pub(super) fn reunite(&mut self) {
        let behind = self
            .calls
            .split_off(self.calls.len() - std::mem::take(&mut self.back));
        self.calls = merge(std::mem::take(&mut self.calls), behind);
    }

    /// Takes the marked calls out of a batch that waits. `leaves` has a mark for each.
    pub fn extract(&mut self, leaves: &[bool]) -> Vec<Call<W>> {
        let (mut staying, mut leaving) = (Vec::new(), Vec::new());
        for (call, leaves) in std::mem::take(&mut self.calls).into_iter().zip(leaves) {
            if *leaves {
                if call.is_live {
                    self.subtract(&call.request);
                }
                leaving.push(call);
            } else {
                staying.push(call);
            }
        }
        self.calls = staying;
        leaving
    }

    /// Takes calls that left a batch of that origin, all younger than the calls of this
    /// one.
    pub fn append(&mut self, calls: Vec<Call<W>>, origin: BatchId) {
        if origin.is_before(self.origin) {
            self.origin = origin;
        }
        for call in calls.iter().filter(|call| call.is_live) {
            self.add(&call.request);
        }
        match self.calls.is_empty() {
            true => self.calls = calls,
            false => self.calls.extend(calls),
        }
    }

    fn add(&mut self, request: &Request) {
        self.live += 1;
        self.items += request.items;
        self.cost += request.cost;
        self.bytes += request.bytes;
    }

    fn subtract(&mut self, request: &Request) {
        self.live -= 1;
        self.items -= request.items;
        self.cost -= request.cost;
        self.bytes -= request.bytes;
    }
}

/// Makes one run of two, in the order of tickets.
fn merge<W>(own: Vec<Call<W>>, others: Vec<Call<W>>) -> Vec<Call<W>> {
    if others.is_empty() {
        return own;
    }
    let mut merged = Vec::with_capacity(own.len() + others.len());
    let mut own = own.into_iter().peekable();
    for other in others {
        while let Some(older) = own.next_if(|own| own.ticket.is_before(other.ticket)) {
            merged.push(older);
        }
        merged.push(other);
    }
    merged.extend(own);
    merged
}
