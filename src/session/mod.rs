//! Where graphs, plans, batches and a device meet.
//!
//! A session owns the memory of every call until it settles. It starts no
//! threads and has no clock: a face calls it, passes `now` in, and awaits the
//! flights that come out.

mod answers;
mod load;
mod loss;
mod stats;
mod structures;
mod tensors;

pub use answers::Answer;
pub(crate) use loss::LOSSES;
pub use stats::Stats;

use self::answers::Sent;
use self::load::Load;
use self::loss::ATTEMPTS;
use self::stats::Waits;
use self::structures::{Structure, Structures};
use self::tensors::Tensors;
use crate::batch::{Accepted, BatchConfig, BatchId, Batcher, Due, Millis, Request, Ticket};
use crate::device::{Counters, Device, DeviceInfo, Engine, Flight, Generation, Readback};
use crate::error::Error;
use crate::graph::Graph;
use crate::graph::chain::Chain;
use crate::plan::{self, Call, Recipe, RecipeId, SetId};
use crate::tensor::{Arena, Span, WORD};

/// Arenas kept for the next batches: as many as are usually on their way.
const SPARES: usize = 4;

/// A call whose operands lie at the start of [`Session::room`].
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// Its structure.
    pub recipe: RecipeId,
    /// Its rows; at least one.
    pub rows: u32,
    /// The bits of its scalar, where the structure has one.
    pub scalar: u32,
    /// Calls of one key may take each other's place in a full queue.
    pub key: Option<u32>,
}

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

/// Batches calls for one device.
#[derive(Debug)]
pub struct Session<D> {
    device: D,
    engine: Engine,
    generation: Generation,
    /// Whether the device is lost and not replaced yet. Nothing is sent then.
    lost: bool,
    /// What the devices before this one did.
    gone: Counters,
    batcher: Batcher,
    structures: Structures,
    tensors: Tensors,
    open: Load,
    sealed: Vec<Load>,
    in_flight: Vec<Flying>,
    /// Calls made while explaining; never sent.
    explained: Option<Load>,
    /// Arenas of settled batches, for the next ones.
    spare: Vec<Arena>,
    waits: Waits,
    counts: stats::Counts,
}

/// A load on its way, kept whole: it is sent again if the device is lost.
#[derive(Debug)]
struct Flying {
    load: Load,
    generation: Generation,
    sent: Millis,
    /// Its pieces, in order.
    pieces: Vec<Sent>,
    /// How many of them are back.
    landed: usize,
}

impl<D: Device> Session<D> {
    /// A session on a device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when the settings cannot work.
    pub fn new(device: D, config: BatchConfig) -> Result<Self, Error> {
        // Operands, results and tables share what one buffer can hold.
        let max_batch_bytes = config
            .max_batch_bytes
            .min(device.limits().max_side_bytes / 4);
        let batcher = Batcher::new(BatchConfig {
            max_batch_bytes,
            ..config
        })?;
        Ok(Session {
            engine: device.info().engine,
            generation: Generation::default(),
            lost: false,
            gone: Counters::default(),
            device,
            open: Load::new(batcher.open_batch(), Arena::default()),
            batcher,
            structures: Structures::default(),
            tensors: Tensors::default(),
            sealed: Vec::new(),
            in_flight: Vec::new(),
            explained: None,
            spare: Vec::new(),
            waits: Waits::default(),
            counts: stats::Counts::default(),
        })
    }

    /// The number of a structure; equal graphs have one number and merge. It
    /// is good until [`Session::forget`] was told of it as often as it was
    /// asked for.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a graph that computes nothing.
    pub fn recipe(&mut self, graph: &Graph) -> Result<RecipeId, Error> {
        let same = |known: &Structure| matches!(known, Structure::Graph(known) if known == graph);
        if let Some(id) = self.structures.hold(same) {
            return Ok(id);
        }
        let recipe = Recipe::new(graph)?;
        let structure = Structure::Graph(graph.clone());
        Ok(self.structures.learn(structure, recipe))
    }

    /// The number of a chain, as good as that of a graph. Calls of one program
    /// merge whatever their shapes.
    ///
    /// Such a call's operands are the chain's inputs of [`Home::Call`], then
    /// its constants, then the numbers of the tensors that its other inputs
    /// are, each part from the next multiple of 16 bytes on.
    ///
    /// [`Home::Call`]: crate::graph::chain::Home::Call
    pub fn chain(&mut self, chain: Chain) -> RecipeId {
        let same = |known: &Structure| matches!(known, Structure::Chain(known) if *known == chain);
        if let Some(id) = self.structures.hold(same) {
            return id;
        }
        let recipe = Recipe::fuse(&chain, self.structures.recipes());
        self.structures.learn(Structure::Chain(chain), recipe)
    }

    /// Gives up structures that were asked for. Calls that were made before are
    /// still computed.
    pub fn forget(&mut self, ids: impl IntoIterator<Item = RecipeId>) {
        for id in ids {
            self.structures.release(id);
        }
        self.sweep();
    }

    /// Frees the structures that neither a holder nor a call needs any more.
    fn sweep(&mut self) {
        if !self.structures.has_abandoned() {
            return;
        }
        let mut pending: Vec<&[Call]> = vec![&self.open.calls];
        pending.extend(self.explained.iter().map(|load| &load.calls[..]));
        pending.extend(self.sealed.iter().map(|load| &load.calls[..]));
        pending.extend(self.in_flight.iter().map(|flying| &flying.load.calls[..]));
        self.structures.sweep(&pending);
    }

    /// A number for a tensor that stays on the device. Fill it before a call
    /// reads it, and again after [`Session::replace_device`].
    pub fn hold(&mut self) -> u32 {
        self.tensors.hold()
    }

    /// Gives up a tensor. Calls that were made before still read it.
    pub fn release(&mut self, tensor: u32) {
        if self.tensors.release(tensor) {
            self.device.release(tensor);
        }
    }

    /// Copies a tensor's data to the device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tensor that is not held,
    /// [`Error::TooLarge`] for one that no buffer holds.
    pub fn fill(&mut self, tensor: u32, words: &[u32]) -> Result<(), Error> {
        self.fill_with(tensor, |device| device.fill(tensor, words))
    }

    /// The same for a face that has another way to the device.
    ///
    /// # Errors
    ///
    /// Those of `copy`, and [`Error::InvalidInput`] for a tensor that is not
    /// held.
    pub fn fill_with(
        &mut self,
        tensor: u32,
        copy: impl FnOnce(&mut D) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_tensor(tensor)?;
        copy(&mut self.device)?;
        self.tensors.fill(tensor);
        Ok(())
    }

    /// Refuses a number that no tensor has.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`].
    pub fn check_tensor(&self, tensor: u32) -> Result<(), Error> {
        match self.tensors.is_held(tensor) {
            true => Ok(()),
            false => Err(Error::InvalidInput(
                "a tensor was disposed of; make it again".into(),
            )),
        }
    }

    /// Memory for the operands of the next call, at least `words` long: one
    /// after the other, each from the next multiple of 16 bytes on.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] when no batch can hold that much.
    pub fn room(&mut self, words: u64) -> Result<&mut [u32], Error> {
        let limit = self.device.limits().max_side_bytes;
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
        load.arena.reserve(words);
        Ok(load.arena.free())
    }

    /// The room that is left where the next call goes; may be empty.
    pub fn free_room(&mut self) -> &mut [u32] {
        let load = self.explained.as_mut().unwrap_or(&mut self.open);
        load.arena.free()
    }

    /// Whether no call is in the open batch, so that the next one is its oldest.
    pub fn is_open_empty(&self) -> bool {
        self.batcher.is_open_empty()
    }

    /// Whether a batch waits for [`Session::launch`].
    pub fn is_ready(&self) -> bool {
        self.batcher.is_ready()
    }

    /// Takes the call whose operands were written to [`Session::room`]. When it
    /// filled its batch, [`Session::due`] says `Now`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for values the structure refuses,
    /// [`Error::TooLarge`], [`Error::QueueFull`]. Nothing is taken then, but a
    /// full queue asks for its open batch to be sent.
    pub fn submit(&mut self, submission: &Submission, now: Millis) -> Result<Accepted, Error> {
        let Submission {
            recipe,
            rows,
            scalar,
            key,
        } = *submission;
        let known = self.structures.get(recipe);
        let rows = known.and_then(Recipe::rows).unwrap_or(rows);
        let (words, bytes) = self.measure(recipe, rows)?;
        let load = self.explained.as_mut().unwrap_or(&mut self.open);
        let known = &self.structures.recipes()[recipe.0 as usize];
        let scalar = load.encode(known, rows, scalar)?;
        let tensors = load.tensors(words, known.residents());
        for tensor in &tensors {
            self.check_tensor(*tensor)?;
        }
        let mut call = Call {
            recipe,
            rows,
            inputs: Span { at: 0, words },
            scalar,
            set: SetId::default(),
        };
        if let Some(load) = &mut self.explained {
            let ticket = self.batcher.number();
            call.set = load.set(&tensors);
            load.take(ticket, call);
            return Ok(Accepted {
                ticket,
                batch: load.id,
                superseded: None,
            });
        }
        let request = Request {
            items: rows.into(),
            bytes,
            key,
        };
        let accepted = self.batcher.push(request, now)?;
        self.counts.calls += 1;
        self.counts.rejected += u64::from(accepted.superseded.is_some());
        if accepted.batch != self.open.id {
            // The batch was sealed before this call: its operands move along.
            let operands = self.open.arena.free()[..words as usize].to_vec();
            self.roll(accepted.batch);
            self.open.arena.reserve(words);
            self.open.arena.free()[..operands.len()].copy_from_slice(&operands);
        }
        for tensor in &tensors {
            self.tensors.read(*tensor);
        }
        call.set = self.open.set(&tensors);
        self.open.take(accepted.ticket, call);
        self.roll(self.batcher.open_batch());
        Ok(accepted)
    }

    /// What should happen next, and when.
    pub fn due(&self, now: Millis) -> Due {
        self.batcher.due(now)
    }

    /// Asks for the open batch to be sent by [`Session::launch`].
    pub fn flush(&mut self) {
        self.batcher.flush();
    }

    /// Sends the next batch that is full or was asked for, unless too many are
    /// on their way or the device is lost. Encoding and submission happen here,
    /// synchronously.
    pub fn launch(&mut self, now: Millis) -> Option<Launch> {
        if self.lost {
            return None;
        }
        let id = self.batcher.take()?;
        while self.sealed.first().is_some_and(|load| load.id != id) {
            let abandoned = self.sealed.remove(0); // All its calls were given up.
            self.recycle(abandoned);
        }
        self.roll(self.batcher.open_batch());
        let mut load = self.sealed.remove(0);
        let batch = self.batcher.in_flight(id).expect("just taken");
        if !load.is_sent {
            self.waits.add(now.0 - batch.oldest.0);
            let fill = self.batcher.fill(batch);
            self.counts.batch(batch.tickets().len(), fill);
        }
        load.is_sent = true;
        load.keep(batch.tickets());
        let (pieces, flights) = self.send(&mut load);
        let generation = self.generation;
        self.in_flight.push(Flying {
            load,
            generation,
            sent: now,
            pieces,
            landed: 0,
        });
        Some(Launch {
            batch: id,
            generation,
            flights,
        })
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

    /// When the oldest batch in flight was sent.
    pub fn oldest_in_flight(&self) -> Option<Millis> {
        let moments = self.in_flight.iter().map(|flying| flying.sent);
        moments.reduce(|a, b| if b < a { b } else { a })
    }

    /// Gives up a call; `true` if it was pending. Nobody settles it then.
    pub fn abort(&mut self, ticket: Ticket) -> bool {
        let found = self.batcher.abort(ticket);
        self.counts.rejected += u64::from(found);
        if self.batcher.is_open_empty() {
            let read = self.open.clear();
            self.unread(read);
        }
        found
    }

    /// Gives up everything pending and frees the device. The tickets, oldest
    /// first, wait for the face to reject them.
    pub fn dispose(&mut self) -> Vec<Ticket> {
        let tickets = self.batcher.drain();
        self.counts.rejected += tickets.len() as u64;
        self.in_flight.clear();
        self.sealed.clear();
        self.spare.clear();
        self.open = Load::new(self.batcher.open_batch(), Arena::default());
        self.device.destroy();
        tickets
    }

    /// From here on calls are planned and never sent.
    pub fn begin_explain(&mut self) {
        self.explained = Some(Load::new(self.open.id, Arena::default()));
    }

    /// The plan of the calls made since [`Session::begin_explain`], as text.
    /// Their tickets are forgotten.
    pub fn end_explain(&mut self) -> String {
        let Some(Load { calls, sets, .. }) = self.explained.take() else {
            return String::new();
        };
        let recipes = self.structures.recipes();
        let pieces = plan::pieces(recipes, &calls, self.device.limits().pieces);
        let mut text = String::new();
        for (index, piece) in pieces.iter().enumerate() {
            if pieces.len() > 1 {
                let line_end = if index > 0 { "\n" } else { "" };
                let (number, count) = ((index + 1).to_string(), pieces.len().to_string());
                let head = [line_end, "piece ", &number, " of ", &count, "\n"];
                text.extend(head);
            }
            text += &plan::assemble(recipes, &calls, &sets, piece).to_string();
        }
        text
    }

    /// A structure's recipe.
    pub fn recipe_of(&self, id: RecipeId) -> Option<&Recipe> {
        self.structures.get(id)
    }

    /// Calls that still fit before the queue is full; not above 0 when full.
    pub fn desired_size(&self) -> i64 {
        self.batcher.desired_size()
    }

    /// Calls queued and in flight.
    pub fn pending(&self) -> usize {
        self.batcher.pending()
    }

    /// Counts since the session was opened.
    pub fn stats(&self) -> Stats {
        self.counts.stats(
            &self.waits,
            self.batcher.pending(),
            self.device.counters().after(self.gone),
        )
    }

    /// Notes how long a launch took; the face has the clock.
    pub fn note_encode(&mut self, ms: f64) {
        self.counts.encode_ms += ms;
    }

    /// What the device is.
    pub fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, for what is not a batch.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Batches on their way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Words of operands and bytes of operands and results of a call.
    fn measure(&self, recipe: RecipeId, rows: u32) -> Result<(u32, u64), Error> {
        let Some(known) = self.structures.get(recipe) else {
            return Err(Error::InvalidInput(format!(
                "structure {} is unknown; ask `recipe` for one",
                recipe.0
            )));
        };
        if rows == 0 {
            return Err(Error::InvalidInput(
                "a call has at least one row; answer empty calls without a device".into(),
            ));
        }
        let limit = self.device.limits().max_side_bytes;
        let (up, down) = (known.input_words(rows), known.result_words(rows));
        let need = up.max(down) * WORD as u64;
        match u32::try_from(up) {
            Ok(words) if need <= limit => Ok((words, (up + down) * WORD as u64)),
            _ => Err(Error::TooLarge {
                what: "a call",
                need,
                limit,
            }),
        }
    }

    /// Follows the batcher to the batch that is open now.
    fn roll(&mut self, open: BatchId) {
        if self.open.id != open {
            let arena = self.spare.pop().unwrap_or_default();
            let full = std::mem::replace(&mut self.open, Load::new(open, arena));
            self.sealed.push(full);
        }
    }

    /// So many calls read tensors no more.
    fn unread(&mut self, read: Vec<u32>) {
        for tensor in read {
            if self.tensors.done(tensor) {
                self.device.release(tensor);
            }
        }
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

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
