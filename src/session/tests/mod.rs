//! The session on the CPU and on a device that fails.

mod at_every_point;
mod batch_metrics;
mod by_example;
mod chains;
mod compile_gate;
mod computing;
mod cpu_share;
mod deferred;
mod fences;
mod in_chunks;
mod in_flight;
mod in_slabs;
mod inserting;
mod invalid_buffers;
mod on_both;
mod out_of_memory;
mod priorities;
mod refusal;
mod structures;
mod suspicion;
mod takeover;
mod tuned;
mod under_random_events;
mod unsubmitted;
mod while_compiling;
mod writes_under_random_events;
pub(crate) mod writing;
mod writing_on_both;

use std::cell::Cell;

use super::arena_pool::MOST_SPARE;
use super::recovery::ATTEMPTS;
use super::*;
use crate::Code;
use crate::batch::{Accepted, BatchId, Policy, Preset};
use crate::device::{
    Compiled, Counters, Cpu, DeviceLimits, Engine, Flight, Generation, Readback, Readiness, failed,
};
use crate::graph::Timing;
use crate::kernel::Kernel;
use crate::ops;
use crate::plan::{self, ChunkSize, ChunkSizes, RecipeId};
use crate::tensor::{Packing, Span};

const NOW: Millis = Millis(0.0);

thread_local! {
    /// The priority of the calls that are asked for.
    static ASKED: Cell<Priority> = const { Cell::new(Priority::Normal) };
}

/// The CPU with limits, faults and lives of its own.
#[derive(Debug)]
pub(crate) struct Frail {
    cpu: Cpu,
    engine: Engine,
    max_side_bytes: u64,
    chunks: ChunkSizes,
    /// Launches that go well before the one with a fault.
    spared: usize,
    /// Why that launch is not submitted.
    fault: Option<Error>,
    /// Why that launch fails in flight, with nothing computed.
    late_fault: Option<Error>,
    /// Tensors that no launch may name.
    unusable: Vec<u32>,
    /// Buffers that there was no memory for, as launches tell that name them.
    invalid: Vec<u32>,
    /// Bytes of a plan's slots that there is memory for.
    capacity: u64,
    /// Bytes that the device was allowed, and how often it was trimmed.
    allowed: u64,
    pub(crate) trims: usize,
    launches: usize,
    destroyed: bool,
    /// What became of each kernel; `None` where none needs compiling.
    kernels: Option<Vec<(Kernel, Fate)>>,
}

/// What becomes of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Compiling,
    Ready,
    Failed,
}

impl Frail {
    pub(crate) fn new(max_side_bytes: u64) -> Self {
        Frail {
            cpu: Cpu::default(),
            engine: Engine::Cpu,
            max_side_bytes,
            chunks: ChunkSizes::WHOLE,
            spared: 0,
            fault: None,
            late_fault: None,
            unusable: Vec::new(),
            invalid: Vec::new(),
            capacity: u64::MAX,
            allowed: u64::MAX,
            trims: 0,
            launches: 0,
            destroyed: false,
            kernels: None,
        }
    }

    /// The same device, passing for a GPU.
    pub(crate) fn gpu(self) -> Self {
        let engine = Engine::Gpu;
        Frail { engine, ..self }
    }

    /// The same device with a compiler, which is slow.
    pub(crate) fn compiling(self) -> Self {
        Frail {
            kernels: Some(Vec::new()),
            ..self
        }
    }

    fn fate(&self, kernel: &Kernel) -> Option<Fate> {
        let Some(kernels) = &self.kernels else {
            return Some(Fate::Ready);
        };
        let known = kernels.iter().find(|(known, _)| known == kernel);
        known.map(|(_, fate)| *fate)
    }

    /// A device that likes chunks of so many bytes.
    pub(crate) fn in_chunks(max_side_bytes: u64, target: u64) -> Self {
        Frail {
            chunks: ChunkSizes::equal(ChunkSize::of(target)),
            ..Frail::new(max_side_bytes)
        }
    }
}

impl Device for Frail {
    fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            max_side_bytes: self.max_side_bytes,
            chunks: self.chunks,
            max_threads: u64::MAX,
        }
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            engine: self.engine,
            ..self.cpu.info()
        }
    }

    fn counters(&self) -> Counters {
        self.cpu.counters()
    }

    fn prepare(&mut self, kernel: &Kernel) -> Readiness {
        match self.fate(kernel) {
            Some(Fate::Ready) => Readiness::Ready,
            Some(Fate::Failed) => Readiness::Failed(broken(kernel)),
            Some(Fate::Compiling) => Readiness::Compiling(None),
            None => {
                let kernels = self.kernels.as_mut().expect("it has a compiler");
                kernels.push((kernel.clone(), Fate::Compiling));
                let compiled = Compiled {
                    kernel: kernel.clone(),
                    outcome: Ok(None),
                };
                Readiness::Compiling(Some(Box::pin(std::future::ready(compiled))))
            }
        }
    }

    fn adopt(&mut self, Compiled { kernel, outcome }: Compiled) {
        let fate = if outcome.is_ok() {
            Fate::Ready
        } else {
            Fate::Failed
        };
        let kernels = self.kernels.as_mut().expect("it has a compiler");
        let at = kernels.iter().position(|(known, _)| *known == kernel);
        let known = &mut kernels[at.expect("asked for")].1;
        assert_eq!(*known, Fate::Compiling, "compiled once");
        *known = fate;
    }

    fn launch(&mut self, plan: &plan::Plan, arena: &mut Arena) -> Result<Flight, Error> {
        self.launches += 1;
        let mut kernels = plan.dispatches().map(|work| &work.kernel);
        if let Some(failed) = kernels.find(|kernel| self.fate(kernel) == Some(Fate::Failed)) {
            if let Some(kernels) = &mut self.kernels {
                kernels.retain(|(known, _)| known != failed);
            }
            return Err(broken(failed));
        }
        let words: u64 = plan.slots.iter().map(|words| u64::from(*words)).sum();
        if words * u64::from(WORD) > self.capacity {
            return Err(Error::OutOfMemory("a slot".into()));
        }
        if plan.tensors().any(|tensor| self.unusable.contains(&tensor)) {
            return Ok(failed(Error::InvalidInput("a destroyed buffer".into())));
        }
        if plan.tensors().any(|tensor| self.invalid.contains(&tensor)) {
            return Ok(failed(Error::OutOfMemory("an invalid buffer".into())));
        }
        // A device may append what it needs for this attempt, or nothing.
        if !arena.is_empty() {
            arena.push(&[u32::MAX; 64]);
        }
        if self.spared > 0 {
            self.spared -= 1;
            return self.cpu.launch(plan, arena);
        }
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        match self.late_fault.take() {
            Some(fault) => Ok(failed(fault)),
            None => self.cpu.launch(plan, arena),
        }
    }

    fn fill(&mut self, tensor: u32, words: &[u32], packing: Option<Packing>) -> Result<(), Error> {
        if words.len() as u64 * u64::from(WORD) > self.capacity {
            return Err(Error::OutOfMemory("a tensor".into()));
        }
        self.cpu.fill(tensor, words, packing)
    }

    fn allocate(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        if u64::from(words) * u64::from(WORD) > self.capacity {
            return Err(Error::OutOfMemory("a tensor".into()));
        }
        self.invalid.retain(|known| *known != tensor);
        self.cpu.allocate(tensor, words)
    }

    fn tensor_bytes(&self, tensor: u32) -> u64 {
        self.cpu.tensor_bytes(tensor)
    }

    fn tensor_words(&self, tensor: u32) -> Option<&[u32]> {
        self.cpu.tensor_words(tensor)
    }

    fn is_unusable(&self, tensor: u32) -> bool {
        self.unusable.contains(&tensor) || self.invalid.contains(&tensor)
    }

    fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) {
        self.cpu.patch(tensor, at, words);
    }

    fn release(&mut self, tensor: u32) {
        self.cpu.release(tensor);
    }

    fn allow(&mut self, bytes: u64) {
        self.allowed = bytes;
    }

    fn trim(&mut self) {
        self.trims += 1;
    }

    fn destroy(&mut self) {
        self.destroyed = true;
    }
}

/// The error of a kernel, and of no other one.
fn broken(kernel: &Kernel) -> Error {
    Error::Shader(format!("{kernel:?}"))
}

pub(crate) fn config() -> BatchConfig {
    BatchConfig {
        policy: Policy::Manual,
        ..Preset::Eager.config()
    }
}

fn session(max_side_bytes: u64) -> Session<Frail> {
    Session::new(Frail::new(max_side_bytes), config()).expect("valid settings")
}

/// Asks for `rows` floats halfway between `value` and `value + 2`.
fn ask(
    session: &mut Session<impl Device>,
    value: f32,
    rows: u32,
    key: Option<u32>,
) -> Result<Accepted, Error> {
    ask_of(session, (value, rows), key, None)
}

/// Asks for `rows` such floats on one device, if `engine` names one.
pub(crate) fn ask_of(
    session: &mut Session<impl Device>,
    (value, rows): (f32, u32),
    key: Option<u32>,
    engine: Option<Engine>,
) -> Result<Accepted, Error> {
    let recipe = session.recipe(ops::lerp(1, Timing::Call)?);
    let side = rows.next_multiple_of(4) as usize;
    let room: &mut [f32] = bytemuck::cast_slice_mut(session.room(2 * side as u64)?);
    room[..side].fill(value);
    room[side..2 * side].fill(value + 2.0);
    let submission = Submission {
        recipe,
        rows,
        scalar: 0.5_f32.to_bits(),
        key,
    };
    session.submit_with(ASKED.get(), engine, &submission, NOW)
}

/// Takes a call of a recipe, whose operands are in their place.
fn submit(session: &mut Session<impl Device>, recipe: RecipeId, rows: u32) -> Accepted {
    let submission = Submission {
        recipe,
        rows,
        scalar: 0,
        key: None,
    };
    session.submit(&submission, NOW).expect("taken")
}

fn put(session: &mut Session<impl Device>, value: f32, rows: u32) -> Ticket {
    ask(session, value, rows, None).expect("taken").ticket
}

fn launch(session: &mut Session<impl Device>) -> Launch {
    session.flush();
    session.launch(NOW).expect("a batch to send")
}

/// The flights of a launch, that of the CPU share first.
fn flights(session: &mut Session<impl Device>, launch: Launch) -> Vec<Flight> {
    let own = launch.has_cpu_share.then(|| session.compute(launch.batch));
    own.into_iter().chain(launch.flights).collect()
}

/// The calls that were answered without a flight since this was asked last.
fn told(session: &mut Session<impl Device>) -> Vec<(Ticket, Result<(), Code>)> {
    let mut told = Vec::new();
    while let Some(Answered { tickets, outcome }) = session.take_answered() {
        let outcome = outcome.map_err(|error| error.code());
        told.extend(tickets.into_iter().map(|ticket| (ticket, outcome)));
    }
    told
}

/// Lands a batch of one chunk.
fn land(session: &mut Session<impl Device>, launch: Launch) -> Settlement {
    let mut settlements = land_all(session, launch);
    assert_eq!(settlements.len(), 1, "one chunk");
    settlements.remove(0)
}

/// Lands the chunks of a batch.
fn land_all(session: &mut Session<impl Device>, launch: Launch) -> Vec<Settlement> {
    let (batch, generation) = (launch.batch, launch.generation);
    let flights = flights(session, launch).into_iter();
    let settlements = flights.map(|flight| {
        let outcome = pollster::block_on(flight);
        session
            .settle(batch, generation, outcome)
            .expect("still on its way")
    });
    settlements.collect()
}

/// The only flight of a batch.
fn flight(launch: Launch) -> Flight {
    let [flight] = <[Flight; 1]>::try_from(launch.flights)
        .ok()
        .expect("one chunk");
    flight
}

/// Each call's ticket and floats.
fn values(settlement: &Settlement) -> Vec<(Ticket, Vec<f32>)> {
    let answers = settlement.answers.iter();
    let whole = answers.inspect(|answer| assert!(answer.is_whole()));
    whole
        .map(|answer| (answer.ticket, floats(settlement, answer)))
        .collect()
}

/// The floats that an answer stands for.
pub(crate) fn floats(settlement: &Settlement, answer: &Answer) -> Vec<f32> {
    let Ok(Readback::Host(words)) = &settlement.outcome else {
        panic!("not a result of a CPU: {:?}", settlement.outcome);
    };
    let Span { at, words: count } = answer.span;
    bytemuck::cast_slice(&words[at as usize..(at + count) as usize]).to_vec()
}

/// How many batches hold memory: the open one, those that wait, those in flight.
fn loads(session: &Session<impl Device>) -> usize {
    session.queue.batches().count()
}

/// The open batch.
fn open(session: &Session<impl Device>) -> &Batch {
    session.queue.open()
}

/// The batch in flight that was sent last.
fn last_sent(session: &Session<impl Device>) -> &Batch {
    let flying = session.queue.in_flight().last();
    &flying.expect("just sent").batch
}

/// The tickets of all calls of a batch, in the order of its list.
fn tickets(batch: &Batch) -> Vec<Ticket> {
    batch.calls().iter().map(|call| call.ticket).collect()
}

/// Words of memory for operands.
fn held(session: &Session<impl Device>) -> u32 {
    let batches = session.queue.batches().map(|batch| &batch.payload.arena);
    let arenas = batches.chain(session.arenas.spare());
    let words: u64 = arenas.map(Arena::capacity).sum();
    u32::try_from(words).expect("few words")
}

/// Holds that operands take no more memory than two regions for each of the most batches
/// there ever were: one that a batch shares with the batch its calls left, one of what
/// joined it. And one spare.
fn assert_held(session: &Session<impl Device>, peak: usize) {
    let most = (2 * peak + 1) * Arena::GROWTH as usize;
    assert!(
        held(session) as usize <= most,
        "{} of {most}",
        held(session)
    );
    assert!(session.arenas.spare().len() <= MOST_SPARE);
    assert!(session.arenas.spare().iter().all(Arena::is_empty));
}

/// Holds that no arena is lost and none made where one could be used again: there are as
/// many as `peak`, the most that [`loads`] ever was, less those that are too many to be
/// kept.
fn assert_arenas(session: &Session<impl Device>, peak: usize) {
    let arenas = session.arenas.spare().len() + loads(session);
    let fewest = peak.min(MOST_SPARE + 1);
    assert!((fewest..=peak).contains(&arenas), "{arenas} of {peak}");
    assert!(session.arenas.spare().len() <= MOST_SPARE);
    assert!(session.arenas.spare().iter().all(Arena::is_empty));
}
