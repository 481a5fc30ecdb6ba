//! The life of a write: a call that stores its results in tensors is acknowledged when it was
//! submitted, and runs once.
//!
//! When a batch goes again is not decided here: only which of its calls cannot. What becomes of
//! the readers of a tensor that is lost is in `lost_tensors`.

use std::ops::Range;
use std::sync::Arc;

use super::Session;
use super::in_flight::InFlight;
use super::payload::Batch;
use super::scatter::{Acceptance, Sent};
use crate::batch::Ticket;
use crate::device::Device;
use crate::error::Error;

/// Why a call that reads words which a later call has overwritten is not sent again.
const OVERWRITTEN: &str =
    "a later call has written it, so this call cannot be sent again after a failure; call again";

/// Why a tensor that a call may have written in part is lost.
const HALF: &str =
    "a call may have written a part of it before a failure; write all of it, or make it again";

/// Why a tensor is lost that a call wrote which was refused.
const TAINTED: &str =
    "a call that read a lost tensor has written it; write all of it, or make it again";

/// Calls that were answered without a flight, all alike.
#[derive(Debug)]
pub struct Answered {
    /// The calls.
    pub tickets: Vec<Ticket>,
    /// Why they were refused, if they were.
    pub outcome: Result<(), Error>,
}

/// A call of a batch, by its place there, that is refused.
pub(super) struct Refused {
    pub(super) place: usize,
    pub(super) error: Error,
}

impl<D: Device> Session<D> {
    /// Takes calls that were answered without a flight: those whose writes were submitted, and
    /// those that read a lost tensor. A driver asks when no batch is to be sent.
    pub fn take_answered(&mut self) -> Option<Answered> {
        let is_some = !self.answered.is_empty();
        is_some.then(|| self.answered.remove(0))
    }

    /// Notes what the chunk of a batch writes that was just submitted, and acknowledges the calls
    /// that are over with the chunk, unless the device may still refuse it.
    pub(super) fn note_submitted(&mut self, at: usize) {
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        if batch.payload.written.is_empty() {
            return; // Most batches write nothing.
        }
        let number = way.chunks.len() - 1;
        let sent = &way.chunks[number];
        let is_sure = sent.acceptance == Acceptance::Sure;
        for place in writers(batch, sent) {
            let call = &batch.calls()[place];
            for tensor in batch.written(self.programs.recipes(), call) {
                match batch.is_restoring {
                    true => self.provenances.restore(tensor),
                    false => self.provenances.write(tensor, call.ticket),
                }
            }
        }
        if is_sure {
            self.acknowledge(at, number);
        }
    }

    /// Acknowledges the writes of the chunk that lands next, which landed well, if they were in
    /// doubt until now.
    pub(super) fn confirm_writes(&mut self, at: usize) {
        let way = &self.queue.in_flight()[at].way;
        if way.chunks[way.landed].acceptance == Acceptance::InDoubt {
            self.acknowledge(at, way.landed);
        }
    }

    /// Answers the calls that write tensors and are over with a chunk. What they wrote is right, in
    /// the order of the calls.
    fn acknowledge(&mut self, at: usize, number: usize) {
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        let sent = &way.chunks[number];
        let (engine, over) = (sent.engine, sent.done::<(), ()>(batch, &Ok(())));
        let (mut places, mut tickets) = (Vec::new(), Vec::new());
        for place in writers(batch, sent) {
            let call = &batch.calls()[place];
            let recipe = &self.programs.recipes()[call.work.planned.recipe.0 as usize];
            if way.tainted.contains(&place) {
                for tensor in batch.written(self.programs.recipes(), call) {
                    self.provenances.lose(tensor, &Arc::from(TAINTED));
                }
                continue;
            }
            if !call.is_live || !recipe.is_stored() {
                continue;
            }
            for tensor in recipe.written(batch.payload.tensors_of(call)) {
                if self.provenances.is_whole(tensor, call.work.planned.stored) {
                    self.provenances.heal(tensor);
                }
            }
            if over.contains(&place) {
                places.push(place);
                tickets.push(call.ticket);
            }
        }
        if tickets.is_empty() {
            return;
        }
        for place in places {
            self.queue.answered(at, place..place + 1);
        }
        self.metrics.settled(tickets.len(), engine);
        self.answered.push(Answered {
            tickets,
            outcome: Ok(()),
        });
        self.free_operands(at);
    }

    /// Gives the memory of a batch's operands to the next batch, once all calls are answered:
    /// none of these goes again, though the device may be at work on them for long.
    fn free_operands(&mut self, at: usize) {
        let InFlight { batch, way } = &mut self.queue.in_flight_mut()[at];
        let has_cpu_share = way.chunks.iter().any(|sent| sent.is_cpu_share);
        if batch.is_empty() && !way.has_more() && !has_cpu_share {
            self.arenas.keep(std::mem::take(&mut batch.payload.arena));
        }
    }

    /// Refuses the calls of a batch in flight that cannot go again: a later call has written what
    /// they read, or they may have written a tensor in part.
    pub(super) fn give_up_overwritten(&mut self, at: usize) {
        let batch = self.queue.flying(at);
        if batch.payload.read.is_empty() || !self.provenances.has_written() {
            return; // Most batches name no tensor.
        }
        let recipes = self.programs.recipes();
        let mut refused = Vec::new();
        let mut halves = vec![false; self.tensors.count()];
        for (place, call) in batch.calls().iter().enumerate() {
            if !call.is_live {
                continue;
            }
            let is_half = |tensor: &u32| self.provenances.is_writer(*tensor, call.ticket);
            let is_late = |tensor: &u32| self.provenances.is_overwritten(*tensor, call.ticket);
            let mut is_written = false;
            for tensor in batch.written(recipes, call).filter(is_half) {
                is_written = true;
                halves[tensor as usize] = true;
            }
            let why = match is_written {
                true => HALF,
                false if batch.payload.tensors_of(call).iter().any(is_late) => OVERWRITTEN,
                false => continue,
            };
            let error = Error::TensorLost(why.into());
            refused.push(Refused { place, error });
        }
        self.refuse_all(at, refused);
        if !halves.contains(&true) {
            return;
        }
        // The calls of this batch that go again are looked at before that.
        let behind = self.queue.flying(at).calls().len();
        self.lose_from(at, behind, halves, HALF);
    }

    /// Whether the calls of a chunk that the device refused as a whole may go again: nothing was
    /// sent behind that may have read what the chunk was to write.
    pub(super) fn may_retract(&self, at: usize) -> bool {
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        let sent = &way.chunks[way.landed];
        let is_newest =
            at + 1 == self.queue.in_flight().len() && way.landed + 1 == way.chunks.len();
        let recipes = self.programs.recipes();
        let mut calls = batch.calls()[writers(batch, sent)].iter();
        is_newest || calls.all(|call| batch.written(recipes, call).next().is_none())
    }

    /// Notes that nothing of a chunk was computed, because the device refused it as a whole.
    pub(super) fn retract(&mut self, at: usize) {
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        let sent = &way.chunks[way.landed];
        // Backwards, so that the first call that writes a tensor has the last word.
        for call in batch.calls()[writers(batch, sent)].iter().rev() {
            for tensor in batch.written(self.programs.recipes(), call) {
                self.provenances.retract(tensor, call.ticket);
            }
        }
    }

    /// Answers calls of a batch in flight with errors, where somebody waits for them.
    pub(super) fn refuse_all(&mut self, at: usize, refused: Vec<Refused>) {
        for Refused { place, error } in refused {
            let call = &self.queue.flying(at).calls()[place];
            if !call.is_live {
                continue;
            }
            let ticket = call.ticket;
            self.queue.answered(at, place..place + 1);
            self.metrics.rejected += 1;
            self.queue.flying_mut(at).payload.failed += 1;
            match self.answered.last_mut() {
                Some(last) if last.outcome.as_ref() == Err(&error) => last.tickets.push(ticket),
                _ => self.answered.push(Answered {
                    tickets: vec![ticket],
                    outcome: Err(error),
                }),
            }
        }
    }
}

/// The places in a batch of a chunk's calls, if some of these may write tensors.
pub(super) fn writers(batch: &Batch, sent: &Sent) -> Range<usize> {
    // The CPU beside a GPU gets no call that writes, and most batches have none.
    match sent.is_cpu_share || batch.payload.written.is_empty() {
        true => 0..0,
        false => sent.chunk.first..sent.chunk.end,
    }
}
