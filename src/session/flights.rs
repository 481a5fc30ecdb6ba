//! Batches on their way: launched in pieces, settled piece by piece, and their
//! memory given to the next.
//!
//! Of a large batch the first pieces go at once, and another one with each that
//! returns, so that the memory of those on their way has a bound.
//!
//! When one is due is the batcher's business, and what becomes of those on a
//! lost device `loss`'s.

use super::answers::{Answer, Sent};
use super::facts::{Batch, Timing};
use super::load::Load;
use super::loss::ATTEMPTS;
use super::route::Group;
use super::{COPIES, SPARES, Session};
use crate::batch::{BatchId, Millis};
use crate::device::{Device, Engine, Flight, Generation, Readback};
use crate::error::Error;
use crate::plan::{Piece, PieceLimits};
use crate::tensor::Arena;

/// A batch on its way. Await its flights in order, and give each to
/// [`Session::settle`].
pub struct Launch {
    /// The batch.
    pub batch: BatchId,
    /// The life of the device it was sent to.
    pub generation: Generation,
    /// Whether a part of it is the processor's, beside the GPU: it waits for
    /// [`Session::compute`], whose flight lands before the others.
    pub is_parted: bool,
    /// The results to come of each of its pieces; none where all of it is the
    /// processor's, or waits for the next device.
    pub flights: Vec<Flight>,
}

/// The answers to a piece of a batch.
pub struct Settlement {
    /// The calls still waited for, in submission order.
    pub answers: Vec<Answer>,
    /// The results, or what went wrong with all of them.
    pub outcome: Result<Readback, Error>,
    /// Whether the batch has no more pieces on their way.
    pub is_last: bool,
    /// Pieces of the batch that went in its place, behind those on their way.
    pub next: Vec<Flight>,
}

/// Milliseconds from its first batch on after which a device works that was not lost:
/// longer than a system lets one hang.
const PROVEN_MS: f64 = 60_000.0;

/// Bytes of operands and results of pieces beyond which the next of a batch waits for
/// one that returns: many more than keep copies, link and device at work.
const ON_THEIR_WAY: u64 = 64 << 20;

/// How often operands and results of a GPU's piece are in memory: uploaded, in slots
/// and read back, and so those of the pieces beside it.
const TRAVELING: u64 = 6;

/// What of a batch may be on its way at once.
struct Way {
    bytes: u64,
    pieces: usize,
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
    /// Those that were not sent yet, the next one last.
    pub(super) rest: Vec<Piece>,
    /// Where its time goes, if anybody asked.
    pub(super) timing: Option<Timing>,
    /// Its calls by structure, where they had a choice of devices.
    pub(super) groups: Vec<Group>,
    /// Whether it was sent while nothing else was on its way.
    pub(super) is_alone: bool,
    /// Whether there was no memory for a piece of it.
    pub(super) is_short: bool,
}

impl Flying {
    fn batch(&self, engine: Engine) -> Batch {
        let aside = &self.load.aside.tickets;
        let tickets = || self.load.tickets.iter().chain(aside).copied();
        let only_aside = self.pieces.iter().all(|sent| sent.is_aside);
        Batch {
            first: tickets().min().unwrap_or_default(),
            last: tickets().max().unwrap_or_default(),
            calls: tickets().count(),
            pieces: self.pieces.len(),
            engine: if only_aside { Engine::Cpu } else { engine },
        }
    }

    /// Whether the flight that lands next is its last, and the GPU's.
    pub(super) fn is_at_last(&self) -> bool {
        let next = self.pieces.get(self.landed);
        self.landed + 1 == self.pieces.len()
            && self.rest.is_empty()
            && next.is_some_and(|sent| !sent.is_aside)
    }

    /// Whether the flight that lands next is the device's, and shows that it works: what
    /// it writes to tensors alone is not waited for.
    pub(super) fn is_heard_next(&self) -> bool {
        let next = self.pieces.get(self.landed);
        next.is_some_and(|sent| !sent.is_aside && sent.has_words())
    }

    /// Whether something of it needs the device that it was sent to.
    pub(super) fn needs_device(&self) -> bool {
        let to_come = &self.pieces[self.landed..];
        !self.rest.is_empty() || to_come.iter().any(|sent| !sent.is_aside)
    }

    /// Whether another piece may go: one is always on its way, two if there are,
    /// and more of them as long as they are few bytes.
    fn has_room(&self, way: &Way) -> bool {
        let sent = || {
            self.pieces[self.landed..]
                .iter()
                .filter(|sent| !sent.is_aside)
        };
        let bytes: u64 = sent().map(|sent| sent.bytes).sum();
        match sent().count() {
            0 => true,
            count if count >= way.pieces => false,
            count => count < 2 || bytes < way.bytes,
        }
    }
}

impl<D: Device> Session<D> {
    /// Sends the next batch that is full or was asked for, unless too many are
    /// on their way or the device is lost. Encoding and submission happen here,
    /// synchronously.
    pub fn launch(&mut self, now: Millis) -> Option<Launch> {
        if self.is_stopped() {
            return None;
        }
        let resumed = self.resume(now);
        let mut load = match resumed {
            Some(load) => load,
            None => self.take(now)?,
        };
        load.part();
        let id = load.id;
        let oldest = self.batcher.in_flight(id).map(|batch| batch.oldest);
        let waited = oldest.map_or(0.0, |oldest| now.0 - oldest.0);
        let start = self.meter.start(|| self.device.counters());
        let mut flying = Flying {
            generation: self.generation,
            sent: now,
            pieces: Vec::new(),
            landed: 0,
            rest: Vec::new(),
            timing: None,
            groups: std::mem::take(&mut load.groups),
            is_alone: self.in_flight.is_empty(),
            is_short: false,
            load,
        };
        self.counts.launches += 1;
        self.first_sent.get_or_insert(now);
        let is_parted = !flying.load.aside.calls.is_empty();
        self.is_elsewhere = is_parted && self.router.is_some() && flying.load.calls.is_empty();
        if is_parted {
            flying.pieces.push(Sent {
                piece: Piece::all(&flying.load.aside.calls),
                results: Vec::new(), // Known as soon as it is computed.
                engine: Engine::Cpu,
                is_aside: true,
                bytes: 0,
            });
            self.counts.pieces += 1;
        }
        let flights = self.send(&mut flying);
        flying.timing = self.meter.encoded(start, || self.device.counters(), waited);
        self.in_flight.push(flying);
        Some(Launch {
            batch: id,
            generation: self.generation,
            is_parted,
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
        self.route(&mut load);
        self.relieve(&mut load);
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

    /// Whether pieces on their way keep the next batch back. What it writes might
    /// be read by those of its predecessor that were not sent yet.
    pub(super) fn is_occupied(&self) -> bool {
        let mut flying = self.in_flight.iter();
        let pieces = |flying: &Flying| flying.pieces.len() - flying.landed;
        flying.any(|flying| flying.generation == self.generation && !flying.rest.is_empty())
            || self.in_flight.iter().map(pieces).sum::<usize>() >= self.max_pieces
    }

    /// What may be on its way at once.
    fn way(&self, limits: &PieceLimits) -> Way {
        Way {
            bytes: (limits.bytes / limits.copies).min(ON_THEIR_WAY),
            pieces: self.max_pieces,
        }
    }

    /// What a piece may need at most.
    pub(super) fn piece_limits(&self, shortages: u32) -> PieceLimits {
        let limits = self.device.limits();
        let live = self.budget.live().saturating_sub(self.tensors.resident);
        let (bytes, copies) = match self.engine {
            Engine::Gpu => (live - live / 4, TRAVELING),
            // It answers nothing else while it computes a piece.
            Engine::Cpu => (live / COPIES / 2, 1),
        };
        PieceLimits {
            slot_bytes: limits.max_side_bytes,
            bytes: bytes >> shortages,
            copies,
            threads: limits.max_threads,
        }
    }

    /// Launches a batch piece by piece: the device works on the first while
    /// the next is planned and copied.
    fn send(&mut self, flying: &mut Flying) -> Vec<Flight> {
        let load = &flying.load;
        if load.calls.is_empty() && !flying.pieces.is_empty() {
            return Vec::new(); // All of it was put aside.
        }
        if load.shortages > 0 {
            self.device.trim();
        }
        flying.rest = self.pieces(&flying.load);
        self.send_more(flying)
    }

    /// Launches pieces as long as there is room, each small enough for the
    /// device if it can be.
    fn send_more(&mut self, flying: &mut Flying) -> Vec<Flight> {
        let limits = self.piece_limits(flying.load.shortages);
        let way = self.way(&limits);
        let mut flights = Vec::new();
        while flying.has_room(&way) {
            let (load, rest) = (&mut flying.load, &mut flying.rest);
            let Some((piece, plan)) = self.next_piece(load, rest, &limits) else {
                break;
            };
            let operands = load.arena.len();
            let brought = plan.tensors().try_for_each(|tensor| self.bring(tensor));
            flights.push(match brought {
                Ok(()) => self.device.launch(&plan, &mut load.arena),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            });
            // What the device appended was for this attempt.
            load.arena.truncate(operands);
            self.counts.pieces += 1;
            flying.pieces.push(Sent {
                bytes: plan.traveling_bytes(),
                piece,
                results: plan.results,
                engine: self.engine,
                is_aside: false,
            });
        }
        flying.load.arena.trim();
        flights
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
        let flying = &self.in_flight[index];
        let is_aside = flying.pieces[flying.landed].is_aside;
        if matches!(outcome, Err(Error::DeviceLost(_))) && !is_aside {
            self.lose(generation);
            if self.in_flight[index].load.losses < ATTEMPTS {
                self.requeue(index);
                return None;
            }
        }
        if self.is_short(index, &outcome) {
            return None;
        }
        let flying = &mut self.in_flight[index];
        let stamps = outcome.as_ref().ok().and_then(Readback::stamps_ns);
        self.meter.landed(&mut flying.timing, stamps);
        let (load, sent) = (&flying.load, &flying.pieces[flying.landed]);
        flying.landed += 1;
        let is_last = flying.landed == flying.pieces.len() && flying.rest.is_empty();
        let live = self.batcher.in_flight(batch).expect("both know of it");
        let known = (self.structures.recipes(), &outcome);
        let answers = sent.answers(load, live.tickets(), known);
        let back = sent.done(load, &outcome);
        let mut proves = false;
        match &outcome {
            Ok(_) => {
                let done = answers.iter().filter(|answer| answer.is_last()).count();
                self.counts.settled(done, sent.engine);
                // A call that was answered with results shows that the device works. Nothing
                // comes back of one that writes to a tensor: such calls show it when the
                // device was not lost for a minute.
                let is_old = flying.sent.0 - self.first_sent.unwrap_or(flying.sent).0 > PROVEN_MS;
                let is_result = is_old || answers.iter().any(|answer| answer.span.words > 0);
                proves = done > 0 && !is_aside && is_result;
                self.has_answered |= proves;
                if proves {
                    self.recovery.proved();
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
        } else {
            self.batcher.advance(batch, back);
            if proves {
                flying.load.losses = 0; // What it answered is not sent again.
            }
        }
        let next = if is_last {
            Vec::new()
        } else {
            self.go_on(index)
        };
        Some(Settlement {
            answers,
            outcome,
            is_last,
            next,
        })
    }

    /// Sends more of a batch that has more.
    fn go_on(&mut self, index: usize) -> Vec<Flight> {
        if self.is_lost() || self.in_flight[index].rest.is_empty() {
            return Vec::new(); // With its device all of it is sent again.
        }
        let mut flying = self.in_flight.remove(index);
        let start = self.meter.start(|| self.device.counters());
        let flights = self.send_more(&mut flying);
        let counters = || self.device.counters();
        self.meter.went_on(&mut flying.timing, start, counters);
        self.in_flight.insert(index, flying);
        flights
    }

    /// Since when the device owes an answer: to the oldest batch in flight, but not
    /// before its last one, for it answers in order; or a kernel that is being compiled.
    pub fn oldest_in_flight(&self) -> Option<Millis> {
        let after = |sent: Millis| if sent < self.heard { self.heard } else { sent };
        let moments = self.in_flight.iter().map(|flying| after(flying.sent));
        let moments = moments.chain(self.waiting_since());
        moments.reduce(|a, b| if b < a { b } else { a })
    }

    /// Batches sent so far, each as often as it was.
    pub fn launches(&self) -> u64 {
        self.counts.launches
    }

    /// Batches on their way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Those of them that a GPU has something of.
    pub fn owed(&self) -> usize {
        let owed = self.in_flight.iter().filter(|flying| flying.needs_device());
        if self.engine == Engine::Gpu {
            owed.count()
        } else {
            0
        }
    }

    pub(super) fn recycle(&mut self, load: Load) {
        let Load { arena, read, .. } = load;
        self.unread(read);
        self.sweep();
        self.keep_arena(arena);
    }

    /// Keeps memory for the next batches.
    pub(super) fn keep_arena(&mut self, mut arena: Arena) {
        // More are only needed while a device is lost or slow.
        if self.spare.len() < SPARES {
            arena.clear();
        }
        if self.spare.len() < SPARES && arena.capacity() > 0 {
            self.spare.push(arena);
        }
    }
}
