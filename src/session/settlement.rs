//! Settlement: takes what flights brought, and answers the calls of each chunk.
//!
//! What is sent in place of a chunk is decided by `launch`, and what becomes of a batch
//! without a device or without memory by `device_loss` and `out_of_memory_retry`.

use super::Session;
use super::in_flight::InFlight;
use super::payload::Payload;
use super::recovery::ATTEMPTS;
use super::scatter::{Acceptance, Answer};
use super::writes::Answered;
use crate::batch::BatchId;
use crate::device::{Device, Flight, Generation, Readback};
use crate::error::Error;

/// The answers to a chunk of a batch.
pub struct Settlement {
    /// The calls still waited for, in submission order.
    pub answers: Vec<Answer>,
    /// The results, or what went wrong with all of them.
    pub outcome: Result<Readback, Error>,
    /// Whether this was the last chunk of the batch.
    pub is_last: bool,
    /// Chunks of the batch that were sent in place of this one, behind those in flight.
    pub next: Vec<Flight>,
}

impl<D: Device> Session<D> {
    /// Takes what the next flight of a batch brought. `None` for a batch that is not in
    /// flight on the device of this number, for one that goes again in smaller chunks, and
    /// for one that was lost with the device and will be sent again: [`Session::is_lost`]
    /// says so.
    pub fn settle(
        &mut self,
        batch: BatchId,
        generation: Generation,
        outcome: Result<Readback, Error>,
    ) -> Option<Settlement> {
        let at = self.place_in_flight(batch, generation)?;
        self.settle_at(at, outcome)
    }

    /// Takes the outcome of the next chunk of a batch in flight, by its place.
    pub(super) fn settle_at(
        &mut self,
        at: usize,
        outcome: Result<Readback, Error>,
    ) -> Option<Settlement> {
        match &outcome {
            Ok(_) => self.confirm_writes(at),
            Err(Error::OutOfMemory(_)) => self.remake_unusable(at),
            Err(_) => {}
        }
        if self.requeue_lost(at, &outcome) || self.retry_in_smaller_chunks(at, &outcome) {
            return None;
        }
        if let Some(refused) = self.refuse_unusable(at, &outcome) {
            return Some(refused);
        }
        if let Err(error) = &outcome {
            self.lose_writes(at, error);
        }
        let InFlight { batch, way } = &mut self.queue.in_flight_mut()[at];
        let stamps = outcome.as_ref().ok().and_then(Readback::stamps_ns);
        self.metrics.meter.landed(&mut way.timing, stamps);
        let sent = &way.chunks[way.landed];
        if let (Some(timing), Ok(_)) = (&mut way.timing, &outcome) {
            timing.count(sent.kernel_counts(batch, self.programs.recipes()));
        }
        way.landed += 1;
        let is_last = way.landed == way.chunks.len() && way.rest.is_empty();
        let mut answers = sent.answers(batch, self.programs.recipes(), &outcome);
        if let Ok(results) = &outcome {
            for (ticket, error) in sent.stopped(batch, self.programs.recipes(), results) {
                answers.retain(|answer| answer.ticket != ticket);
                self.metrics.rejected += 1;
                batch.payload.failed += 1;
                self.answered.push(Answered {
                    tickets: vec![ticket],
                    outcome: Err(error),
                });
            }
        }
        let (done, acceptance) = (sent.done(batch, &outcome), sent.acceptance);
        let proves = match &outcome {
            Ok(_) => {
                let whole = answers.iter().filter(|answer| answer.is_last()).count();
                self.metrics.settled(whole, sent.engine);
                // A call that was answered with results shows that the device works.
                // Nothing comes back of a call that writes to a tensor: such calls show
                // that the device works when it was not lost for a minute.
                let has_words = || answers.iter().any(|answer| answer.span.words > 0);
                let is_result = || whole > 0 && has_words();
                !sent.is_cpu_share && (self.life.is_old(way.sent) || is_result())
            }
            Err(_) => {
                self.metrics.rejected += answers.len() as u64;
                batch.payload.failed += answers.len() as u64;
                false
            }
        };
        if proves {
            self.life.proved();
            self.recovery.proved();
            batch.payload.losses = 0; // Answered calls are not sent again.
            self.acquit(at);
        }
        let next = match is_last {
            true => {
                self.finish(at);
                Vec::new()
            }
            false => {
                self.queue.answered(at, done);
                self.go_on_behind(at, acceptance)
            }
        };
        Some(Settlement {
            answers,
            outcome,
            is_last,
            next,
        })
    }

    /// Notes a device that was lost with the flight of a batch, by its place in flight:
    /// `true` if the batch is sent again.
    fn requeue_lost(&mut self, at: usize, outcome: &Result<Readback, Error>) -> bool {
        let way = &self.queue.in_flight()[at].way;
        let is_cpu_share = way.chunks[way.landed].is_cpu_share;
        let generation = way.generation;
        let Err(error @ Error::DeviceLost(_)) = outcome else {
            return false;
        };
        if is_cpu_share {
            return false;
        }
        self.lose(generation);
        let goes_again = self.queue.flying(at).payload.losses < ATTEMPTS;
        if goes_again {
            self.lose_writes(at, error);
            self.requeue(at);
        }
        goes_again
    }

    /// Lets go of a batch, by its place in flight, whose last chunk was answered.
    fn finish(&mut self, at: usize) {
        let flying = self.queue.settle(at);
        let outline = flying.outline(self.devices.engine());
        self.metrics.meter.finished(flying.way.timing, &outline);
        self.recycle(flying.batch.payload);
    }

    /// Sends more chunks of a batch, if there are more, behind one that was answered. Behind one
    /// that was not submitted the batch goes again: its calls may read lost tensors, which calls of
    /// that chunk were to write.
    fn go_on_behind(&mut self, at: usize, answered: Acceptance) -> Vec<Flight> {
        let batch = self.queue.flying(at);
        if answered == Acceptance::Failed && !batch.payload.written.is_empty() {
            self.requeue(at);
            return Vec::new();
        }
        self.go_on(at)
    }

    /// Sends more chunks of a batch, if there are more.
    fn go_on(&mut self, at: usize) -> Vec<Flight> {
        if self.is_lost() || self.queue.in_flight()[at].way.rest.is_empty() {
            return Vec::new(); // A lost device's batch is sent again as a whole.
        }
        let start = self
            .metrics
            .meter
            .start(|| self.devices.primary().counters());
        let flights = self.send_more(at);
        let timing = &mut self.queue.in_flight_mut()[at].way.timing;
        let counters = || self.devices.primary().counters();
        self.metrics.meter.went_on(timing, start, counters);
        flights
    }

    /// Gives the memory of a batch that is over to the next.
    pub(super) fn recycle(&mut self, payload: Payload) {
        let Payload { arena, read, .. } = payload;
        self.unread(read);
        self.sweep();
        self.arenas.keep(arena);
    }
}
