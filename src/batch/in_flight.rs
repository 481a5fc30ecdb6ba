//! Batches in flight, from their launch to their last answer or until they wait again.
//!
//! What the caller knows of the way of a batch travels with the batch. When a batch is
//! sent, and whether a lost one goes again, is not decided here.

use std::ops::Range;

use super::{Batch, BatchId, Priority, Queue};

/// A batch in flight, and what the caller knows of its way.
#[derive(Debug)]
pub struct InFlight<W, P, F> {
    /// The batch. Its list of calls keeps its length, and each call keeps its place.
    pub batch: Batch<W, P>,
    /// What the caller knows of its way.
    pub way: F,
}

impl<W, P, F> Queue<W, P, F> {
    /// Puts a batch in flight, without the calls that were given up; the batch's place
    /// there.
    pub(super) fn fly(&mut self, mut batch: Batch<W, P>, way: F) -> usize {
        batch.is_urgent = false; // If the batch is sent again there is no hurry.
        batch.launch = Some(self.launches);
        self.launches += 1;
        batch.purge();
        self.in_flight.push(InFlight { batch, way });
        self.in_flight.len() - 1
    }

    /// The batches in flight, in the order of their launches.
    pub fn in_flight(&self) -> &[InFlight<W, P, F>] {
        &self.in_flight
    }

    /// The batches in flight, to be changed.
    pub fn in_flight_mut(&mut self) -> &mut [InFlight<W, P, F>] {
        &mut self.in_flight
    }

    /// A batch in flight, by its place.
    pub fn flying(&self, at: usize) -> &Batch<W, P> {
        &self.in_flight[at].batch
    }

    /// A batch in flight, by its place, to be changed.
    pub fn flying_mut(&mut self, at: usize) -> &mut Batch<W, P> {
        &mut self.in_flight[at].batch
    }

    /// Where a batch is among those in flight.
    pub fn place_in_flight(&self, id: BatchId) -> Option<usize> {
        let mut flying = self.in_flight.iter();
        flying.position(|flying| flying.batch.id == id)
    }

    /// Notes that the calls of these places of a batch in flight were answered.
    pub fn answered(&mut self, at: usize, places: Range<usize>) {
        let batch = &mut self.in_flight[at].batch;
        for place in places {
            if let Some(request) = batch.end(place) {
                self.pending_calls -= 1;
                self.pending_bytes -= request.bytes;
            }
        }
    }

    /// Settles a batch in flight, by its place, which is answered, well or not: it leaves
    /// with all its calls.
    pub fn settle(&mut self, at: usize) -> InFlight<W, P, F> {
        let flying = self.in_flight.remove(at);
        self.forget(&flying.batch);
        flying
    }

    /// Puts a batch, by its place, that was lost in flight back among those that wait to be
    /// sent, before everything that came after it. Its calls are of normal priority from
    /// here on, so that batches which were launched in one order go again in that order.
    pub fn requeue(&mut self, at: usize) -> (&mut Batch<W, P>, F) {
        let InFlight { mut batch, way } = self.in_flight.remove(at);
        batch.reunite();
        batch.purge();
        batch.go_as(Priority::Normal);
        let place = self.place_again(&batch);
        self.sealed.insert(place, batch);
        (&mut self.sealed[place], way)
    }
}
