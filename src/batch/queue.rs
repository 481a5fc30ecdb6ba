//! The queue as a state machine, and the owner of every batch.
//!
//! A batch is open until it is sealed, sealed until it is taken, parked while something
//! that it needs is missing, and in flight from its launch to its last answer. It moves
//! between these lists as one value. A ticket leaves exactly once: with its batch, by
//! abort, superseded, or when everything is drained.
//!
//! What waits here is of normal priority. When a batch is due, other priorities, parked
//! batches, batches in flight and backpressure are in files of their own.

use std::cmp::Reverse;

use super::backpressure::Room;
use super::due::FRAME_MS;
use super::restoration::Interrupted;
use super::tiers::Tiers;
use super::{Batch, BatchConfig, BatchId, Capacity, InFlight, Millis, Priority, Request, Ticket};
use crate::error::Error;

/// The answer to an accepted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The call's number.
    pub ticket: Ticket,
    /// The batch that the call is in.
    pub batch: BatchId,
    /// A queued call whose place this call took.
    pub superseded: Option<Ticket>,
}

/// What the queue did to have room for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Whether the open batch was sealed, so that another one is open.
    pub is_sealed: bool,
    /// A queued call whose place the new one takes.
    pub superseded: Option<Ticket>,
}

/// Owns batches and decides when each is sent. `W` is what a call computes, `P` what a
/// batch carries, `F` what is known of the way of a batch in flight.
#[derive(Debug)]
pub struct Queue<W, P, F> {
    pub(super) config: BatchConfig,
    /// Milliseconds that calls wait under [`Policy::Auto`] while the device is busy.
    pub(super) busy_wait: f64,
    pub(super) open: Batch<W, P>,
    /// Whether a flush was asked for that the open batch still waits for.
    pub(super) asked: bool,
    pub(super) sealed: Vec<Batch<W, P>>,
    /// What waits of high and of low priority.
    pub(super) tiers: Tiers<W, P>,
    /// Batches that wait for something besides their turn.
    pub(super) parked: Vec<Batch<W, P>>,
    pub(super) in_flight: Vec<InFlight<W, P, F>>,
    /// How many launches there were.
    pub(super) launches: u64,
    /// The batch that is open again once calls that restore were made.
    pub(super) interrupted: Option<Interrupted<W, P>>,
    next_batch: u32,
    next_ticket: u32,
    pub(super) pending_calls: usize,
    pub(super) pending_bytes: u64,
    /// Bytes of all calls that were ever accepted.
    accepted_bytes: u64,
}

impl<W, P, F> Queue<W, P, F> {
    /// An empty queue, and the payload of its first batch.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when the settings cannot work.
    pub fn new(config: BatchConfig, payload: P) -> Result<Self, Error> {
        config.validate()?;
        Ok(Queue {
            config,
            busy_wait: FRAME_MS,
            open: Batch::new(BatchId(0), payload, 0),
            asked: false,
            sealed: Vec::new(),
            tiers: Tiers::default(),
            parked: Vec::new(),
            in_flight: Vec::new(),
            launches: 0,
            interrupted: None,
            next_batch: 1,
            next_ticket: 0,
            pending_calls: 0,
            pending_bytes: 0,
            accepted_bytes: 0,
        })
    }

    /// Makes room for a call in the open batch, for [`Queue::push`]. `next` makes the
    /// payload of the next batch, and sees that of the full one.
    ///
    /// # Errors
    ///
    /// [`Error::QueueFull`] under [`Overflow::Reject`](super::Overflow::Reject), and under
    /// [`Overflow::Latest`](super::Overflow::Latest) when no queued call has the same key.
    /// No call is taken or superseded then.
    pub fn admit(
        &mut self,
        request: &Request,
        next: impl FnOnce(&mut P) -> P,
    ) -> Result<Admission, Error> {
        let room = self.make_room(request)?;
        let is_due = matches!(room, Room::Sealed) || self.exceeds(&self.open, request);
        let is_sealed = is_due && self.seal(next);
        Ok(Admission {
            is_sealed,
            superseded: room.superseded(),
        })
    }

    /// Takes an admitted call into the open batch, and seals the batch if it is full then.
    pub fn push(
        &mut self,
        request: Request,
        work: W,
        now: Millis,
        next: impl FnOnce(&mut P) -> P,
    ) -> (Ticket, BatchId) {
        let ticket = self.number();
        if self.open.is_empty() {
            self.open.oldest = now;
            self.open.first = ticket;
            // Whoever asked for a flush has given up every call since.
            self.asked = false;
            self.open.is_urgent = false;
        }
        self.open.push(ticket, request, work);
        self.count(&request);
        let batch = self.open.id;
        if self.is_full(&self.open) {
            self.seal(next);
        }
        (ticket, batch)
    }

    /// Counts a call that was just taken.
    pub(super) fn count(&mut self, request: &Request) {
        self.pending_calls += 1;
        self.pending_bytes += request.bytes;
        self.accepted_bytes += request.bytes;
    }

    /// A number for a call that is never queued.
    pub fn number(&mut self) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket = self.next_ticket.wrapping_add(1);
        ticket
    }

    /// Asks for the open batch to be sent. The batch stays open until [`Queue::take`] can
    /// take it, so that the calls made meanwhile go along.
    pub fn flush(&mut self) {
        self.asked = true;
        self.release_raised();
        self.tiers.flush();
    }

    /// Asks for everything queued to be sent, however many batches are in flight: what the
    /// caller does next depends on what was sent. Calls of low priority go in slices all
    /// the same, but for those of [`Queue::promote`].
    pub fn flush_at_once(&mut self) {
        self.flush();
        for batch in self.waiting_mut() {
            batch.is_urgent = batch.priority != Priority::Low;
        }
    }

    /// Whether a batch waits for [`Queue::take`].
    pub fn is_ready(&self) -> bool {
        let asked = self.asked && !self.open.is_empty();
        asked || self.sealed.iter().any(|batch| !batch.is_empty())
    }

    /// Seals the open batch if it has a live call; later calls go to the next batch.
    fn seal(&mut self, next: impl FnOnce(&mut P) -> P) -> bool {
        let sealed = self.close(next);
        let is_sealed = sealed.is_some();
        if is_sealed {
            self.release_raised();
        }
        self.sealed.extend(sealed);
        is_sealed
    }

    pub(super) fn close(&mut self, next: impl FnOnce(&mut P) -> P) -> Option<Batch<W, P>> {
        self.asked = false;
        if self.open.is_empty() {
            return None;
        }
        let payload = next(&mut self.open.payload);
        // The next batch is often as large.
        let mut next = self.new_batch(payload, self.open.calls().len());
        next.is_restoring = self.open.is_restoring;
        Some(std::mem::replace(&mut self.open, next))
    }

    pub(super) fn new_batch(&mut self, payload: P, calls: usize) -> Batch<W, P> {
        let id = BatchId(self.next_batch);
        self.next_batch = self.next_batch.wrapping_add(1);
        Batch::new(id, payload, calls)
    }

    /// Takes the batch whose turn it is, now in flight, unless too many are; its place in
    /// flight. Of normal priority a batch goes that is full or was asked for.
    pub fn take(&mut self, now: Millis, way: F, next: impl FnOnce(&mut P) -> P) -> Option<usize> {
        let batch = match self.turn(now)? {
            Priority::Normal => self.take_normal(next),
            other => self.tiers.tier_mut(other).take_oldest(),
        };
        batch.map(|batch| self.fly(batch, way))
    }

    fn take_normal(&mut self, next: impl FnOnce(&mut P) -> P) -> Option<Batch<W, P>> {
        if self.asked {
            self.release_raised();
        }
        let oldest = self.sealed.iter().position(|batch| !batch.is_empty());
        match oldest {
            Some(at) => Some(self.sealed.remove(at)), // Few batches ever wait.
            None if self.asked => self.close(next),
            None => None,
        }
    }

    /// Takes a batch that waits, besides the open one, and whose calls were all given up.
    pub fn take_abandoned(&mut self) -> Option<Batch<W, P>> {
        if let Some(abandoned) = self.tiers.take_abandoned() {
            return Some(abandoned);
        }
        let lists = [&mut self.sealed, &mut self.parked];
        lists.into_iter().find_map(|batches| {
            let at = batches.iter().position(Batch::is_empty)?;
            Some(batches.remove(at))
        })
    }

    /// Whether the next batch of normal priority may go as far as the batches in flight are
    /// concerned.
    pub(super) fn may_take(&self) -> bool {
        self.may_fly() || self.is_urgent()
    }

    /// Whether fewer batches are in flight than may be.
    pub fn may_fly(&self) -> bool {
        self.in_flight.len() < self.config.max_in_flight
    }

    /// Whether the next batch of normal priority is urgent.
    pub(super) fn is_urgent(&self) -> bool {
        is_oldest_urgent(self.sealed.iter().chain([&self.open]))
    }

    /// Whether the oldest of these batches may go: there is room in flight, or that batch
    /// is urgent.
    pub(super) fn may_go<'a>(&self, waiting: impl Iterator<Item = &'a Batch<W, P>>) -> bool
    where
        W: 'a,
        P: 'a,
    {
        self.may_fly() || is_oldest_urgent(waiting)
    }

    /// Gives up a call; `true` if it was pending.
    pub fn abort(&mut self, ticket: Ticket) -> bool {
        let flying = self.in_flight.iter_mut().map(|flying| &mut flying.batch);
        let mut batches = flying
            .chain(&mut self.parked)
            .chain(&mut self.sealed)
            .chain([&mut self.open])
            .chain(self.tiers.batches_mut());
        let given_up = batches.find_map(|batch| batch.give_up(ticket));
        if let Some(request) = given_up {
            self.pending_calls -= 1;
            self.pending_bytes -= request.bytes;
        }
        given_up.is_some()
    }

    /// Gives up everything pending, oldest first, and lets go of every batch. `payload` is
    /// for the batch that is open then.
    pub fn drain(&mut self, payload: P) -> Vec<Ticket> {
        let next = self.new_batch(payload, 0);
        let open = std::mem::replace(&mut self.open, next);
        self.asked = false;
        let mut batches = std::mem::take(&mut self.sealed);
        batches.push(open);
        batches.extend(self.interrupted.take().map(|interrupted| interrupted.open));
        batches.append(&mut self.parked);
        batches.extend(self.tiers.drain());
        let flying = std::mem::take(&mut self.in_flight).into_iter();
        batches.extend(flying.map(|flying| flying.batch));
        let mut tickets = Vec::with_capacity(self.pending_calls);
        for batch in &mut batches {
            self.forget(batch);
            batch.reunite();
            batch.purge();
        }
        // A batch that was sent again may be older than one in flight before it, and where
        // calls left a batch, the calls of both may alternate by age.
        let mut done = vec![0; batches.len()];
        loop {
            let heads = batches.iter().zip(&mut done);
            let heads = heads.filter_map(|(batch, done)| {
                let call = batch.calls().get(*done)?;
                Some((self.age(call.ticket), call.ticket, done))
            });
            let Some((_, ticket, done)) = heads.max_by_key(|(age, ..)| *age) else {
                return tickets;
            };
            *done += 1;
            tickets.push(ticket);
        }
    }

    /// Seals batches at so many bytes from here on.
    pub fn limit_bytes(&mut self, most: u64) {
        self.config.max_batch_bytes = most;
    }

    /// Has calls wait no longer than so many milliseconds from here on: under
    /// [`BatchConfig::target_latency`] whatever the device does, otherwise while it is busy.
    pub fn limit_wait(&mut self, ms: f64) {
        match self.config.target_latency {
            Some(_) => self.config.max_wait = Some(ms),
            None => self.busy_wait = ms,
        }
    }

    /// The settings.
    pub fn config(&self) -> &BatchConfig {
        &self.config
    }

    /// The batch that the next call joins, if it fits.
    pub fn open(&self) -> &Batch<W, P> {
        &self.open
    }

    /// The open batch, to be changed.
    pub fn open_mut(&mut self) -> &mut Batch<W, P> {
        &mut self.open
    }

    /// The batches that wait: sealed, parked, and the open ones.
    pub fn waiting(&self) -> impl Iterator<Item = &Batch<W, P>> {
        let normal = self.sealed.iter().chain(&self.parked).chain([&self.open]);
        normal.chain(self.tiers.batches())
    }

    /// The batches that wait, to be changed.
    pub fn waiting_mut(&mut self) -> impl Iterator<Item = &mut Batch<W, P>> {
        let closed = self.sealed.iter_mut().chain(&mut self.parked);
        let normal = closed.chain([&mut self.open]);
        normal.chain(self.tiers.batches_mut())
    }

    /// Every batch: waiting, interrupted by calls that restore, or in flight.
    pub fn batches(&self) -> impl Iterator<Item = &Batch<W, P>> {
        let flying = self.in_flight.iter().map(|flying| &flying.batch);
        let interrupted = self.interrupted.iter().map(|interrupted| &interrupted.open);
        flying.chain(self.waiting()).chain(interrupted)
    }

    /// Calls that wait to be sent, and their bytes.
    pub(super) fn waiting_load(&self) -> Capacity {
        let flying = || self.in_flight.iter().map(|flying| &flying.batch);
        Capacity {
            calls: self.pending_calls - flying().map(|batch| batch.live).sum::<usize>(),
            bytes: self.pending_bytes - flying().map(|batch| batch.bytes).sum::<u64>(),
        }
    }

    /// How many calls are pending: queued and in flight.
    pub fn pending(&self) -> usize {
        self.pending_calls
    }

    /// Bytes pending: queued and in flight.
    pub fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Bytes of all calls that were ever accepted, answered or not.
    pub fn accepted_bytes(&self) -> u64 {
        self.accepted_bytes
    }

    /// How many calls were made since this one. Numbers may wrap; the distance to the next
    /// one does not.
    pub(super) fn age(&self, ticket: Ticket) -> u32 {
        self.next_ticket.wrapping_sub(ticket.0)
    }

    /// Where a batch belongs among others, oldest first. Of batches that were one, the calls that
    /// left may read what those that stayed write, and never the other way around.
    pub(super) fn place(&self, others: &[Batch<W, P>], batch: &Batch<W, P>) -> usize {
        let age = |batch: &Batch<W, P>| (self.age(batch.first), Reverse(batch.id));
        let own = age(batch);
        others.partition_point(|other| age(other) > own)
    }

    /// Where a batch that was launched belongs among the sealed ones. Where priorities had
    /// batches overtake older ones, they go again in the order in which they went, because
    /// the later may read what the earlier wrote.
    pub(super) fn place_again(&self, batch: &Batch<W, P>) -> usize {
        if batch.is_restoring {
            return self.place_restoring();
        }
        if !self.tiers.is_used {
            return self.place(&self.sealed, batch);
        }
        let goes_before = |other: &Batch<W, P>| {
            let launches = other.launch.zip(batch.launch);
            launches.is_some_and(|(launch, own)| (launch, other.id) < (own, batch.id))
        };
        self.sealed.partition_point(goes_before)
    }

    pub(super) fn forget(&mut self, batch: &Batch<W, P>) {
        self.pending_calls -= batch.live;
        self.pending_bytes -= batch.bytes;
    }
}

/// Whether the first of these batches that has a live call is urgent.
fn is_oldest_urgent<'a, W: 'a, P: 'a>(mut waiting: impl Iterator<Item = &'a Batch<W, P>>) -> bool {
    let oldest = waiting.find(|batch| !batch.is_empty());
    oldest.is_some_and(|oldest| oldest.is_urgent)
}
