//! Launching: batches are sent in chunks.
//!
//! The first chunks of a large batch go at once, and another one with each that returns, so
//! that the memory of what is in flight has a bound.
//!
//! When a batch is due is the queue's business, what flights bring that of `settlement`, and
//! what becomes of batches on a lost device that of `device_loss`.

use super::Session;
use super::chunking::Chunker;
use super::in_flight::{Company, InFlight, Way};
use super::scatter::{Acceptance, Sent};
use super::submission::next_payload;
use crate::batch::{BatchId, Millis, Priority};
use crate::device::{Device, Engine, Flight, Generation, failed};
use crate::error::Error;
use crate::plan::{Chunk, ChunkLimits};

/// A batch that was sent. Await the flights in order, and give each to [`Session::settle`].
pub struct Launch {
    /// The batch.
    pub batch: BatchId,
    /// The number of the device that the batch was sent to.
    pub generation: Generation,
    /// Whether the CPU beside the GPU has a share of the batch: it waits for
    /// [`Session::compute`], whose flight lands before the others.
    pub has_cpu_share: bool,
    /// The results to come of each chunk; none where the CPU has all of the batch, or where
    /// all of it waits for the next device.
    pub flights: Vec<Flight>,
}

/// One launch of a batch: the batch may have been launched before, on another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchId {
    /// The batch.
    pub batch: BatchId,
    /// The device that the batch was sent to.
    pub generation: Generation,
}

impl<D: Device> Session<D> {
    /// Sends the next batch that is full or was asked for, unless too many are in flight or
    /// the device is lost. Encoding and submission happen here, synchronously.
    pub fn launch(&mut self, now: Millis) -> Option<Launch> {
        if self.is_stopped() {
            return None;
        }
        // What is urgent goes before what waited for a kernel, but not before what restores.
        let resumed = match self.queue.has_high() && !self.queue.has_restoring() {
            true => None,
            false => self.resume(now),
        };
        let at = match resumed {
            Some(at) => at,
            None => self.take(now)?,
        };
        let start = self
            .metrics
            .meter
            .start(|| self.devices.primary().counters());
        let InFlight { batch, way } = &mut self.queue.in_flight_mut()[at];
        if self.devices.has_companion() {
            batch.move_cpu_share_to_back();
        }
        let (id, waited) = (batch.id, now.0 - batch.oldest.0);
        way.groups = std::mem::take(&mut batch.payload.groups);
        self.metrics.launches += 1;
        self.life.sent(now);
        let has_cpu_share = !batch.behind().is_empty();
        if batch.priority == Priority::Low {
            self.slice_engine = match has_cpu_share {
                true => Engine::Cpu,
                false => self.devices.engine(),
            };
        }
        if let Some(router) = &mut self.router {
            router.note_launch(batch.ahead().len());
        }
        if has_cpu_share {
            way.chunks.push(Sent {
                chunk: Chunk::all(batch.behind()),
                results: Vec::new(), // Known as soon as the share is computed.
                engine: Engine::Cpu,
                is_cpu_share: true,
                bytes: 0,
                acceptance: Acceptance::Sure,
            });
            self.metrics.chunks += 1;
        }
        let flights = self.send(at);
        let timing =
            self.metrics
                .meter
                .encoded(start, || self.devices.primary().counters(), waited);
        self.queue.in_flight_mut()[at].way.timing = timing;
        Some(Launch {
            batch: id,
            generation: self.life.generation(),
            has_cpu_share,
            flights,
        })
    }

    /// The way of a batch that is about to be sent.
    pub(super) fn way(&self, now: Millis) -> Way {
        let company = match self.queue.in_flight().is_empty() {
            true => Company::Alone,
            false => Company::Others,
        };
        Way::new(self.life.generation(), now, company)
    }

    /// Takes the next batch of the queue, as far as its kernels are compiled: its place in
    /// flight.
    fn take(&mut self, now: Millis) -> Option<usize> {
        // A batch whose calls were all given up leaves its memory.
        while let Some(abandoned) = self.queue.take_abandoned() {
            self.recycle(abandoned.payload);
        }
        loop {
            let way = self.way(now);
            let next = next_payload(&mut self.arenas);
            let at = self.queue.take(now, way, next)?;
            self.cut_slice(at, now);
            if self.prepare(at, now) && self.park_unready(at, now) {
                self.weigh_slice(at);
                return Some(at);
            }
        }
    }

    /// Counts a batch that was just taken, and says where its calls go. `false` where all calls
    /// are refused because they read lost tensors: the batch is over.
    pub(super) fn prepare(&mut self, at: usize, now: Millis) -> bool {
        self.refuse_blamed(at);
        self.refuse_for_lack_of_cpu_functions(at);
        // Behind the others: a call that they refuse writes nothing.
        self.refuse_readers_of_lost(at);
        if self.queue.flying(at).is_empty() {
            let emptied = self.queue.settle(at).batch;
            self.recycle(emptied.payload);
            return false;
        }
        let batch = self.queue.flying(at);
        if !batch.payload.is_sent {
            let (fill, waited) = (self.queue.fill(batch), now.0 - batch.oldest.0);
            self.metrics.batch(batch.live(), fill, waited);
        }
        self.queue.flying_mut(at).payload.is_sent = true;
        self.route(at);
        self.relieve(at);
        true
    }

    /// Whether chunks in flight keep the next batch back. Chunks of an earlier batch that
    /// were not sent yet, or go again, might read what the next batch writes.
    pub(super) fn is_occupied(&self) -> bool {
        let (mut ways, generation) = (self.ways(), self.life.generation());
        let chunks = |way: &Way| way.chunks.len() - way.landed;
        ways.any(|way| way.generation == generation && way.has_more())
            || self.ways().map(chunks).sum::<usize>() >= self.limits.chunks()
    }

    /// The ways of the batches in flight.
    pub(super) fn ways(&self) -> impl Iterator<Item = &Way> {
        self.queue.in_flight().iter().map(|flying| &flying.way)
    }

    /// The memory and threads that a chunk may need at most.
    pub(super) fn chunk_limits(&self, shortages: u32) -> ChunkLimits {
        let (device, tensors) = (self.devices.primary().limits(), self.tensors.resident_bytes);
        let limits = match self.devices.engine() {
            Engine::Gpu => self.limits.gpu_chunk(&device, tensors),
            Engine::Cpu => self.limits.cpu_chunk(&device, tensors),
        };
        ChunkLimits {
            bytes: limits.bytes >> shortages,
            ..limits
        }
    }

    /// Launches a batch chunk by chunk: the device works on the first while
    /// the next is planned and copied.
    fn send(&mut self, at: usize) -> Vec<Flight> {
        let shortages = self.queue.flying(at).payload.shortages;
        let limits = self.chunk_limits(shortages);
        let sizes = self.chunk_sizes(shortages);
        let InFlight { batch, way } = &mut self.queue.in_flight_mut()[at];
        if batch.ahead().is_empty() && !way.chunks.is_empty() {
            return Vec::new(); // The CPU has all of the batch.
        }
        if shortages > 0 {
            self.devices.primary_mut().trim();
        }
        way.rest = Chunker {
            recipes: self.programs.recipes(),
            sharded: self.tensors.sharded(),
            sizes,
            limits,
        }
        .chunks(batch);
        self.send_more(at)
    }

    /// Launches chunks as long as there is room in flight, each small enough for the device
    /// if it can be cut.
    pub(super) fn send_more(&mut self, at: usize) -> Vec<Flight> {
        let shortages = self.queue.flying(at).payload.shortages;
        let limits = self.chunk_limits(shortages);
        let sizes = self.chunk_sizes(shortages);
        let most = self.limits.allowance(&limits);
        let mut flights = Vec::new();
        while self.queue.in_flight()[at].way.has_room(&most) {
            let InFlight { batch, way } = &mut self.queue.in_flight_mut()[at];
            let chunker = Chunker {
                recipes: self.programs.recipes(),
                sharded: self.tensors.sharded(),
                sizes,
                limits,
            };
            let Some((chunk, plan)) = chunker.next(batch, &mut way.rest) else {
                break;
            };
            let brought = self.check_filled(at, &chunk);
            let brought =
                brought.and_then(|()| plan.tensors().try_for_each(|home| self.bring_all(home)));
            let InFlight { batch, way } = &mut self.queue.in_flight_mut()[at];
            // A submission that names a buffer of the program's may be refused as a whole.
            let is_in_doubt = !batch.payload.written.is_empty()
                && plan
                    .tensors()
                    .any(|tensor| self.provenances.is_imported(tensor));
            let arena = &mut batch.payload.arena;
            let operands = arena.len();
            let launched = brought.and_then(|()| self.devices.primary_mut().launch(&plan, arena));
            // What the device appended was for this attempt alone.
            arena.truncate(operands);
            self.metrics.chunks += 1;
            way.chunks.push(Sent {
                bytes: plan.traveling_bytes(),
                chunk,
                results: plan.results,
                engine: self.devices.engine(),
                is_cpu_share: false,
                acceptance: match &launched {
                    Err(_) => Acceptance::Failed,
                    Ok(_) if is_in_doubt => Acceptance::InDoubt,
                    Ok(_) => Acceptance::Sure,
                },
            });
            match launched {
                Ok(flight) => flights.push(flight),
                Err(error) => {
                    self.note_shortage(at, &error);
                    let way = &mut self.queue.in_flight_mut()[at].way;
                    way.found_loss = matches!(error, Error::DeviceLost(_));
                    flights.push(failed(error));
                    break;
                }
            }
            self.note_submitted(at);
        }
        self.queue.flying_mut(at).payload.arena.trim();
        flights
    }

    /// Refuses a chunk that names a tensor which was not filled on this device, and whose slab
    /// other tensors brought there. Devices find out by themselves which buffers they lack.
    fn check_filled(&self, at: usize, chunk: &Chunk) -> Result<(), Error> {
        let batch = self.queue.flying(at);
        let mut calls = batch.ahead()[chunk.first..chunk.end].iter();
        let lacks = |tensor: &u32| self.tensors.lacks_words(*tensor);
        match calls.any(|call| batch.payload.tensors_of(call).iter().any(lacks)) {
            true => Err(Error::tensor_missing()),
            false => Ok(()),
        }
    }

    /// Where a batch is among those in flight, if it was sent to the device of this number and
    /// still waits for its flights.
    pub(super) fn place_in_flight(&self, id: BatchId, generation: Generation) -> Option<usize> {
        let at = self.queue.place_in_flight(id)?;
        let way = &self.queue.in_flight()[at].way;
        (way.generation == generation && !way.is_refused).then_some(at)
    }

    /// Since when the device owes an answer: to the oldest batch in flight, but not before
    /// its last answer, for a device answers in order; or a kernel that is being compiled.
    pub fn oldest_in_flight(&self) -> Option<Millis> {
        let moments = self.ways().map(|way| self.life.owes_since(way.sent));
        let moments = moments.chain(self.waiting_since());
        moments.reduce(|a, b| if b < a { b } else { a })
    }

    /// How often batches were sent so far; a batch that was sent twice counts twice.
    pub fn launches(&self) -> u64 {
        self.metrics.launches
    }

    /// Batches in flight.
    pub fn in_flight(&self) -> usize {
        self.queue.in_flight().len()
    }

    /// Batches in flight of which a GPU has a chunk.
    pub fn owed(&self) -> usize {
        let owed = self.ways().filter(|way| way.needs_device());
        if self.devices.engine() == Engine::Gpu {
            owed.count()
        } else {
            0
        }
    }
}
