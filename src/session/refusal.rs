//! Refusal: the calls of a chunk that name a buffer of the program's which the device cannot
//! use, destroyed or of another device, are rejected, and the rest of the batch goes again.
//!
//! A submission that names such a buffer is refused as a whole: nothing of it was computed.
//! The device finds out which buffers it cannot use.

use super::Session;
use super::in_flight::{InFlight, Retry};
use super::scatter::Answer;
use super::settlement::Settlement;
use crate::device::{Device, Readback};
use crate::error::Error;

impl<D: Device> Session<D> {
    /// Rejects those calls of a chunk that name an unusable tensor, if the chunk failed over
    /// that: the others go again when all flights of the batch have landed. `None` where the
    /// chunk has no others.
    pub(super) fn refuse_unusable(
        &mut self,
        at: usize,
        outcome: &Result<Readback, Error>,
    ) -> Option<Settlement> {
        let Err(error @ Error::InvalidInput(_)) = outcome else {
            return None;
        };
        let InFlight { batch, way } = &mut self.queue.in_flight_mut()[at];
        let sent = &way.chunks[way.landed];
        let device = self.devices.primary();
        let is_refused = |place: &usize| {
            let mut named = batch.payload.tensors_of(&batch.calls()[*place]).iter();
            named.any(|tensor| device.is_unusable(*tensor))
        };
        let places = sent.done(batch, outcome);
        let (count, refused) = (places.len(), places.filter(is_refused).collect::<Vec<_>>());
        if sent.is_cpu_share || refused.is_empty() || refused.len() == count {
            return None;
        }
        if !self.may_retract(at) {
            return None;
        }
        self.retract(at);
        let InFlight { batch, way } = &mut self.queue.in_flight_mut()[at];
        let sent = &way.chunks[way.landed];
        let is_theirs = |answer: &Answer| {
            let mut places = refused.iter();
            places.any(|place| batch.calls()[*place].ticket == answer.ticket)
        };
        let mut answers = sent.answers(batch, self.programs.recipes(), outcome);
        answers.retain(is_theirs);
        way.retry.get_or_insert(Retry::WithoutRefused);
        batch.payload.failed += answers.len() as u64;
        self.metrics.rejected += answers.len() as u64;
        for place in refused {
            self.queue.answered(at, place..place + 1);
        }
        self.land_for_retry(at);
        Some(Settlement {
            answers,
            outcome: Err(error.clone()),
            is_last: false,
            next: Vec::new(),
        })
    }

    /// Takes a flight of a batch that goes again: `true` where that was the last in flight, and
    /// the batch may be sent.
    pub(super) fn land_for_retry(&mut self, at: usize) -> bool {
        let way = &mut self.queue.in_flight_mut()[at].way;
        way.rest.clear();
        // The flights behind are computed again too: results settle in order.
        way.landed += 1;
        let is_last = way.landed == way.chunks.len();
        if is_last && way.retry == Some(Retry::WithoutRefused) {
            self.requeue(at);
        }
        is_last
    }
}
