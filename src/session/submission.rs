//! Takes calls: the room for their operands, and the batch that they join.
//!
//! How much a call takes, and whether any device may have it, is not said here.

use super::Session;
use super::arena_pool::ArenaPool;
use super::budget::most_room;
use super::payload::{Payload, Work};
use crate::batch::{Accepted, Admission, Millis, Request};
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
        let limit = most_room(self.devices.primary().limits().max_side_bytes);
        let need = words * WORD as u64;
        let words = u32::try_from(words).ok().filter(|_| need <= limit);
        let Some(words) = words else {
            return Err(Error::TooLarge {
                what: "a call's operands",
                need,
                limit,
            });
        };
        let arena = &mut self.payload().arena;
        if !arena.reserve(words) {
            return Err(no_memory(words));
        }
        Ok(arena.free())
    }

    /// The room that is left where the next call goes; may be empty.
    pub fn free_room(&mut self) -> &mut [u32] {
        self.payload().arena.free()
    }

    /// The payload of the batch that the next call joins.
    fn payload(&mut self) -> &mut Payload {
        let batch = self.explained.as_mut();
        &mut batch.unwrap_or(self.queue.open_mut()).payload
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
        let read = self.read(engine, submission)?;
        if self.explained.is_some() {
            return Ok(self.note(read));
        }
        self.enqueue(read, now)
    }

    /// Reads the call in the free room. The tensors that it names are in `named` then.
    fn read(&mut self, wanted: Option<Engine>, submission: &Submission) -> Result<Read, Error> {
        let Submission {
            recipe,
            rows,
            scalar,
            key,
        } = *submission;
        let known = self.programs.get(recipe);
        let (rows, cost) = match known.and_then(Recipe::rows) {
            Some(known) => (known, rows),
            None => (rows, 0),
        };
        let (words, bytes) = self.measure(recipe, rows)?;
        let batch = self.explained.as_mut();
        let payload = &mut batch.unwrap_or(self.queue.open_mut()).payload;
        let known = &self.programs.recipes()[recipe.0 as usize];
        let scalar = payload.encode(known, rows, scalar)?;
        payload.tensors(words, known.residents(), &mut self.named);
        let (written, numbers) = (known.written(&self.named), known.numbers());
        for tensor in &self.named {
            self.check_tensor(*tensor)?;
        }
        self.check_parts(recipe, &self.named)?;
        self.check_engine(wanted, &self.named, written)?;
        let planned = Call {
            recipe,
            rows,
            inputs: Span { at: 0, words },
            scalar,
            set: SetId::default(),
            numbers: NumbersId::default(),
        };
        let work = Work {
            planned,
            wanted,
            is_cpu_share: false,
        };
        let request = Request {
            items: known.items(rows),
            cost: cost.into(),
            bytes,
            key,
        };
        Ok(Read {
            work,
            request,
            written,
            numbers,
        })
    }

    /// Takes a call that is planned and never sent.
    fn note(&mut self, read: Read) -> Accepted {
        let Read {
            mut work, numbers, ..
        } = read;
        let ticket = self.queue.number();
        let batch = self.explained.as_mut().expect("calls are explained");
        batch.payload.take(&mut work, &self.named, numbers);
        batch.push(ticket, Request::default(), work);
        Accepted {
            ticket,
            batch: batch.id,
            superseded: None,
        }
    }

    /// Takes a call into the open batch.
    fn enqueue(&mut self, read: Read, now: Millis) -> Result<Accepted, Error> {
        let Read {
            mut work,
            request,
            written,
            numbers,
        } = read;
        let words = work.planned.inputs.words;
        if self.queue.closes_for(&request) && !self.prepare_next(words) {
            return Err(no_memory(words));
        }
        let arenas = &mut self.arenas;
        let Admission { superseded, .. } = self.queue.admit(&request, |full| {
            // The batch is sealed before this call: its operands move along.
            let mut arena = arenas.take();
            full.arena.hand_over(words, &mut arena);
            Payload::new(arena)
        })?;
        if let Some(tensor) = written {
            self.outdate(tensor);
        }
        self.metrics.calls += 1;
        self.metrics.rejected += u64::from(superseded.is_some());
        if superseded.is_some() {
            self.gate.open(); // As in `abort`.
        }
        for tensor in &self.named {
            self.tensors.read(*tensor);
        }
        let payload = &mut self.queue.open_mut().payload;
        payload.take(&mut work, &self.named, numbers);
        let next = next_payload(&mut self.arenas);
        let (ticket, batch) = self.queue.push(request, work, now, next);
        if let Some(older) = superseded {
            self.waste(older);
        }
        Ok(Accepted {
            ticket,
            batch,
            superseded,
        })
    }

    /// Sees to it that the next batch can have the operands in the free room.
    fn prepare_next(&mut self, words: u32) -> bool {
        if self.queue.open().payload.arena.is_free_apart() {
            return true;
        }
        self.arenas.reserve(words)
    }
}

/// A call that was read from the free room.
struct Read {
    work: Work,
    request: Request,
    /// The tensor that it writes.
    written: Option<u32>,
    /// How many numbers come last in its operands.
    numbers: u32,
}

/// Makes the payload of the next batch, with memory that is spare if there is some.
pub(super) fn next_payload(arenas: &mut ArenaPool) -> impl FnOnce(&mut Payload) -> Payload {
    |_| Payload::new(arenas.take())
}

fn no_memory(words: u32) -> Error {
    let bytes = u64::from(words) * u64::from(WORD);
    Error::OutOfMemory(format!(
        "there is none for the call's operands of {bytes} bytes; stream them in chunks"
    ))
}
