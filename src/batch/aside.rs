//! Batches that are divided, and those set aside until something that they need
//! is there. They hold up nobody: no limit of batches in flight counts them.
//!
//! What they wait for is not known here.

use super::batcher::{Batch, BatchId, Batcher};

impl Batcher {
    /// Parts the marked calls of a batch in flight from the others: they are a
    /// batch of their own, set aside. `leaves` has a mark for each call, and
    /// some of them stay.
    pub fn divide(&mut self, id: BatchId, leaves: &[bool]) -> Option<BatchId> {
        let mut other = self.new_batch(0);
        let batch = self.in_flight.iter_mut().find(|batch| batch.id == id)?;
        batch.divide(leaves, &mut other);
        other.oldest = batch.oldest;
        let id = other.id;
        self.put_aside(other);
        Some(id)
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

    /// Whether a call is waited for that was set aside.
    pub fn has_aside(&self) -> bool {
        self.aside.iter().any(|batch| !batch.is_empty())
    }

    /// Takes a batch that was set aside, now in flight, unless too many are.
    pub fn resume(&mut self, id: BatchId) -> bool {
        let index = self.aside.iter().position(|batch| batch.id == id);
        match index.filter(|_| self.may_fly()) {
            Some(index) => {
                let batch = self.aside.remove(index);
                self.in_flight.push(batch);
                true
            }
            None => false,
        }
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
    /// Moves the marked calls to `other`, which is empty.
    fn divide(&mut self, leaves: &[bool], other: &mut Batch) {
        let entries = std::mem::take(&mut self.entries);
        for (entry, leaves) in entries.into_iter().zip(leaves) {
            let home = if *leaves { &mut *other } else { &mut *self };
            if home.is_empty() {
                home.first = entry.ticket;
            }
            home.entries.push(entry);
        }
        for moved in &other.entries {
            other.items += moved.request.items;
            other.bytes += moved.request.bytes;
        }
        self.items -= other.items;
        self.bytes -= other.bytes;
    }
}
