//! Batches that are divided, and those set aside until something that they need
//! is there. They hold up nobody: no limit of batches in flight counts them.
//!
//! What they wait for is not known here.

use super::{Batch, BatchId, Batcher, Ticket};

impl Batcher {
    /// Parts the marked calls of a batch in flight from the others: they are a
    /// batch of their own, set aside. `leaves` has a mark for each call, and
    /// some of them stay.
    pub fn divide(&mut self, id: BatchId, leaves: &[bool]) -> Option<BatchId> {
        let mut other = self.new_batch(0);
        let batch = self.in_flight.iter_mut().find(|batch| batch.id == id)?;
        batch.divide(leaves, &mut other);
        // Both stay as old as they were, before all that came later.
        (other.oldest, other.first) = (batch.oldest, batch.first);
        let id = other.id;
        self.put_aside(other);
        Some(id)
    }

    /// Moves the marked calls of a batch in flight to one that is set aside, if they
    /// are younger than its own and fit. A batch that they all leave is no more.
    pub fn join(&mut self, id: BatchId, leaves: &[bool], into: BatchId) -> bool {
        let (config, aside) = (&self.config, &mut self.aside);
        let Some(other) = aside.iter_mut().find(|batch| batch.id == into) else {
            return false;
        };
        let Some(at) = self.in_flight.iter().position(|batch| batch.id == id) else {
            return false;
        };
        let batch = &mut self.in_flight[at];
        let newest = other.entries.last().map(|entry| entry.ticket);
        let (mut items, mut cost, mut bytes) = (other.items, other.cost, other.bytes);
        let marked = batch.entries.iter().zip(leaves);
        for (entry, _) in marked.filter(|(_, leaves)| **leaves) {
            if newest.is_some_and(|newest| !newest.is_before(entry.ticket)) {
                return false;
            }
            items += entry.request.items;
            cost += entry.request.cost;
            bytes += entry.request.bytes;
        }
        let fits = config.max_batch_size.is_none_or(|most| items <= most);
        if !fits || cost > config.max_batch_cost || bytes > config.max_batch_bytes {
            return false;
        }
        batch.divide(leaves, other);
        if batch.is_empty() {
            self.in_flight.remove(at);
        }
        true
    }

    /// Sets a batch in flight aside, whole.
    pub fn set_aside(&mut self, id: BatchId) {
        if let Some(index) = self.in_flight.iter().position(|batch| batch.id == id) {
            let batch = self.in_flight.remove(index);
            self.put_aside(batch);
        }
    }

    fn put_aside(&mut self, batch: Batch) {
        let place = self.place(&self.aside, &batch);
        self.aside.insert(place, batch);
    }

    /// The batches set aside of which calls are still waited for, oldest first.
    pub fn aside(&mut self) -> Vec<BatchId> {
        self.aside.retain(|batch| !batch.is_empty());
        self.aside.iter().map(|batch| batch.id).collect()
    }

    /// Whether any call is waited for that was set aside.
    pub fn has_aside(&self) -> bool {
        self.aside.iter().any(|batch| !batch.is_empty())
    }

    /// Whether a call of a batch that was set aside is waited for.
    pub fn is_aside(&self, id: BatchId, ticket: Ticket) -> bool {
        let mut batches = self.aside.iter().filter(|batch| batch.id == id);
        batches.any(|batch| batch.tickets().any(|other| other == ticket))
    }

    /// Takes a batch that was set aside, now in flight, unless too many are.
    pub fn resume(&mut self, id: BatchId) -> bool {
        let index = self.aside.iter().position(|batch| batch.id == id);
        match index.filter(|at| self.may_go([&self.aside[*at]].into_iter())) {
            Some(index) => {
                let batch = self.aside.remove(index);
                self.fly(batch);
                true
            }
            None => false,
        }
    }

    /// Whether the oldest of those set aside may go as far as those in flight are
    /// concerned.
    pub fn may_resume(&self) -> bool {
        self.has_aside() && self.may_go(self.aside.iter())
    }

    /// Puts what was set aside back among what waits to be taken.
    pub fn resume_all(&mut self) {
        for batch in std::mem::take(&mut self.aside) {
            let place = self.place(&self.sealed, &batch);
            self.sealed.insert(place, batch);
        }
    }

    /// Whether a batch waits to be taken or resumed.
    pub fn is_waiting(&self, id: BatchId) -> bool {
        let mut waiting = self.sealed.iter().chain(&self.aside);
        waiting.any(|batch| batch.id == id && !batch.is_empty())
    }
}

impl Batch {
    /// Moves the marked calls to `other`, whose own are older.
    fn divide(&mut self, leaves: &[bool], other: &mut Batch) {
        let entries = std::mem::take(&mut self.entries);
        (self.items, self.cost, self.bytes) = (0, 0, 0);
        for (entry, leaves) in entries.into_iter().zip(leaves) {
            let home = if *leaves { &mut *other } else { &mut *self };
            home.add(&entry.request);
            home.entries.push(entry);
        }
    }
}
