//! Tiers: what waits of high and of low priority, and how it moves to a higher one.
//!
//! Calls of normal priority wait in the queue's own lists. In a tier only the last batch may
//! be open, and there is one only while calls wait. When each goes, `turns` decides.

use super::turns::Turns;
use super::{Batch, BatchId, Millis, Overflow, Policy, Priority, Queue, Request, Ticket};
use crate::error::Error;

/// Calls of a batch of low priority at most: cutting a slice off moves all the others.
const MOST_LOW_CALLS: usize = 512;

/// What waits of one priority.
#[derive(Debug)]
pub(super) struct Tier<W, P> {
    /// Oldest first.
    batches: Vec<Batch<W, P>>,
    /// Whether the last batch takes more calls.
    is_open: bool,
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
pub struct Order<'a, W, P> {
    /// Whether a batch is to go before the call that asks.
    pub precedes_call: &'a dyn Fn(&Batch<W, P>) -> bool,
    /// Whether a batch is to go before a later one.
    pub precedes: &'a Precedes<'a, W, P>,
}

/// Whether the first of two batches is to go before the second.
type Precedes<'a, W, P> = dyn Fn(&Batch<W, P>, &Batch<W, P>) -> bool + 'a;

impl<W, P> Default for Tier<W, P> {
    fn default() -> Self {
        Tier {
            batches: Vec::new(),
            is_open: false,
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
    fn has_calls(&self) -> bool {
        self.batches.iter().any(|batch| !batch.is_empty())
    }

    /// Takes the oldest batch that has a live call.
    pub(super) fn take_oldest(&mut self) -> Option<Batch<W, P>> {
        let at = self.batches.iter().position(|batch| !batch.is_empty())?;
        Some(self.remove(at))
    }

    fn remove(&mut self, at: usize) -> Batch<W, P> {
        self.is_open &= at + 1 < self.batches.len();
        self.batches.remove(at)
    }

    /// The batch that takes more calls, if there is one.
    fn open_mut(&mut self) -> Option<&mut Batch<W, P>> {
        self.batches.last_mut().filter(|_| self.is_open)
    }
}

/// Marks, of batches oldest first, those that a call is to stay behind: `order` says that they
/// precede the call, or another batch that is marked.
fn preceding<W, P>(batches: &[Batch<W, P>], order: &Order<W, P>) -> Vec<bool> {
    let mut precedes = vec![false; batches.len()];
    for (at, batch) in batches.iter().enumerate().rev() {
        let mut later = at + 1..batches.len();
        precedes[at] = (order.precedes_call)(batch)
            || later.any(|later| precedes[later] && (order.precedes)(batch, &batches[later]));
    }
    precedes
}

impl<W, P> Tiers<W, P> {
    /// Whether no batch waits here, so that priorities cost nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.high.batches.is_empty() && self.low.batches.is_empty()
    }

    pub(super) fn has_high(&self) -> bool {
        self.high.has_calls()
    }

    pub(super) fn has_low(&self) -> bool {
        self.low.has_calls()
    }

    pub(super) fn is_high_urgent(&self) -> bool {
        let is_urgent = |batch: &Batch<W, P>| batch.is_urgent && !batch.is_empty();
        self.high.batches.iter().any(is_urgent)
    }

    /// The tier of a priority other than normal.
    fn tier(&self, priority: Priority) -> &Tier<W, P> {
        match priority {
            Priority::Low => &self.low,
            Priority::Normal => unreachable!("the queue's own lists"),
            Priority::High => &self.high,
        }
    }

    /// The tier of a priority other than normal, to be changed.
    pub(super) fn tier_mut(&mut self, priority: Priority) -> &mut Tier<W, P> {
        match priority {
            Priority::Low => &mut self.low,
            Priority::Normal => unreachable!("the queue's own lists"),
            Priority::High => &mut self.high,
        }
    }

    pub(super) fn batches(&self) -> impl Iterator<Item = &Batch<W, P>> {
        self.high.batches.iter().chain(&self.low.batches)
    }

    pub(super) fn batches_mut(&mut self) -> impl Iterator<Item = &mut Batch<W, P>> {
        self.high.batches.iter_mut().chain(&mut self.low.batches)
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
                let at = tier.batches.iter().position(Batch::is_empty)?;
                Some(tier.remove(at))
            })
    }

    /// Lets go of every batch.
    pub(super) fn drain(&mut self) -> Vec<Batch<W, P>> {
        self.is_low_flushed = false;
        (self.high.is_open, self.low.is_open) = (false, false);
        let mut all = std::mem::take(&mut self.high.batches);
        all.append(&mut self.low.batches);
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
        let tier = self.tiers.tier(priority);
        if let Some(open) = tier.batches.last().filter(|_| tier.is_open) {
            let waits = self.config.overflow == Overflow::Wait && !self.has_room(request);
            let is_over = self.exceeds(open, request)
                || waits && self.reaches_capacity(open, request)
                || priority == Priority::Low && open.calls().len() >= MOST_LOW_CALLS;
            self.tiers.tier_mut(priority).is_open = !is_over || open.is_empty();
        }
        if !self.tiers.tier(priority).is_open {
            let mut batch = self.new_batch(payload(), 0);
            batch.priority = priority;
            let tier = self.tiers.tier_mut(priority);
            tier.batches.push(batch);
            tier.is_open = true;
        }
        let open = self.tiers.tier_mut(priority).open_mut();
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
        let open = tier.open_mut().expect("opened for this call");
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
            Priority::High => self.tiers.high.batches.iter().any(is_one),
            Priority::Normal => self.sealed.iter().any(&mut is_one) || is_one(&self.open),
            Priority::Low => self.tiers.low.batches.iter().any(is_one),
        }
    }

    /// Has the waiting batches of lower priority that are to go before a call go before those
    /// of the call's priority. For a normal call these are batches of low priority, which go
    /// when the open batch does.
    pub fn promote(&mut self, to: Priority, order: &Order<W, P>, next: impl FnOnce(&mut P) -> P) {
        let low = &mut self.tiers.low;
        if low.batches.last().is_some_and(order.precedes_call) {
            low.is_open = false;
        }
        if to == Priority::High {
            if (order.precedes_call)(&self.open) {
                let closed = self.close(next);
                self.sealed.extend(closed);
            }
            return self.promote_to_high(order);
        }
        let precedes = preceding(&low.batches, order);
        for (batch, precedes) in low.batches.iter_mut().zip(precedes) {
            batch.is_raised |= precedes;
        }
    }

    fn promote_to_high(&mut self, order: &Order<W, P>) {
        let Tiers { high, low, .. } = &mut self.tiers;
        // Calls of low priority that were to be behind normal ones are normal themselves, so
        // that all low work may go first, and what is normal by now before the rest.
        let (mut all, mut normal) = (Vec::new(), Vec::new());
        for batch in std::mem::take(&mut self.sealed) {
            match batch.is_raised {
                true => all.push(batch),
                false => normal.push(batch),
            }
        }
        all.append(&mut low.batches);
        all.append(&mut normal);
        let precedes = preceding(&all, order);
        if precedes.contains(&true) {
            high.is_open = false; // What waits there would have gone before.
        }
        for (mut batch, precedes) in all.into_iter().zip(precedes) {
            if precedes {
                batch.go_as(Priority::High);
                high.batches.push(batch);
            } else if batch.priority == Priority::Low {
                low.batches.push(batch);
            } else {
                self.sealed.push(batch);
            }
        }
    }

    /// Has low work go that normal calls are to stay behind.
    pub(super) fn release_raised(&mut self) {
        let low = &mut self.tiers.low;
        while let Some(at) = low.batches.iter().position(|batch| batch.is_raised) {
            let mut raised = low.remove(at);
            raised.go_as(Priority::Normal);
            self.sealed.push(raised);
        }
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
        self.tiers.low.batches.insert(0, batch);
    }
}
