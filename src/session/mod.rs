//! Where graphs, plans, batches and a device meet.
//!
//! A session owns the memory of every call until it settles. It starts no
//! threads and has no clock: a face calls it, passes `now` in, and awaits the
//! flights that come out.

mod admission;
mod batch_metrics;
mod calibration;
mod cancellation;
mod chunking;
mod compile_gate;
mod cost_model;
mod cpu_share;
mod device_loss;
mod explain;
mod fence;
mod in_flight;
mod launch;
mod life;
mod metrics;
mod out_of_memory_retry;
mod parked;
mod partition;
mod payload;
mod program_cache;
mod recovery;
mod router;
mod scatter;
mod shards;
mod stats;
mod submission;
mod tensor_table;
mod tensors;
mod warmup;

#[cfg(not(target_arch = "wasm32"))]
#[path = "budget_native.rs"]
mod budget;
#[cfg(target_arch = "wasm32")]
#[path = "budget_web.rs"]
mod budget;

pub use batch_metrics::{Facts, Measured};
pub use calibration::try_out;
pub use compile_gate::Kernels;
pub use cost_model::{FACTS, Model};
pub use fence::Fence;
pub use launch::{Launch, Settlement};
pub use recovery::Remedy;
pub use scatter::Answer;
pub use shards::Filling;
pub use stats::{Stats, TensorBytes};
pub use submission::Submission;

use self::budget::default_budget;
use self::calibration::Calibration;
use self::compile_gate::CompileGate;
use self::in_flight::Queue;
use self::life::Life;
use self::metrics::Metrics;
use self::payload::{Batch, Payload};
use self::program_cache::Structures;
use self::recovery::Recovery;
use self::router::Router;
use self::tensor_table::TensorTable;
use crate::batch::{BatchConfig, Due, MemoryBudget, Millis, Ticket};
use crate::device::{Clock, Device, DeviceInfo, Engine};
use crate::error::Error;
use crate::tensor::{Arena, WORD};

/// Arenas kept for the next batches: as many as are usually on their way.
const SPARES: usize = 4;

/// How often a batch's bytes lie in memory at once: in the one that is filled, in
/// those on their way, and in the slots that they are computed in.
const COPIES: u64 = 4;

/// Batches calls for one device, or for a GPU and the processor beside it.
#[derive(Debug)]
pub struct Session<D> {
    device: D,
    engine: Engine,
    /// The processor, where the device is a GPU and calls may leave it.
    beside: Option<D>,
    /// Whether the processor beside the GPU got all of the last batch because it answers sooner.
    is_elsewhere: bool,
    /// Says which of them do, where that is not for the calls to say.
    router: Option<Router>,
    /// The router of a GPU whose place the processor has taken.
    resting: Option<Router>,
    /// A GPU that takes the processor's place as soon as nothing is on its way.
    successor: Option<D>,
    calibration: Option<Box<Calibration>>,
    life: Life,
    recovery: Recovery,
    /// Launches when memory was freed last.
    trimmed: u64,
    has_fallen_back: bool,
    /// Every batch, from its first call to its last answer.
    queue: Queue,
    budget: MemoryBudget,
    /// Chunks on their way at once.
    max_chunks: usize,
    /// The most bytes of a batch where no tensor takes memory.
    most_bytes: u64,
    structures: Structures,
    tensors: TensorTable,
    /// Memory for the tensors that a call names.
    named: Vec<u32>,
    gate: CompileGate,
    /// Calls made while explaining; never sent.
    explained: Option<Batch>,
    /// Arenas of settled batches, for the next ones.
    spare: Vec<Arena>,
    metrics: Metrics,
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
        let limits = BatchConfig {
            max_batch_bytes,
            ..config
        };
        let queue = Queue::new(limits, Payload::new(Arena::default()))?;
        Ok(Session {
            engine: device.info().engine,
            beside: None,
            is_elsewhere: false,
            router: None,
            resting: None,
            successor: None,
            calibration: None,
            life: Life::default(),
            recovery: Recovery::new(device.info().engine),
            trimmed: 0,
            has_fallen_back: false,
            device,
            max_chunks: config.max_pieces_in_flight.unwrap_or(usize::MAX),
            queue,
            budget,
            most_bytes: most,
            structures: Structures::default(),
            tensors: TensorTable::default(),
            named: Vec::new(),
            gate: CompileGate::default(),
            explained: None,
            spare: Vec::new(),
            metrics: Metrics::default(),
        })
    }

    /// Whether no call is in the open batch, so that the next one is its oldest.
    pub fn is_open_empty(&self) -> bool {
        self.queue.open().is_empty()
    }

    /// Whether a batch waits for [`Session::launch`], or parked calls do.
    pub fn is_ready(&self) -> bool {
        self.queue.is_ready() || self.is_kernel_due()
    }

    /// What should happen next, and when.
    pub fn due(&self, now: Millis) -> Due {
        if self.has_successor() {
            return Due::Now;
        }
        if self.is_stopped() {
            return Due::Idle;
        }
        if self.is_kernel_due() {
            return Due::Now;
        }
        self.queue.due(now)
    }

    /// Asks for the open batch to be sent by [`Session::launch`].
    pub fn flush(&mut self) {
        self.queue.flush();
    }

    /// The same of everything queued, however many batches are on their way: for
    /// whoever submits something next that reads what these calls write.
    pub fn flush_at_once(&mut self) {
        self.queue.flush_at_once();
    }

    /// Gives up everything pending and frees the device. The tickets, oldest
    /// first, wait for the face to reject them.
    pub fn dispose(&mut self) -> Vec<Ticket> {
        let tickets = self.give_up_all();
        self.device.destroy();
        for other in [&mut self.beside, &mut self.successor] {
            other.iter_mut().for_each(Device::destroy);
        }
        tickets
    }

    /// Gives up everything pending, oldest first, and leaves the device as it is, for
    /// [`Session::take_devices`].
    pub fn give_up_all(&mut self) -> Vec<Ticket> {
        let mut tickets = self.queue.drain(Payload::new(Arena::default()));
        self.metrics.rejected += tickets.len() as u64;
        tickets.extend(self.gate.clear());
        self.spare.clear();
        self.calibration = None;
        tickets
    }

    /// Takes the devices out of a session that is over, for whoever frees them where that may
    /// wait; `instead` stands in their place.
    pub fn take_devices(&mut self, instead: D) -> Vec<D> {
        self.metrics.leave(self.device.counters());
        self.beside = None; // Its tensors go with it.
        let device = std::mem::replace(&mut self.device, instead);
        let mut devices: Vec<D> = self.successor.take().into_iter().collect();
        devices.push(device);
        devices
    }

    /// Whether the device is still to free memory of tensors that were given up.
    pub fn has_released(&self) -> bool {
        self.device.has_released()
    }

    /// Frees the memory of tensors that were given up.
    pub fn free_released(&mut self) {
        self.device.free_released();
    }

    /// Calls that still fit before the queue is full; not above 0 when full.
    pub fn desired_size(&self) -> i64 {
        self.queue.desired_size()
    }

    /// Calls queued and in flight.
    pub fn pending(&self) -> usize {
        self.queue.pending()
    }

    /// Items of a batch that memory holds beside a model: ⌊(0.8 · budget −
    /// `model_bytes`) / `bytes_per_item`⌋, at least 1 and at most the session's own
    /// limit of items.
    pub fn optimal_batch_size(&self, model_bytes: u64, bytes_per_item: u64) -> u64 {
        let most = self.queue.config().max_batch_size.unwrap_or(u64::MAX);
        self.budget
            .optimal_batch_size(model_bytes, bytes_per_item, most)
    }

    /// Bytes of operands and results, queued and in flight.
    pub fn pending_bytes(&self) -> u64 {
        self.queue.pending_bytes()
    }

    /// Bytes of operands and results of all calls that were ever accepted.
    pub fn accepted_bytes(&self) -> u64 {
        self.queue.accepted_bytes()
    }

    /// Counts since the session was opened.
    pub fn stats(&self) -> Stats {
        Stats {
            host_bytes: self.host_bytes(),
            tensors: self.tensor_bytes(),
            ..self
                .metrics
                .stats(self.queue.pending(), self.device.counters())
        }
    }

    /// Times batches by a clock from here on, for [`Session::take_facts`]; or no
    /// more.
    pub fn measure_batches(&mut self, clock: Option<Clock>) {
        self.metrics.meter.listen(clock);
        self.device.measure(clock);
    }

    /// The facts of the batch that came back last, once, if it was measured.
    pub fn take_facts(&mut self) -> Option<Facts> {
        self.metrics.meter.take()
    }

    /// Notes how long a launch took; the face has the clock.
    pub fn note_encode(&mut self, ms: f64) {
        self.metrics.encode_ms += ms;
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

    /// Bytes of operands, and of what the processor keeps.
    fn host_bytes(&self) -> u64 {
        let batches = self.queue.batches().map(|batch| &batch.payload.arena);
        let arenas = batches.chain(&self.spare);
        let words: u64 = arenas.map(Arena::capacity).sum();
        let beside = self.beside.as_ref().map(Device::counters);
        words * u64::from(WORD)
            + self.device.counters().host_bytes
            + beside.map_or(0, |counters| counters.host_bytes)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
pub(crate) mod tests;
