//! Tiers: what waits of high and of low priority, and how it moves to a higher one.
//!
//! Calls of normal priority wait in the queue's own lists. A tier is like these: an open
//! batch, made for the first call, and sealed ones. When each goes, `turns` decides.

use super::turns::Turns;
use super::{Batch, BatchId, Millis, Overflow, Policy, Priority, Queue, Request, Ticket};
use crate::error::Error;

/// Calls of a batch of low priority at most: cutting a slice off moves all the others.
const MOST_LOW_CALLS: usize = 512;

/// What waits of one priority.
#[derive(Debug)]
pub(super) struct Tier<W, P> {
    open: Option<Batch<W, P>>,
    /// Oldest first.
    sealed: Vec<Batch<W, P>>,
}

/// What waits of other priorities than normal.
#[derive(Debug)]
pub(super) struct Tiers<W, P> {
    high: Tier<W, P>,
    low: Tier<W, P>,
    /// Whether a call of another priority than normal ever came.
    pub(super) is_used: bool,
    /// Whether a flush asked for low work, where nothing goes without.
    pub(super) is_low_flushed: bool,
    /// Whether a call of low priority joined the open batch of normal calls, of which no
    /// clock was told.
    has_joined_normal: bool,
    pub(super) turns: Turns,
}

/// What is to go before what, as far as the caller knows.
#[derive(Clone, Copy, Debug)]
pub struct Order<C, B> {
    /// Whether a batch is to go before the call that asks.
    pub precedes_call: C,
    /// Whether a batch is to go before a later one.
    pub precedes: B,
}

impl<W, P> Default for Tier<W, P> {
    fn default() -> Self {
        Tier {
            open: None,
            sealed: Vec::new(),
        }
    }
}

impl<W, P> Default for Tiers<W, P> {
    fn default() -> Self {
        Tiers {
            high: Tier::default(),
            low: Tier::default(),
            is_used: false,
            is_low_flushed: false,
            has_joined_normal: false,
            turns: Turns::default(),
        }
    }
}

impl<W, P> Tier<W, P> {
    fn batches(&self) -> impl Iterator<Item = &Batch<W, P>> {
        self.sealed.iter().chain(&self.open)
    }

    fn batches_mut(&mut self) -> impl Iterator<Item = &mut Batch<W, P>> {
        self.sealed.iter_mut().chain(&mut self.open)
    }

    fn has_calls(&self) -> bool {
        self.batches().any(|batch| !batch.is_empty())
    }

    /// Takes the oldest batch that has a live call.
    pub(super) fn take_oldest(&mut self) -> Option<Batch<W, P>> {
        let oldest = self.sealed.iter().position(|batch| !batch.is_empty());
        match oldest {
            Some(at) => Some(self.sealed.remove(at)),
            None => self.open.take_if(|open| !open.is_empty()),
        }
    }

    fn seal(&mut self) {
        self.sealed.extend(self.open.take());
    }
}

/// Which of these batches, oldest first, a call is to stay behind: those that `order` says
/// precede the call, and those that precede one of these.
fn preceding<W, P>(
    batches: &[Batch<W, P>],
    order: &Order<impl Fn(&Batch<W, P>) -> bool, impl Fn(&Batch<W, P>, &Batch<W, P>) -> bool>,
) -> Vec<bool> {
    let mut precedes = vec![false; batches.len()];
    for (at, batch) in batches.iter().enumerate().rev() {
        let later = batches.iter().zip(&precedes).skip(at + 1);
        let mut later = later.filter(|(_, precedes)| **precedes);
        precedes[at] =
            (order.precedes_call)(batch) || later.any(|(later, _)| (order.precedes)(batch, later));
    }
    precedes
}

impl<W, P> Tiers<W, P> {
    /// Whether no batch waits here, so that priorities cost nothing.
    pub(super) fn is_empty(&self) -> bool {
        let is_empty = |tier: &Tier<W, P>| tier.open.is_none() && tier.sealed.is_empty();
        is_empty(&self.high) && is_empty(&self.low)
    }

    pub(super) fn has_high(&self) -> bool {
        self.high.has_calls()
    }

    pub(super) fn has_low(&self) -> bool {
        self.low.has_calls()
    }

    pub(super) fn is_high_urgent(&self) -> bool {
        self.high.batches().any(|batch| batch.is_urgent)
    }

    /// The tier of a priority other than normal.
    pub(super) fn tier_mut(&mut self, priority: Priority) -> &mut Tier<W, P> {
        match priority {
            Priority::Low => &mut self.low,
            Priority::Normal => unreachable!("the queue's own lists"),
            Priority::High => &mut self.high,
        }
    }

    pub(super) fn batches(&self) -> impl Iterator<Item = &Batch<W, P>> {
        self.high.batches().chain(self.low.batches())
    }

    pub(super) fn batches_mut(&mut self) -> impl Iterator<Item = &mut Batch<W, P>> {
        self.high.batches_mut().chain(self.low.batches_mut())
    }

    /// Notes that everything queued was asked for.
    pub(super) fn flush(&mut self) {
        self.is_low_flushed = self.has_low();
    }

    /// Takes a batch without live calls.
    pub(super) fn take_abandoned(&mut self) -> Option<Batch<W, P>> {
        [&mut self.high, &mut self.low]
            .into_iter()
            .find_map(|tier| {
                let at = tier.sealed.iter().position(Batch::is_empty);
                match at {
                    Some(at) => Some(tier.sealed.remove(at)),
                    None => tier.open.take_if(|open| open.is_empty()),
                }
            })
    }

    /// Lets go of every batch.
    pub(super) fn drain(&mut self) -> Vec<Batch<W, P>> {
        self.is_low_flushed = false;
        self.high.seal();
        self.low.seal();
        let mut all = std::mem::take(&mut self.high.sealed);
        all.append(&mut self.low.sealed);
        all
    }
}

impl<W, P, F> Queue<W, P, F> {
    /// Whether nothing waits but calls of normal priority.
    pub fn is_all_normal(&self) -> bool {
        self.tiers.is_empty()
    }

    /// The batch that a call of another priority than normal joins, with a place for the
    /// call: a new one with this payload, where there is none. The open batch of normal
    /// priority comes along.
    pub fn open_in(
        &mut self,
        priority: Priority,
        request: &Request,
        payload: impl FnOnce() -> P,
    ) -> (&mut Batch<W, P>, &mut Batch<W, P>) {
        let tier = self.tiers.tier_mut(priority);
        if let Some(open) = tier.open.take() {
            let waits = self.config.overflow == Overflow::Wait && !self.has_room(request);
            let is_over = self.exceeds(&open, request)
                || waits && self.reaches_capacity(&open, request)
                || priority == Priority::Low && open.calls().len() >= MOST_LOW_CALLS;
            let tier = self.tiers.tier_mut(priority);
            match is_over && !open.is_empty() {
                true => tier.sealed.push(open),
                false => tier.open = Some(open),
            }
        }
        if self.tiers.tier_mut(priority).open.is_none() {
            let mut batch = self.new_batch(payload(), 0);
            batch.priority = priority;
            self.tiers.tier_mut(priority).open = Some(batch);
        }
        let open = self.tiers.tier_mut(priority).open.as_mut();
        (open.expect("just made"), &mut self.open)
    }

    /// Makes room for a call of another priority than normal; the queued call whose place it
    /// takes, if it takes one.
    ///
    /// # Errors
    ///
    /// The errors of [`Queue::admit`].
    pub fn admit_in(&mut self, request: &Request) -> Result<Option<Ticket>, Error> {
        Ok(self.make_room(request)?.superseded())
    }

    /// Takes an admitted call into the batch of [`Queue::open_in`].
    pub fn push_in(
        &mut self,
        priority: Priority,
        request: Request,
        work: W,
        now: Millis,
    ) -> (Ticket, BatchId) {
        let ticket = self.number();
        self.count(&request);
        self.tiers.is_used = true;
        match priority {
            Priority::High => self.tiers.turns.called_high(now),
            // Whoever asked for a flush has given up every call since.
            _ if !self.tiers.has_low() => self.tiers.is_low_flushed = false,
            _ => {}
        }
        let tier = self.tiers.tier_mut(priority);
        let open = tier.open.as_mut().expect("opened for this call");
        if open.is_empty() {
            (open.oldest, open.first) = (now, ticket);
            open.is_urgent = false;
        }
        open.push(ticket, request, work);
        (ticket, open.id)
    }

    /// Whether a waiting batch of this priority is such a one. Parked batches do not count.
    pub fn any_in(&self, priority: Priority, mut is_one: impl FnMut(&Batch<W, P>) -> bool) -> bool {
        match priority {
            Priority::High => self.tiers.high.batches().any(is_one),
            Priority::Normal => self.sealed.iter().any(&mut is_one) || is_one(&self.open),
            Priority::Low => self.tiers.low.batches().any(is_one),
        }
    }

    /// Has the waiting batches of lower priority that are to go before a call go before those
    /// of the call's priority. For a normal call these are batches of low priority, which go
    /// when the open batch does.
    pub fn promote(
        &mut self,
        to: Priority,
        order: &Order<impl Fn(&Batch<W, P>) -> bool, impl Fn(&Batch<W, P>, &Batch<W, P>) -> bool>,
        next: impl FnOnce(&mut P) -> P,
    ) {
        let low = &mut self.tiers.low;
        if low.open.as_ref().is_some_and(&order.precedes_call) {
            low.seal();
        }
        if to == Priority::High {
            if (order.precedes_call)(&self.open) {
                let closed = self.close(next);
                self.sealed.extend(closed);
            }
            return self.promote_to_high(order);
        }
        let precedes = preceding(&low.sealed, order);
        for (batch, precedes) in low.sealed.iter_mut().zip(precedes) {
            batch.is_raised |= precedes;
        }
    }

    fn promote_to_high(
        &mut self,
        order: &Order<impl Fn(&Batch<W, P>) -> bool, impl Fn(&Batch<W, P>, &Batch<W, P>) -> bool>,
    ) {
        let Tiers { high, low, .. } = &mut self.tiers;
        // Calls of low priority that were to be behind normal ones are normal themselves, so
        // that all low work may go first, and what is normal by now before the rest.
        let sealed = std::mem::take(&mut self.sealed);
        let (mut all, normal): (Vec<_>, Vec<_>) =
            sealed.into_iter().partition(|batch| batch.is_raised);
        all.append(&mut low.sealed);
        all.extend(normal);
        let precedes = preceding(&all, order);
        if precedes.contains(&true) {
            high.seal(); // What waits there would have gone before.
        }
        for (mut batch, precedes) in all.into_iter().zip(precedes) {
            if precedes {
                batch.go_as(Priority::High);
                high.sealed.push(batch);
            } else if batch.priority == Priority::Low {
                low.sealed.push(batch);
            } else {
                self.sealed.push(batch);
            }
        }
    }

    /// Has low work go that normal calls are to stay behind.
    pub(super) fn release_raised(&mut self) {
        let raised = self
            .tiers
            .low
            .sealed
            .extract_if(.., |batch| batch.is_raised);
        self.sealed.extend(raised.map(|mut batch| {
            batch.go_as(Priority::Normal);
            batch
        }));
    }

    /// Notes that a call of low priority joins the open batch of normal calls.
    pub fn join_normal(&mut self) {
        self.tiers.has_joined_normal = true;
    }

    /// Asks for the open batch where a call of low priority joined it, unless the caller
    /// alone decides when batches go.
    pub fn flush_joined(&mut self) {
        let has_joined = std::mem::take(&mut self.tiers.has_joined_normal);
        if has_joined && self.config.policy != Policy::Manual {
            self.flush();
        }
    }

    /// Has calls of low priority that left a slice wait again, before all other low work.
    pub fn wait_in_low(&mut self, mut batch: Batch<W, P>) {
        batch.launch = None; // None of these calls was ever sent.
        self.tiers.low.sealed.insert(0, batch);
    }
}
