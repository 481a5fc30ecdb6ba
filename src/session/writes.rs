//! The life of a write: a call that stores its results in a tensor is acknowledged when it was
//! submitted, runs once, and leaves the tensor right or lost.
//!
//! When a batch goes again is not decided here: only which calls of the batch may.

use std::sync::Arc;

use super::Session;
use super::in_flight::InFlight;
use super::payload::{Batch, Call};
use super::scatter::{Acceptance, Sent};
use crate::batch::Ticket;
use crate::device::Device;
use crate::error::Error;
use crate::plan::Recipe;
use crate::tensor::Span;

/// Why a call that reads words which a later call has overwritten is not sent again.
const OVERWRITTEN: &str =
    "a later call has written it, so this call cannot be sent again after a failure; call again";

/// Why a tensor that a call may have written in part is lost.
const HALF: &str =
    "a call may have written a part of it before a failure; write all of it, or make it again";

/// Why a tensor that calls wrote is lost with its device.
const GONE: &str = "calls wrote it, and its device is gone; write all of it, or make it again";

/// Calls that wait for no words, or for nothing, and are answered alike.
#[derive(Debug)]
pub struct Answered {
    /// The calls.
    pub tickets: Vec<Ticket>,
    /// Why they were refused, if they were.
    pub outcome: Result<(), Error>,
}

/// A call of a batch, by its place there, that is refused.
struct Refused {
    place: usize,
    error: Error,
}

/// What a call writes.
struct Write {
    tensor: u32,
    words: Span,
}

impl<D: Device> Session<D> {
    /// Takes calls that were answered without a flight: acknowledged ones, and calls that read a
    /// lost tensor. A driver asks before it sleeps.
    pub fn take_answered(&mut self) -> Option<Answered> {
        self.answered.pop_front()
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
        for (_, call, Write { tensor, .. }) in writes(self.programs.recipes(), batch, sent) {
            self.provenances.write(tensor, call.ticket);
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

    /// Answers the calls that write tensors and are over with a chunk.
    fn acknowledge(&mut self, at: usize, number: usize) {
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        let sent = &way.chunks[number];
        let (engine, over) = (sent.engine, sent.done::<(), ()>(batch, &Ok(())));
        let (mut places, mut tickets) = (Vec::new(), Vec::new());
        for (place, call, Write { tensor, words }) in writes(self.programs.recipes(), batch, sent) {
            if !call.is_live {
                continue;
            }
            if self.provenances.is_whole(tensor, words) {
                self.provenances.heal(tensor);
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
        self.answered.push_back(Answered {
            tickets,
            outcome: Ok(()),
        });
    }

    /// Refuses the calls of a batch that is about to be sent which read a lost tensor, unless a
    /// call before them in the batch writes all of it. The refused calls leave the batch, so that
    /// none of them is computed.
    pub(super) fn refuse_readers_of_lost(&mut self, at: usize) {
        let batch = self.queue.flying(at);
        let is_lost = |tensor: &u32| self.provenances.is_lost(*tensor);
        if !self.provenances.has_lost() || !batch.payload.sets.iter().flatten().any(is_lost) {
            return;
        }
        let recipes = self.programs.recipes();
        let mut healed: Vec<u32> = Vec::new();
        let mut refused = Vec::new();
        for (place, call) in batch.calls().iter().enumerate() {
            let is_lost =
                |tensor: u32| self.provenances.is_lost(tensor) && !healed.contains(&tensor);
            if let Some(tensor) = read_of(recipes, batch, call, is_lost) {
                let error = self.provenances.error(tensor);
                refused.push(Refused { place, error });
            } else if let Some(Write { tensor, words }) = write_of(recipes, batch, call)
                && call.is_live
                && self.provenances.is_whole(tensor, words)
            {
                healed.push(tensor);
            }
        }
        self.refuse_all(at, refused);
        self.queue.flying_mut(at).purge();
    }

    /// Refuses the calls of a batch in flight that cannot go again: a later call has written what
    /// they read, or they may have written a tensor in part.
    pub(super) fn give_up_overwritten(&mut self, at: usize) {
        let batch = self.queue.flying(at);
        if batch.payload.sets.len() == 1 || !self.provenances.has_written() {
            return; // Most batches name no tensor.
        }
        let mut refused = Vec::new();
        let mut halves = Vec::new();
        for (place, call) in batch.calls().iter().enumerate() {
            let mut named = batch.payload.tensors_of(call).iter();
            let write = write_of(self.programs.recipes(), batch, call);
            let half = write.filter(|write| self.provenances.is_writer(write.tensor, call.ticket));
            let is_late = |tensor: &u32| self.provenances.is_overwritten(*tensor, call.ticket);
            let why = match half {
                Some(_) => HALF,
                None if named.any(is_late) => OVERWRITTEN,
                None => continue,
            };
            if call.is_live {
                halves.extend(half.map(|write| write.tensor));
            }
            let error = Error::TensorLost(why.into());
            refused.push(Refused { place, error });
        }
        let why = Arc::from(HALF);
        for tensor in halves {
            self.provenances.lose(tensor, &why);
        }
        self.refuse_all(at, refused);
    }

    /// Counts what a chunk writes as lost, because the chunk has failed after it was submitted,
    /// and with that whatever was computed from it since. Calls behind that read a lost tensor
    /// are refused: devices compute in the order of submission, so their answers are to come.
    pub(super) fn lose_writes(&mut self, at: usize, error: &Error) {
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        let sent = &way.chunks[way.landed];
        if sent.acceptance == Acceptance::Failed || batch.payload.written.is_empty() {
            return;
        }
        let recipes = self.programs.recipes();
        let mut lost: Vec<u32> = Vec::new();
        for (_, _, Write { tensor, .. }) in writes(recipes, batch, sent) {
            if !lost.contains(&tensor) {
                lost.push(tensor);
            }
        }
        if lost.is_empty() {
            return;
        }
        let text =
            format!("a call that wrote it failed ({error}); write all of it, or make it again");
        let why: Arc<str> = text.into();
        let generation = way.generation;
        let mut from = sent.chunk.end;
        for at in at..self.queue.in_flight().len() {
            let InFlight { batch, way } = &self.queue.in_flight()[at];
            if way.generation != generation {
                continue;
            }
            let recipes = self.programs.recipes();
            let end = match way.rest.is_empty() {
                // The calls behind, if there are any, go again, and are looked at then.
                true => way.sent_calls(),
                false => batch.ahead().len(),
            };
            let mut refused = Vec::new();
            for place in from..end {
                let call = &batch.ahead()[place];
                let write = write_of(recipes, batch, call);
                let is_tainted =
                    read_of(recipes, batch, call, |tensor| lost.contains(&tensor)).is_some();
                if is_tainted {
                    let error = Error::TensorLost((*why).into());
                    refused.push(Refused { place, error });
                }
                let Some(Write { tensor, words }) = write else {
                    continue;
                };
                if is_tainted && !lost.contains(&tensor) {
                    lost.push(tensor);
                } else if !is_tainted && self.provenances.is_whole(tensor, words) {
                    lost.retain(|known| *known != tensor);
                }
            }
            self.refuse_all(at, refused);
            from = 0;
        }
        for tensor in lost {
            self.provenances.lose(tensor, &why);
        }
    }

    /// Counts what calls wrote as lost with the device. A face fills the tensors again, with data
    /// that is older, until [`Session::give_up_unreadable`].
    pub(super) fn lose_written_tensors(&mut self) {
        self.provenances.lose_written(&Arc::from(GONE));
    }

    /// Whether the calls of a chunk that the device refused as a whole may go again: nothing was
    /// sent behind that may have read what the chunk was to write.
    pub(super) fn may_retract(&self, at: usize) -> bool {
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        let sent = &way.chunks[way.landed];
        let is_newest =
            at + 1 == self.queue.in_flight().len() && way.landed + 1 == way.chunks.len();
        is_newest
            || writes(self.programs.recipes(), batch, sent)
                .next()
                .is_none()
    }

    /// Notes that nothing of a chunk was computed, because the device refused it as a whole.
    pub(super) fn retract(&mut self, at: usize) {
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        let sent = &way.chunks[way.landed];
        let mut retracted: Vec<u32> = Vec::new();
        for (_, call, Write { tensor, .. }) in writes(self.programs.recipes(), batch, sent) {
            if !retracted.contains(&tensor) {
                retracted.push(tensor);
                self.provenances.retract(tensor, call.ticket);
            }
        }
    }

    /// Answers calls of a batch in flight with errors, where somebody waits for them.
    fn refuse_all(&mut self, at: usize, refused: Vec<Refused>) {
        for Refused { place, error } in refused {
            let call = &self.queue.flying(at).calls()[place];
            if !call.is_live {
                continue;
            }
            let ticket = call.ticket;
            self.queue.answered(at, place..place + 1);
            self.metrics.rejected += 1;
            match self.answered.back_mut() {
                Some(last) if last.outcome.as_ref() == Err(&error) => last.tickets.push(ticket),
                _ => self.answered.push_back(Answered {
                    tickets: vec![ticket],
                    outcome: Err(error),
                }),
            }
        }
    }
}

/// The calls of a chunk that write tensors: the place of each in the batch, and what it writes.
fn writes<'a>(
    recipes: &'a [Recipe],
    batch: &'a Batch,
    sent: &Sent,
) -> impl Iterator<Item = (usize, &'a Call, Write)> {
    let places = match sent.is_cpu_share {
        true => 0..0, // The CPU beside a GPU gets no call that writes.
        false => sent.chunk.first..sent.chunk.end,
    };
    places.filter_map(move |place| {
        let call = &batch.calls()[place];
        Some((place, call, write_of(recipes, batch, call)?))
    })
}

/// What a call writes, if it writes a tensor.
fn write_of(recipes: &[Recipe], batch: &Batch, call: &Call) -> Option<Write> {
    let tensor = batch.written(recipes, call)?;
    let words = call.work.planned.stored;
    Some(Write { tensor, words })
}

/// The first of the tensors for which `is_lost` holds that a call reads. A tensor that a call
/// only writes may be lost.
fn read_of(
    recipes: &[Recipe],
    batch: &Batch,
    call: &Call,
    is_lost: impl Fn(u32) -> bool,
) -> Option<u32> {
    let recipe = &recipes[call.work.planned.recipe.0 as usize];
    let set = batch.payload.tensors_of(call);
    let written = recipe.written(set);
    let reads = |(place, tensor): &(usize, &u32)| {
        is_lost(**tensor) && (written != Some(**tensor) || recipe.reads(*place))
    };
    set.iter()
        .enumerate()
        .find(reads)
        .map(|(_, tensor)| *tensor)
}
