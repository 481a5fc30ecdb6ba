//! Submission: takes calls, with the room for their operands and the batch that they join.
//!
//! How much a call takes, and whether any device may have it, is not said here.

use super::Session;
use super::arena_pool::ArenaPool;
use super::budget::most_room;
use super::payload::{Computation, Naming, Payload};
use super::program_cache::Footprint;
use crate::batch::{Accepted, Admission, Millis, Priority, Request, Ticket};
use crate::device::{Device, Engine};
use crate::error::Error;
use crate::graph::insertion::ROW;
use crate::plan::{Call, NumbersId, Recipe, RecipeId, SetId};
use crate::tensor::{Span, WORD};

/// A call whose operands lie at the start of [`Session::room`].
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// The call's structure.
    pub recipe: RecipeId,
    /// The call's rows; at least one. For a structure that knows its rows, a chain, what
    /// the call takes of
    /// [`BatchConfig::max_batch_cost`](crate::BatchConfig::max_batch_cost).
    pub rows: u32,
    /// The bits of the scalar, where the structure has one.
    pub scalar: u32,
    /// Calls of one key may take each other's place in a full queue.
    pub key: Option<u32>,
}

impl<D: Device> Session<D> {
    /// Memory for the operands of the next call, at least `words` long. The operands lie
    /// one after the other, each from the next multiple of 16 bytes on.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] when no batch can hold that much, [`Error::OutOfMemory`] when
    /// there is no memory for so many words.
    pub fn room(&mut self, words: u64) -> Result<&mut [u32], Error> {
        let limit = most_room(self.devices.primary().limits().max_side_bytes);
        let need = words * WORD as u64;
        let words = u32::try_from(words).ok().filter(|_| need <= limit);
        let Some(words) = words else {
            return Err(Error::TooLarge {
                what: "what a call reads",
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

    /// The room that is left where the next call's operands go; may be empty.
    pub fn free_room(&mut self) -> &mut [u32] {
        self.payload().arena.free()
    }

    /// The payload of the batch that the next call joins.
    fn payload(&mut self) -> &mut Payload {
        let batch = self.explained.as_mut();
        &mut batch.unwrap_or(self.queue.open_mut()).payload
    }

    /// Takes the call whose operands were written to [`Session::room`]. When the call
    /// filled its batch, [`Session::due`] says `Now`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for values the structure refuses, [`Error::TooLarge`],
    /// [`Error::QueueFull`], [`Error::OutOfMemory`]. The call is not taken then, but a full
    /// queue asks for its open batch to be sent.
    pub fn submit(&mut self, submission: &Submission, now: Millis) -> Result<Accepted, Error> {
        self.submit_to(None, submission, now)
    }

    /// Takes a call as [`Session::submit_to`] does, of this priority.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::submit_to`].
    pub fn submit_with(
        &mut self,
        priority: Priority,
        engine: Option<Engine>,
        submission: &Submission,
        now: Millis,
    ) -> Result<Accepted, Error> {
        let read = self.read(engine, submission)?;
        if self.explained.is_some() {
            return Ok(self.explain(read));
        }
        if priority == Priority::Normal && self.queue.is_all_normal() {
            return self.enqueue(read, now);
        }
        match self.keep_order(priority, &read)? {
            Priority::Normal => {
                if priority == Priority::Low {
                    self.queue.join_normal();
                }
                self.enqueue(read, now)
            }
            other => self.enqueue_in(other, read, now),
        }
    }

    /// Takes a call as [`Session::submit`] does, for a device of one kind.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::submit`]; [`Error::NoAdapter`] where there is no such device,
    /// and [`Error::InvalidInput`] for the CPU where it lacks a tensor that the call reads,
    /// or the call writes to one.
    pub fn submit_to(
        &mut self,
        engine: Option<Engine>,
        submission: &Submission,
        now: Millis,
    ) -> Result<Accepted, Error> {
        self.submit_with(Priority::Normal, engine, submission, now)
    }

    /// Reads the call in the free room, the tensors that it names into `named_tensors`, and those
    /// that it writes into `written_tensors`.
    fn read(&mut self, wanted: Option<Engine>, submission: &Submission) -> Result<ReadCall, Error> {
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
        let Footprint { words, bytes, .. } = self.footprint(recipe, rows)?;
        let batch = self.explained.as_mut();
        let payload = &mut batch.unwrap_or(self.queue.open_mut()).payload;
        let known = &self.programs.recipes()[recipe.0 as usize];
        let scalar = payload.encode(known, rows, scalar)?;
        payload.read_tensors(words, known.residents(), &mut self.named_tensors);
        self.written_tensors.clear();
        self.written_tensors
            .extend(known.written(&self.named_tensors));
        let numbers = known.numbers();
        let stored = known.stored(payload.arena.free(), rows)?;
        for tensor in &self.named_tensors {
            self.check_tensor(*tensor)?;
        }
        self.check_shards(recipe, &self.named_tensors)?;
        self.check_engine(recipe, wanted)?;
        if let [target] = &self.written_tensors[..]
            && known.is_sampling()
        {
            let end = u64::from(stored.at) + u64::from(stored.words);
            self.check_words(*target, end)?;
            let at = self.tensors.place(*target).at();
            let batch = self.explained.as_mut();
            let payload = &mut batch.unwrap_or(self.queue.open_mut()).payload;
            known.move_target(payload.arena.free(), rows, at);
        }
        if let [_] = &self.written_tensors[..]
            && let Some(insertion) = known.insertion()
        {
            let batch = self.explained.as_mut();
            let payload = &mut batch.unwrap_or(self.queue.open_mut()).payload;
            let rows = &payload.arena.free()[..(ROW * rows) as usize];
            let ends = [insertion.source_words(rows), insertion.page_words(stored)];
            self.check_ends(ends)?;
        }
        let planned = Call {
            recipe,
            rows,
            inputs: Span { at: 0, words },
            scalar,
            set: SetId::default(),
            tensors: Span::default(),
            stored,
            numbers: NumbersId::default(),
        };
        let work = Computation {
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
        Ok(ReadCall {
            work,
            request,
            numbers,
        })
    }

    /// Takes a call that is explained and never sent.
    fn explain(&mut self, read: ReadCall) -> Accepted {
        let ReadCall {
            mut work, numbers, ..
        } = read;
        let ticket = self.queue.number();
        let batch = self.explained.as_mut().expect("calls are explained");
        let naming = Naming {
            tensors: &self.named_tensors,
            table: &self.tensors,
        };
        batch.payload.claim(&mut work, naming, numbers);
        batch.push(ticket, Request::default(), work);
        Accepted {
            ticket,
            batch: batch.id,
            superseded: None,
        }
    }

    /// Takes a call into the open batch.
    fn enqueue(&mut self, read: ReadCall, now: Millis) -> Result<Accepted, Error> {
        let ReadCall {
            mut work,
            request,
            numbers,
        } = read;
        let words = work.planned.inputs.words;
        if self.queue.closes_for(&request) && !self.prepare_next(words) {
            return Err(no_memory(words));
        }
        let arenas = &mut self.arenas;
        let Admission { superseded, .. } = self.queue.admit(&request, |full| {
            // The full batch is sealed before this call, whose operands move along.
            let mut arena = arenas.take();
            full.arena.hand_over(words, &mut arena);
            Payload::new(arena)
        })?;
        self.note_call(superseded);
        let payload = &mut self.queue.open_mut().payload;
        payload.note_written(&self.written_tensors);
        let naming = Naming {
            tensors: &self.named_tensors,
            table: &self.tensors,
        };
        payload.claim(&mut work, naming, numbers);
        let next = next_payload(&mut self.arenas);
        let (ticket, batch) = self.queue.push(request, work, now, next);
        Ok(self.accepted(Accepted {
            ticket,
            batch,
            superseded,
        }))
    }

    /// Notes what a call that was taken leaves without use.
    pub(super) fn accepted(&mut self, accepted: Accepted) -> Accepted {
        if let Some(older) = accepted.superseded {
            self.note_waste(older);
        }
        accepted
    }

    /// Notes a call that is taken, and the one that it supersedes.
    pub(super) fn note_call(&mut self, superseded: Option<Ticket>) {
        // Calls that were made before still read the copies.
        for tensor in &self.written_tensors {
            self.tensors.drop_copy(*tensor);
        }
        self.metrics.calls += 1;
        self.metrics.rejected += u64::from(superseded.is_some());
        if superseded.is_some() {
            self.gate.open(); // Parked calls may have waited for what the superseded call writes.
        }
        for tensor in &self.named_tensors {
            self.tensors.read(*tensor);
        }
    }

    /// Sees to it that the next batch can have the operands in the free room; `false` where
    /// there is no memory for them.
    pub(super) fn prepare_next(&mut self, words: u32) -> bool {
        if self.queue.open().payload.arena.is_free_apart() {
            return true;
        }
        self.arenas.reserve(words)
    }
}

/// A call that was read from the free room.
pub(super) struct ReadCall {
    pub(super) work: Computation,
    pub(super) request: Request,
    /// How many numbers come last in the operands.
    pub(super) numbers: u32,
}

/// Makes the payload of the next batch, with a spare arena if there is one.
pub(super) fn next_payload(arenas: &mut ArenaPool) -> impl FnOnce(&mut Payload) -> Payload {
    |_| Payload::new(arenas.take())
}

pub(super) fn no_memory(words: u32) -> Error {
    let bytes = u64::from(words) * u64::from(WORD);
    Error::OutOfMemory(format!(
        "there is none for the call's operands of {bytes} bytes; stream them in chunks"
    ))
}
