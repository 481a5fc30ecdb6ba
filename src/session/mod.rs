//! Where graphs, plans, batches and a device meet.
//!
//! A session owns the memory of every call until it settles. It starts no
//! threads and has no clock: a face calls it, passes `now` in, and awaits the
//! flights that come out.

mod answers;
mod calibrate;
mod cut;
mod divide;
mod explain;
mod facts;
mod flights;
mod load;
mod loss;
mod model;
mod parts;
mod route;
mod scarce;
mod stats;
mod structures;
mod tensors;
mod waiting;
mod warmup;

#[cfg(not(target_arch = "wasm32"))]
#[path = "budget_native.rs"]
mod budget;
#[cfg(target_arch = "wasm32")]
#[path = "budget_web.rs"]
mod budget;

pub use answers::Answer;
pub use facts::{Facts, Measured};
pub use flights::{Launch, Settlement};
pub(crate) use loss::LOSSES;
pub use model::{FACTS, Model};
pub use stats::{Stats, TensorBytes};
pub use warmup::Kernels;

use self::budget::{default_budget, most_room};
use self::calibrate::Calibration;
use self::facts::Meter;
use self::flights::Flying;
use self::load::Load;
use self::route::Router;
use self::stats::Waits;
use self::structures::{Structures, Taken};
use self::tensors::Tensors;
use self::waiting::Waiting;
use crate::batch::{
    Accepted, BatchConfig, BatchId, Batcher, Due, MemoryBudget, Millis, Request, Ticket,
};
use crate::device::{Clock, Counters, Device, DeviceInfo, Engine, Generation};
use crate::error::Error;
use crate::plan::{Call, MOST_THREADS, NumbersId, Recipe, RecipeId, SetId};
use crate::tensor::{Arena, Span, WORD};

/// Arenas kept for the next batches: as many as are usually on their way.
const SPARES: usize = 4;

/// How often a batch's bytes lie in memory at once: in the one that is filled, in
/// those on their way, and in the slots that they are computed in.
const COPIES: u64 = 4;

/// A call whose operands lie at the start of [`Session::room`].
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// Its structure.
    pub recipe: RecipeId,
    /// Its rows; at least one. Of a structure that knows its rows, a chain, what
    /// the call takes of [`BatchConfig::max_batch_cost`].
    pub rows: u32,
    /// The bits of its scalar, where the structure has one.
    pub scalar: u32,
    /// Calls of one key may take each other's place in a full queue.
    pub key: Option<u32>,
}

/// Batches calls for one device, or for a GPU and the processor beside it.
#[derive(Debug)]
pub struct Session<D> {
    device: D,
    engine: Engine,
    /// The processor, where the device is a GPU and calls may leave it.
    beside: Option<D>,
    /// Says which of them do, where that is not for the calls to say.
    router: Option<Router>,
    calibration: Option<Box<Calibration>>,
    generation: Generation,
    /// Whether the device is lost and not replaced yet. Nothing is sent then.
    lost: bool,
    /// Whether this device has answered a call.
    has_answered: bool,
    /// When a device last answered something that can be read.
    heard: Millis,
    /// When this device was sent its first batch.
    first_sent: Option<Millis>,
    is_exhausted: bool,
    /// Launches when memory was freed last.
    trimmed: u64,
    has_fallen_back: bool,
    /// What the devices before this one did.
    gone: Counters,
    batcher: Batcher,
    budget: MemoryBudget,
    /// Pieces on their way at once.
    max_pieces: usize,
    /// The most bytes of a batch where no tensor takes memory.
    most_bytes: u64,
    structures: Structures,
    tensors: Tensors,
    /// Memory for the tensors that a call names.
    named: Vec<u32>,
    open: Load,
    /// Those that wait to be sent, in the batcher's order or set aside.
    sealed: Vec<Load>,
    waiting: Waiting,
    in_flight: Vec<Flying>,
    /// Calls made while explaining; never sent.
    explained: Option<Load>,
    /// Arenas of settled batches, for the next ones.
    spare: Vec<Arena>,
    waits: Waits,
    counts: stats::Counts,
    meter: Meter,
}

impl<D: Device> Session<D> {
    /// A session on a device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when the settings cannot work.
    pub fn new(device: D, config: BatchConfig) -> Result<Self, Error> {
        // Operands, results and tables share what one buffer can hold.
        let max_side_bytes = device.limits().max_side_bytes;
        let given = config.memory_budget.map(MemoryBudget);
        let budget = given.unwrap_or_else(|| default_budget(max_side_bytes));
        let most = config.max_batch_bytes.min(max_side_bytes / 4);
        let max_batch_bytes = budget.optimal_batch_size(0, COPIES, most);
        let mut device = device;
        device.allow(budget.0);
        let batcher = Batcher::new(BatchConfig {
            max_batch_bytes,
            ..config
        })?;
        Ok(Session {
            engine: device.info().engine,
            beside: None,
            router: None,
            calibration: None,
            generation: Generation::default(),
            lost: false,
            has_answered: false,
            heard: Millis::default(),
            first_sent: None,
            is_exhausted: false,
            trimmed: 0,
            has_fallen_back: false,
            gone: Counters::default(),
            device,
            open: Load::new(batcher.open_batch(), Arena::default()),
            max_pieces: config.max_pieces_in_flight.unwrap_or(usize::MAX),
            batcher,
            budget,
            most_bytes: most,
            structures: Structures::default(),
            tensors: Tensors::default(),
            named: Vec::new(),
            sealed: Vec::new(),
            waiting: Waiting::default(),
            in_flight: Vec::new(),
            explained: None,
            spare: Vec::new(),
            waits: Waits::default(),
            counts: stats::Counts::default(),
            meter: Meter::default(),
        })
    }

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
            return Err(no_memory());
        }
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
            return Err(no_memory());
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

    /// What should happen next, and when.
    pub fn due(&self, now: Millis) -> Due {
        if self.is_held_back() {
            return Due::Idle;
        }
        if self.is_kernel_due() {
            return Due::Now;
        }
        self.batcher.due(now)
    }

    /// Asks for the open batch to be sent by [`Session::launch`].
    pub fn flush(&mut self) {
        self.batcher.flush();
    }

    /// The same of everything queued, however many batches are on their way: for
    /// whoever submits something next that reads what these calls write.
    pub fn flush_at_once(&mut self) {
        self.batcher.flush_at_once();
    }

    /// Gives up a call; `true` if it was pending. Nobody settles it then.
    pub fn abort(&mut self, ticket: Ticket) -> bool {
        let found = self.batcher.abort(ticket);
        self.counts.rejected += u64::from(found);
        self.waiting.is_due |= found; // Others may have waited for what it writes.
        if self.batcher.is_open_empty() {
            let read = self.open.clear();
            self.unread(read);
        } else if found {
            self.waste(ticket);
        }
        found
    }

    /// A call was given up. Where the open batch holds little else, it holds that no
    /// more: its calls that are left may never fill it.
    fn waste(&mut self, ticket: Ticket) {
        if !self.open.waste(ticket) {
            return;
        }
        let arena = self.spare.pop().unwrap_or_default();
        let Some(next) = self.open.rebuilt(self.batcher.open_tickets(), arena) else {
            return;
        };
        for tensor in &next.read {
            self.tensors.read(*tensor);
        }
        let before = std::mem::replace(&mut self.open, next);
        self.recycle(before);
    }

    /// Gives up everything pending and frees the device. The tickets, oldest
    /// first, wait for the face to reject them.
    pub fn dispose(&mut self) -> Vec<Ticket> {
        let mut tickets = self.batcher.drain();
        self.counts.rejected += tickets.len() as u64;
        let warmups = self.waiting.warmups.drain(..);
        tickets.extend(warmups.map(|warmup| warmup.ticket));
        self.in_flight.clear();
        self.sealed.clear();
        self.waiting = Waiting::default();
        self.spare.clear();
        self.calibration = None;
        self.open = Load::new(self.batcher.open_batch(), Arena::default());
        self.device.destroy();
        if let Some(beside) = &mut self.beside {
            beside.destroy();
        }
        tickets
    }

    /// Calls that still fit before the queue is full; not above 0 when full.
    pub fn desired_size(&self) -> i64 {
        self.batcher.desired_size()
    }

    /// Calls queued and in flight.
    pub fn pending(&self) -> usize {
        self.batcher.pending()
    }

    /// Items of a batch that memory holds beside a model: ⌊(0.8 · budget −
    /// `model_bytes`) / `bytes_per_item`⌋, at least 1 and at most the session's own
    /// limit of items.
    pub fn optimal_batch_size(&self, model_bytes: u64, bytes_per_item: u64) -> u64 {
        let most = self.batcher.config().max_batch_size.unwrap_or(u64::MAX);
        self.budget
            .optimal_batch_size(model_bytes, bytes_per_item, most)
    }

    /// Bytes of operands and results, queued and in flight.
    pub fn pending_bytes(&self) -> u64 {
        self.batcher.pending_bytes()
    }

    /// Counts since the session was opened.
    pub fn stats(&self) -> Stats {
        Stats {
            measured: self.meter.measured(),
            host_bytes: self.host_bytes(),
            ..self.counts.stats(
                &self.waits,
                self.batcher.pending(),
                (self.device.counters().after(self.gone), self.tensor_bytes()),
            )
        }
    }

    /// Times batches by a clock from here on, for [`Session::take_facts`]; or no
    /// more.
    pub fn measure_batches(&mut self, clock: Option<Clock>) {
        self.meter.listen(clock);
        self.device.measure(clock);
    }

    /// The facts of the batch that came back last, once, if it was measured.
    pub fn take_facts(&mut self) -> Option<Facts> {
        self.meter.take()
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

    /// Refuses a call whose device there is not.
    fn check_engine(
        &self,
        engine: Option<Engine>,
        tensors: &[u32],
        written: Option<u32>,
    ) -> Result<(), Error> {
        match engine {
            Some(Engine::Gpu) if self.engine == Engine::Cpu => Err(Error::NoAdapter(
                "calls run on the processor here; open the session with engine 'gpu'".into(),
            )),
            Some(Engine::Cpu) if self.engine == Engine::Gpu && written.is_some() => {
                Err(Error::InvalidInput(
                    "engine: the call writes to a tensor of the GPU; leave engine out".into(),
                ))
            }
            Some(Engine::Cpu) if self.engine == Engine::Gpu => {
                let has = |tensor: &u32| self.tensors.is_mirrored(*tensor);
                match self.beside.is_some() && tensors.iter().all(has) {
                    true => Ok(()),
                    false => Err(Error::InvalidInput(
                        "engine: a tensor of the call is on the GPU alone; leave engine out".into(),
                    )),
                }
            }
            _ => Ok(()),
        }
    }

    /// Bytes of operands, and of what the processor keeps.
    fn host_bytes(&self) -> u64 {
        let flying = self.in_flight.iter().map(|flying| &flying.load);
        let loads = flying.chain(&self.sealed).chain([&self.open]);
        let arenas = loads.map(|load| &load.arena).chain(&self.spare);
        let words: u64 = arenas.map(|arena| u64::from(arena.capacity())).sum();
        let beside = self.beside.as_ref().map(Device::counters);
        words * u64::from(WORD)
            + self.device.counters().host_bytes
            + beside.map_or(0, |counters| counters.host_bytes)
    }

    /// Words of operands and bytes of operands and results of a call.
    fn measure(&mut self, recipe: RecipeId, rows: u32) -> Result<(u32, u64), Error> {
        if self.structures.get(recipe).is_none() {
            return Err(Error::InvalidInput(format!(
                "structure {} is unknown; ask `recipe` for one",
                recipe.0
            )));
        }
        let last = *self.structures.taken(recipe);
        if rows > 0 && last.rows == rows {
            return Ok((last.words, last.bytes));
        }
        let (words, bytes) = self.weigh(&self.structures.recipes()[recipe.0 as usize], rows)?;
        *self.structures.taken(recipe) = Taken { rows, words, bytes };
        Ok((words, bytes))
    }

    /// The same, computed: what fits the device.
    fn weigh(&self, known: &Recipe, rows: u32) -> Result<(u32, u64), Error> {
        if rows == 0 {
            return Err(Error::InvalidInput(
                "a call has at least one row; answer empty calls without a device".into(),
            ));
        }
        let limit = self.device.limits().max_side_bytes;
        // What can be cut goes in pieces.
        let least = known.least(rows);
        let sides = |rows| (known.input_words(rows), known.result_words(rows));
        let bytes = |(up, down): (u64, u64)| up.max(down) * WORD as u64;
        let (need, (up, down)) = (bytes(sides(least)), sides(rows));
        let too_large = |need, limit| Error::TooLarge {
            what: match least == rows {
                true => "a call that cannot be cut by rows",
                false => "a few rows of a call",
            },
            need,
            limit,
        };
        if need > limit {
            return Err(too_large(need, limit));
        }
        if !known.is_countable() {
            return Err(Error::TooMany(MOST_THREADS));
        }
        match (u32::try_from(up), u32::try_from(down)) {
            (Ok(words), Ok(_)) => Ok((words, (up + down) * WORD as u64)),
            _ => Err(too_large(bytes((up, down)), most_room(limit))),
        }
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
    fn roll(&mut self, open: BatchId) {
        if self.open.id != open {
            let arena = self.spare.pop().unwrap_or_default();
            // The next is often as large.
            let next = Load::of(open, arena, self.open.calls.len());
            let full = std::mem::replace(&mut self.open, next);
            self.sealed.push(full);
        }
    }
}

fn no_memory() -> Error {
    let why = "there is none for the call's operands; stream them in chunks";
    Error::OutOfMemory(why.into())
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
