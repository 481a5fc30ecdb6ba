//! Batches on their way: launched in pieces, settled piece by piece, and their
//! memory given to the next.
//!
//! When one is due is the batcher's business, and what becomes of those on a
//! lost device `loss`'s.

use super::answers::{Answer, Sent};
use super::facts::{Batch, Timing};
use super::load::Load;
use super::loss::ATTEMPTS;
use super::{SPARES, Session};
use crate::batch::{BatchId, Millis};
use crate::device::{Device, Engine, Flight, Generation, Readback};
use crate::error::Error;
use crate::plan;

/// A batch on its way. Await its flights in order, and give each to
/// [`Session::settle`].
pub struct Launch {
    /// The batch.
    pub batch: BatchId,
    /// The life of the device it was sent to.
    pub generation: Generation,
    /// The results to come of each of its pieces.
    pub flights: Vec<Flight>,
}

/// The answers to a piece of a batch.
#[derive(Debug)]
pub struct Settlement {
    /// The calls still waited for, in submission order.
    pub answers: Vec<Answer>,
    /// The results, or what went wrong with all of them.
    pub outcome: Result<Readback, Error>,
    /// Whether the batch has no more pieces on their way.
    pub is_last: bool,
}

/// A load on its way, kept whole: it is sent again if the device is lost.
#[derive(Debug)]
pub(super) struct Flying {
    pub(super) load: Load,
    pub(super) generation: Generation,
    pub(super) sent: Millis,
    /// Its pieces, in order.
    pub(super) pieces: Vec<Sent>,
    /// How many of them are back.
    pub(super) landed: usize,
    /// Where its time goes, if anybody asked.
    pub(super) timing: Option<Timing>,
}

impl Flying {
    fn batch(&self, engine: Engine) -> Batch {
        let tickets = &self.load.tickets;
        Batch {
            first: tickets[0],
            last: tickets[tickets.len() - 1],
            calls: tickets.len(),
            pieces: self.pieces.len(),
            engine,
        }
    }
}

impl<D: Device> Session<D> {
    /// Sends the next batch that is full or was asked for, unless too many are
    /// on their way or the device is lost. Encoding and submission happen here,
    /// synchronously.
    pub fn launch(&mut self, now: Millis) -> Option<Launch> {
        if self.lost {
            return None;
        }
        let mut load = match self.resume(now) {
            Some(load) => load,
            None => self.take(now)?,
        };
        let id = load.id;
        let oldest = self.batcher.in_flight(id).map(|batch| batch.oldest);
        let waited = oldest.map_or(0.0, |oldest| now.0 - oldest.0);
        let start = self.meter.start(|| self.device.counters());
        let (pieces, flights) = self.send(&mut load);
        let timing = self.meter.encoded(start, || self.device.counters(), waited);
        let generation = self.generation;
        self.in_flight.push(Flying {
            load,
            generation,
            sent: now,
            pieces,
            landed: 0,
            timing,
        });
        Some(Launch {
            batch: id,
            generation,
            flights,
        })
    }

    /// The next batch of the queue, as far as it can go.
    fn take(&mut self, now: Millis) -> Option<Load> {
        self.drop_abandoned();
        loop {
            let id = self.batcher.take()?;
            self.roll(self.batcher.open_batch());
            let load = self.claim(id, now);
            if let Some(load) = self.sift(load, now) {
                return Some(load);
            }
        }
    }

    /// The load of a batch that was just taken, with the calls still waited for.
    pub(super) fn claim(&mut self, id: BatchId, now: Millis) -> Load {
        let index = self.sealed.iter().position(|load| load.id == id);
        let mut load = self.sealed.remove(index.expect("both know of it"));
        let batch = self.batcher.in_flight(id).expect("just taken");
        if !load.is_sent {
            self.waits.add(now.0 - batch.oldest.0);
            let fill = self.batcher.fill(batch);
            self.counts.batch(batch.tickets().len(), fill);
        }
        load.is_sent = true;
        load.keep(batch.tickets());
        load
    }

    /// Gives back the memory of batches whose calls were all given up.
    fn drop_abandoned(&mut self) {
        for at in (0..self.sealed.len()).rev() {
            let id = self.sealed[at].id;
            if !self.batcher.is_waiting(id) && self.batcher.in_flight(id).is_none() {
                let abandoned = self.sealed.remove(at);
                self.recycle(abandoned);
            }
        }
    }

    /// Launches a batch piece by piece: the device works on the first while
    /// the next is planned and copied.
    fn send(&mut self, load: &mut Load) -> (Vec<Sent>, Vec<Flight>) {
        let pieces = plan::pieces(
            self.structures.recipes(),
            &load.calls,
            self.device.limits().pieces,
        );
        self.counts.pieces += pieces.len() as u64;
        let operands = load.arena.len();
        let (mut sent, mut flights) = (Vec::new(), Vec::new());
        for piece in pieces {
            let plan = plan::assemble(self.structures.recipes(), &load.calls, &load.sets, &piece);
            flights.push(self.device.launch(&plan, &mut load.arena));
            // What the device appended was for this attempt.
            load.arena.truncate(operands);
            let results = plan.results;
            sent.push(Sent { piece, results });
        }
        (sent, flights)
    }

    /// Takes what the next flight of a batch brought. `None` for a batch that
    /// is not, or no longer, on its way in this life of the device, and for one
    /// that was lost with the device and will be sent again:
    /// [`Session::is_lost`] says so.
    pub fn settle(
        &mut self,
        batch: BatchId,
        generation: Generation,
        outcome: Result<Readback, Error>,
    ) -> Option<Settlement> {
        let same = |flying: &Flying| flying.load.id == batch && flying.generation == generation;
        let index = self.in_flight.iter().position(same)?;
        if matches!(outcome, Err(Error::DeviceLost(_))) {
            self.lose(generation);
            if self.in_flight[index].load.losses < ATTEMPTS {
                self.requeue(index);
                return None;
            }
        }
        let flying = &mut self.in_flight[index];
        let stamps = outcome.as_ref().ok().and_then(Readback::stamps_ns);
        self.meter.landed(&mut flying.timing, stamps);
        let (load, sent) = (&flying.load, &flying.pieces[flying.landed]);
        flying.landed += 1;
        let is_last = flying.landed == flying.pieces.len();
        let live = self.batcher.in_flight(batch).expect("both know of it");
        let answers = sent.answers(load, live.tickets(), self.structures.recipes());
        let through = sent.done(load, &outcome);
        match &outcome {
            Ok(_) => {
                let done = answers.iter().filter(|answer| answer.is_last()).count();
                self.counts.settled(done, self.engine);
                if done > 0 {
                    flying.load.losses = 0; // What it answered is not sent again.
                }
            }
            Err(_) => self.counts.rejected += answers.len() as u64,
        }
        if is_last {
            self.batcher.settle(batch);
            let flying = self.in_flight.remove(index);
            self.meter
                .finished(flying.timing, &flying.batch(self.engine));
            self.recycle(flying.load);
        } else if let Some(through) = through {
            self.batcher.advance(batch, through);
        }
        Some(Settlement {
            answers,
            outcome,
            is_last,
        })
    }

    /// Since when the device owes an answer: the oldest batch in flight, or a
    /// kernel that is being compiled.
    pub fn oldest_in_flight(&self) -> Option<Millis> {
        let moments = self.in_flight.iter().map(|flying| flying.sent);
        let moments = moments.chain(self.waiting_since());
        moments.reduce(|a, b| if b < a { b } else { a })
    }

    /// Batches on their way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn recycle(&mut self, load: Load) {
        let Load {
            mut arena, read, ..
        } = load;
        self.unread(read);
        self.sweep();
        // More are only needed while a device is lost or slow.
        if self.spare.len() < SPARES {
            arena.clear();
            self.spare.push(arena);
        }
    }
}
