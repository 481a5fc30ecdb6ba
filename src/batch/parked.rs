//! Parked batches: they wait until something that they need is there. No limit of batches
//! in flight counts them.
//!
//! What a parked batch waits for is not known here.

use std::cmp::Reverse;

use super::{Batch, BatchId, Call, Priority, Queue};

impl<W, P, F> Queue<W, P, F> {
    /// Makes a batch for calls that leave a batch in flight, by its place; it is as old as
    /// that one.
    pub fn offshoot(&mut self, at: usize, payload: P) -> Batch<W, P> {
        let mut other = self.new_batch(payload, 0);
        let batch = &self.in_flight[at].batch;
        // The new batch is as old as the batch in flight: ahead of all that came later.
        (other.oldest, other.first) = (batch.oldest, batch.first);
        (other.priority, other.launch) = (batch.priority, batch.launch);
        (other.is_raised, other.is_restoring) = (batch.is_raised, batch.is_restoring);
        other
    }

    /// Parks a batch of calls that left another one.
    pub fn park(&mut self, batch: Batch<W, P>) {
        let place = self.place(&self.parked, &batch);
        self.parked.insert(place, batch);
    }

    /// Parks a batch in flight, by its place.
    pub fn park_flying(&mut self, at: usize) {
        let mut batch = self.in_flight.remove(at).batch;
        batch.reunite();
        self.park(batch);
    }

    /// A batch in flight and a parked one, by their places, to move calls between them.
    pub fn flying_and_parked(
        &mut self,
        flying: usize,
        parked: usize,
    ) -> (&mut Batch<W, P>, &mut Batch<W, P>) {
        (&mut self.in_flight[flying].batch, &mut self.parked[parked])
    }

    /// Whether a parked batch, by its place, can have these calls as well: they are younger
    /// than its own calls, and fit.
    pub fn may_join<'a>(&self, at: usize, calls: impl Iterator<Item = &'a Call<W>>) -> bool
    where
        W: 'a,
    {
        let other = &self.parked[at];
        let newest = other.calls().last().map(|call| call.ticket);
        let (mut items, mut cost, mut bytes) = (other.items, other.cost, other.bytes);
        for Call {
            ticket, request, ..
        } in calls
        {
            if newest.is_some_and(|newest| !newest.is_before(*ticket)) {
                return false;
            }
            items += request.items;
            cost += request.cost;
            bytes += request.bytes;
        }
        let config = &self.config;
        let fits = config.max_batch_size.is_none_or(|most| items <= most);
        fits && cost <= config.max_batch_cost && bytes <= config.max_batch_bytes
    }

    /// Purges the newest parked batch that has a live call; its place.
    pub fn newest_parked(&mut self) -> Option<usize> {
        let at = self.parked.iter().rposition(|batch| !batch.is_empty())?;
        self.parked[at].purge();
        Some(at)
    }

    /// The parked batches, oldest first.
    pub fn parked(&self) -> &[Batch<W, P>] {
        &self.parked
    }

    /// The parked batches, to be changed.
    pub fn parked_mut(&mut self) -> &mut [Batch<W, P>] {
        &mut self.parked
    }

    /// The parked batches with live calls, oldest first.
    pub fn parked_ids(&self) -> Vec<BatchId> {
        let batches = self.parked.iter().filter(|batch| !batch.is_empty());
        batches.map(|batch| batch.id).collect()
    }

    /// Whether a live call is parked.
    pub fn has_parked(&self) -> bool {
        self.parked.iter().any(|batch| !batch.is_empty())
    }

    /// Whether a batch that goes again waits before a parked one. Before one that restores
    /// nothing goes: all others wait for what that one writes.
    pub fn is_behind_sealed(&self, id: BatchId) -> bool {
        let mut parked = self.parked.iter();
        let Some(parked) = parked.find(|batch| batch.id == id && !batch.is_restoring) else {
            return false;
        };
        let again = |batch: &&Batch<W, P>| batch.launch.is_some() && !batch.is_empty();
        let age = |batch: &Batch<W, P>| (self.age(batch.first), Reverse(batch.id));
        let mut again = self.sealed.iter().filter(again);
        again.any(|batch| age(batch) > age(parked))
    }

    /// Takes a parked batch, now in flight, unless too many are; its place in flight.
    pub fn resume(&mut self, id: BatchId, way: F) -> Option<usize> {
        let at = self.parked.iter().position(|batch| batch.id == id)?;
        let may_go = self.may_go([&self.parked[at]].into_iter());
        may_go.then(|| {
            let batch = self.parked.remove(at);
            self.fly(batch, way)
        })
    }

    /// Whether the oldest parked batch may go as far as the batches in flight are
    /// concerned.
    pub fn may_resume(&self) -> bool {
        self.has_parked() && self.may_go(self.parked.iter())
    }

    /// Puts the parked batches back among those that wait to be taken.
    pub fn resume_all(&mut self) {
        for mut batch in std::mem::take(&mut self.parked) {
            batch.go_as(Priority::Normal);
            let place = self.place_again(&batch);
            self.sealed.insert(place, batch);
        }
    }
}
