//! Batches that are parked until something that they need is there. They hold up
//! nobody: no limit of batches in flight counts them.
//!
//! What they wait for is not known here.

use super::{Batch, BatchId, Call, Queue};

impl<W, P, F> Queue<W, P, F> {
    /// A batch for calls that leave one in flight, by its place, as old as that.
    pub fn offshoot(&mut self, at: usize, payload: P) -> Batch<W, P> {
        let mut other = self.new_batch(payload, 0);
        let batch = &self.in_flight[at].batch;
        // Both stay as old as they were, before all that came later.
        (other.oldest, other.first) = (batch.oldest, batch.first);
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

    /// A batch in flight and one that is parked, by their places, to move calls.
    pub fn flying_and_parked(
        &mut self,
        flying: usize,
        parked: usize,
    ) -> (&mut Batch<W, P>, &mut Batch<W, P>) {
        (&mut self.in_flight[flying].batch, &mut self.parked[parked])
    }

    /// Whether a batch that is parked, by its place, can have these calls as well: they
    /// are younger than its own and fit.
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

    /// The place of the newest parked batch that somebody waits for, without the calls
    /// that were given up.
    pub fn newest_parked(&mut self) -> Option<usize> {
        let at = self.parked.iter().rposition(|batch| !batch.is_empty())?;
        self.parked[at].purge();
        Some(at)
    }

    /// The batches that are parked, oldest first.
    pub fn parked(&self) -> &[Batch<W, P>] {
        &self.parked
    }

    /// The same, to be changed.
    pub fn parked_mut(&mut self) -> &mut [Batch<W, P>] {
        &mut self.parked
    }

    /// The parked batches of which calls are still waited for, oldest first.
    pub fn parked_ids(&self) -> Vec<BatchId> {
        let batches = self.parked.iter().filter(|batch| !batch.is_empty());
        batches.map(|batch| batch.id).collect()
    }

    /// Whether any call is waited for that is parked.
    pub fn has_parked(&self) -> bool {
        self.parked.iter().any(|batch| !batch.is_empty())
    }

    /// Takes a batch that was parked, now in flight, unless too many are: its place
    /// there.
    pub fn resume(&mut self, id: BatchId, way: F) -> Option<usize> {
        let at = self.parked.iter().position(|batch| batch.id == id)?;
        let may_go = self.may_go([&self.parked[at]].into_iter());
        may_go.then(|| {
            let batch = self.parked.remove(at);
            self.fly(batch, way)
        })
    }

    /// Whether the oldest of those parked may go as far as those in flight are
    /// concerned.
    pub fn may_resume(&self) -> bool {
        self.has_parked() && self.may_go(self.parked.iter())
    }

    /// Puts what was parked back among what waits to be taken.
    pub fn resume_all(&mut self) {
        for batch in std::mem::take(&mut self.parked) {
            let place = self.place(&self.sealed, &batch);
            self.sealed.insert(place, batch);
        }
    }
}
