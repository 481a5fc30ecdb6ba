//! Out-of-memory retry: a batch that the device had no memory for goes again, alone and in
//! smaller chunks, and at last to the CPU.
//!
//! Memory that is kept for speed is freed before each attempt. How large chunks are is not
//! decided here.

use super::Session;
use super::in_flight::{InFlight, Retry};
use super::payload::{Batch, Payload};
use super::recovery::Loss;
use super::suspicion::functions;
use super::writes::Refused;
use crate::device::{Device, Engine, Readback};
use crate::error::Error;
use crate::graph::CallerFn;
use crate::plan::ChunkSizes;

/// How often the chunks of a batch are halved before the CPU takes it.
const HALVINGS: u32 = 4;

impl<D: Device> Session<D> {
    /// Takes a flight of a batch if there was no memory for that flight, or if the batch goes
    /// again over one before: `true` if it goes again when all its flights have landed.
    pub(super) fn retry_in_smaller_chunks(
        &mut self,
        at: usize,
        outcome: &Result<Readback, Error>,
    ) -> bool {
        let way = &self.queue.in_flight()[at].way;
        let is_cpu_share = way.chunks[way.landed].is_cpu_share;
        if let Err(error) = outcome
            && !is_cpu_share
        {
            self.note_shortage(at, error);
        }
        let way = &mut self.queue.in_flight_mut()[at].way;
        let Some(retry) = way.retry else {
            return false;
        };
        way.rest.clear();
        if let Err(error) = outcome {
            self.lose_writes(at, error);
        }
        if self.land_for_retry(at) && retry == Retry::InSmallerChunks {
            let payload = &mut self.queue.flying_mut(at).payload;
            payload.shortages += 1;
            let gives_up = payload.shortages > HALVINGS;
            let leaves = gives_up && self.may_leave(&self.queue.flying(at).payload);
            self.requeue(at);
            if gives_up && !leaves && !self.provenances.has_written() {
                // The CPU lacks the batch's tensors: it takes everything over. What calls wrote
                // would be lost by that, and so the batch fails instead if it finds no memory.
                self.lose_by(Loss::Exhausted, self.life.generation());
            }
        }
        true
    }

    /// Has a batch go again, if one of its chunks failed for lack of memory and smaller chunks may
    /// help. No other batch is sent before: it might write what this one reads.
    pub(super) fn note_shortage(&mut self, at: usize, error: &Error) {
        let InFlight { batch, way } = &mut self.queue.in_flight_mut()[at];
        let may_go_again =
            self.devices.engine() == Engine::Gpu && batch.payload.shortages <= HALVINGS;
        if may_go_again && matches!(error, Error::OutOfMemory(_)) {
            way.retry.get_or_insert(Retry::InSmallerChunks);
        }
    }

    /// Refuses the calls of a batch that is about to go to the CPU for lack of memory, by its place
    /// in flight, for which the CPU has no function: they must not take the others along.
    pub(super) fn refuse_for_lack_of_cpu_functions(&mut self, at: usize) {
        let batch = self.queue.flying(at);
        let payload = &batch.payload;
        let leaves = payload.shortages > HALVINGS && self.may_leave(payload);
        if !leaves || !payload.written.is_empty() {
            return;
        }
        let calls = batch.calls().iter().enumerate();
        let refused = calls.filter_map(|(place, call)| {
            let functions = functions(self.programs.recipes(), call);
            let mut functions = functions.into_iter().filter_map(CallerFn::numbered);
            let lacking = functions.find(|function| function.twin().is_none())?;
            let why = [
                "the device has none for the kernel '",
                &lacking.content.name,
                "', which has no function for the CPU",
            ];
            let error = Error::OutOfMemory(why.concat());
            Some(Refused { place, error })
        });
        let refused: Vec<Refused> = refused.collect();
        if !refused.is_empty() {
            self.refuse_all(at, refused);
            self.queue.flying_mut(at).purge();
        }
    }

    /// Gives a batch to the CPU, if no memory was found for the batch.
    pub(super) fn relieve(&mut self, at: usize) {
        let payload = &self.queue.flying(at).payload;
        if payload.shortages > HALVINGS && self.may_leave(payload) {
            let (works, _) = self.queue.flying_mut(at).works_and_payload();
            works.for_each(|work| work.is_cpu_share = true);
            self.metrics.fell_back();
        }
    }

    /// Whether nothing may be sent until more of what is in flight is back: a batch that
    /// memory was short for goes alone, and a batch with chunks still to be sent goes
    /// first.
    pub(super) fn is_held_back(&self) -> bool {
        if self.is_occupied() {
            return true;
        }
        let is_short = |batch: &Batch| batch.payload.shortages > 0;
        !self.queue.in_flight().is_empty() && self.queue.batches().any(is_short)
    }

    /// The sizes of the chunks of a batch that memory was short for so often.
    pub(super) fn chunk_sizes(&self, shortages: u32) -> ChunkSizes {
        let sizes = self.devices.primary().limits().chunks;
        sizes.halved(shortages)
    }

    /// Whether the CPU took a batch that the device had no memory for since the last time
    /// this was asked.
    pub fn take_fallback(&mut self) -> bool {
        self.metrics.take_fallback()
    }

    /// Frees the memory that is only kept for the next batch; batches in flight keep
    /// theirs. A driver asks for this when no batch has come for a while, or nobody looks
    /// at the page.
    pub fn trim(&mut self) {
        self.metrics.trimmed();
        self.arenas.clear();
        if let Some(slab) = self.tensors.release_empty_slab() {
            self.free_buffer(slab);
        }
        if self.queue.in_flight().is_empty() {
            self.devices.primary_mut().trim();
        }
        if let Some(cpu) = self.devices.companion_mut() {
            cpu.trim();
        }
    }

    /// Whether a batch was sent since memory was freed last.
    pub fn may_trim(&self) -> bool {
        self.metrics.has_launched_since_trim()
    }

    /// Whether the CPU beside the device has all that a batch reads.
    fn may_leave(&self, payload: &Payload) -> bool {
        let mut tensors = payload.read.iter();
        self.devices.has_companion() && tensors.all(|tensor| self.tensors.has_copy(*tensor))
    }
}
