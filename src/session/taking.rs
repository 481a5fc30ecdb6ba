//! Takes calls: the room for their operands, and the batch that they join.
//!
//! How much a call takes, and whether any device may have it, is not said here.

use super::Session;
use super::budget::most_room;
use super::load::Load;
use crate::batch::{Accepted, BatchId, Millis, Request};
use crate::device::{Device, Engine};
use crate::error::Error;
use crate::plan::{Call, NumbersId, Recipe, RecipeId, SetId};
use crate::tensor::{Span, WORD};

/// A call whose operands lie at the start of [`Session::room`].
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// Its structure.
    pub recipe: RecipeId,
    /// Its rows; at least one. Of a structure that knows its rows, a chain, what
    /// the call takes of [`BatchConfig::max_batch_cost`](crate::BatchConfig::max_batch_cost).
    pub rows: u32,
    /// The bits of its scalar, where the structure has one.
    pub scalar: u32,
    /// Calls of one key may take each other's place in a full queue.
    pub key: Option<u32>,
}

impl<D: Device> Session<D> {
    /// Memory for the operands of the next call, at least `words` long: one
    /// after the other, each from the next multiple of 16 bytes on.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] when no batch can hold that much, [`Error::OutOfMemory`] when
    /// there is no memory for it.
    pub fn room(&mut self, words: u64) -> Result<&mut [u32], Error> {
        let limit = most_room(self.device.limits().max_side_bytes);
        let need = words * WORD as u64;
        let words = u32::try_from(words).ok().filter(|_| need <= limit);
        let Some(words) = words else {
            return Err(Error::TooLarge {
                what: "a call's operands",
                need,
                limit,
            });
        };
        let load = self.explained.as_mut().unwrap_or(&mut self.open);
        if !load.arena.reserve(words) {
            return Err(no_memory(words));
        }
        Ok(load.arena.free())
    }

    /// The room that is left where the next call goes; may be empty.
    pub fn free_room(&mut self) -> &mut [u32] {
        let load = self.explained.as_mut().unwrap_or(&mut self.open);
        load.arena.free()
    }

    /// Takes the call whose operands were written to [`Session::room`]. When it
    /// filled its batch, [`Session::due`] says `Now`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for values the structure refuses,
    /// [`Error::TooLarge`], [`Error::QueueFull`], [`Error::OutOfMemory`]. Nothing is taken then, but a
    /// full queue asks for its open batch to be sent.
    pub fn submit(&mut self, submission: &Submission, now: Millis) -> Result<Accepted, Error> {
        self.submit_to(None, submission, now)
    }

    /// Takes a call as [`Session::submit`] does, for a device of one kind.
    ///
    /// # Errors
    ///
    /// As there; [`Error::NoAdapter`] where there is no such device, and
    /// [`Error::InvalidInput`] for the processor where it has not got a tensor
    /// that the call reads, or the call writes to one.
    pub fn submit_to(
        &mut self,
        engine: Option<Engine>,
        submission: &Submission,
        now: Millis,
    ) -> Result<Accepted, Error> {
        let Submission {
            recipe,
            rows,
            scalar,
            key,
        } = *submission;
        let known = self.structures.get(recipe);
        let (rows, cost) = match known.and_then(Recipe::rows) {
            Some(known) => (known, rows),
            None => (rows, 0),
        };
        let (words, bytes) = self.measure(recipe, rows)?;
        let load = self.explained.as_mut().unwrap_or(&mut self.open);
        let known = &self.structures.recipes()[recipe.0 as usize];
        let scalar = load.encode(known, rows, scalar)?;
        let items = known.items(rows);
        let mut tensors = std::mem::take(&mut self.named);
        load.tensors(words, known.residents(), &mut tensors);
        let (written, numbers) = (known.written(&tensors), known.numbers());
        for tensor in &tensors {
            self.check_tensor(*tensor)?;
        }
        self.check_parts(recipe, &tensors)?;
        self.check_engine(engine, &tensors, written)?;
        let mut call = Call {
            recipe,
            rows,
            inputs: Span { at: 0, words },
            scalar,
            set: SetId::default(),
            numbers: NumbersId::default(),
        };
        if let Some(load) = &mut self.explained {
            let ticket = self.batcher.number();
            call.set = load.set(&tensors);
            load.asked.extend(engine.map(|engine| (ticket, engine)));
            load.take(ticket, call, numbers);
            return Ok(Accepted {
                ticket,
                batch: load.id,
                superseded: None,
            });
        }
        let request = Request {
            items,
            cost: cost.into(),
            bytes,
            key,
        };
        if self.batcher.closes_for(&request) && !self.prepare_next(words) {
            return Err(no_memory(words));
        }
        let accepted = self.batcher.push(request, now)?;
        if let Some(tensor) = written {
            self.outdate(tensor);
        }
        self.counts.calls += 1;
        self.counts.rejected += u64::from(accepted.superseded.is_some());
        self.waiting.is_due |= accepted.superseded.is_some(); // As in `abort`.
        if accepted.batch != self.open.id {
            // The batch was sealed before this call: its operands move along.
            self.roll(accepted.batch);
            let full = self.sealed.last_mut().expect("just closed");
            full.arena.hand_over(words, &mut self.open.arena);
        }
        for tensor in &tensors {
            self.tensors.read(*tensor);
        }
        call.set = self.open.set(&tensors);
        let asked = engine.map(|engine| (accepted.ticket, engine));
        self.open.asked.extend(asked);
        self.named = tensors;
        self.open.take(accepted.ticket, call, numbers);
        self.roll(self.batcher.open_batch());
        if let Some(older) = accepted.superseded {
            self.waste(older);
        }
        Ok(accepted)
    }

    /// Sees to it that the next batch can have the operands in the free room.
    fn prepare_next(&mut self, words: u32) -> bool {
        if self.open.arena.is_free_apart() {
            return true;
        }
        let mut next = self.spare.pop().unwrap_or_default();
        let has_room = next.reserve(words);
        self.spare.push(next);
        has_room
    }

    /// Follows the batcher to the batch that is open now.
    pub(super) fn roll(&mut self, open: BatchId) {
        if self.open.id != open {
            let arena = self.spare.pop().unwrap_or_default();
            // The next is often as large.
            let next = Load::of(open, arena, self.open.calls.len());
            let full = std::mem::replace(&mut self.open, next);
            self.sealed.push(full);
        }
    }
}

fn no_memory(words: u32) -> Error {
    let bytes = u64::from(words) * u64::from(WORD);
    Error::OutOfMemory(format!(
        "there is none for the call's operands of {bytes} bytes; stream them in chunks"
    ))
}
