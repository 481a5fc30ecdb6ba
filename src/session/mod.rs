//! The session: where structures, plans, batches and devices meet.
//!
//! A session owns the memory of every call until the call settles. It starts no threads and
//! has no clock: a driver calls it, passes `now` in, and its face awaits the flights that
//! come out.

mod admission;
mod arena_pool;
mod batch_cost;
mod batch_metrics;
mod blame;
mod calibration;
mod cancellation;
mod chunking;
mod compile_gate;
mod cost_model;
mod cpu_share;
mod deferral;
mod device_loss;
mod devices;
mod drift;
mod explain;
mod fence;
mod in_flight;
mod invalid_buffers;
mod launch;
mod life;
mod limits;
mod lost_tensors;
mod metrics;
mod out_of_memory_retry;
mod parked;
mod partition;
mod payload;
mod priorities;
mod program_cache;
mod provenance;
mod recovery;
mod refusal;
mod residency;
mod router;
mod scatter;
mod settlement;
mod shards;
mod slabs;
mod stats;
mod structures;
mod submission;
mod suspicion;
mod tensor_table;
mod tensors;
mod tuned_values;
mod tuning;
mod warmup;
mod writes;

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
pub use launch::{Launch, LaunchId};
pub use recovery::Remedy;
pub use router::Routing;
pub use scatter::Answer;
pub use settlement::Settlement;
pub use shards::Filling;
pub use slabs::Place;
pub use stats::{Stats, TensorBytes};
pub use submission::Submission;
pub use tuning::{Kept, Tuning};
pub use writes::Answered;

use self::arena_pool::ArenaPool;
use self::blame::Blame;
use self::calibration::Calibration;
use self::compile_gate::CompileGate;
use self::devices::Devices;
use self::in_flight::Queue;
use self::life::Life;
use self::limits::Limits;
use self::metrics::Metrics;
use self::payload::{Batch, Payload, precedes_batch};
use self::program_cache::ProgramCache;
use self::provenance::Provenances;
use self::recovery::Recovery;
use self::router::Router;
use self::submission::next_payload;
use self::tensor_table::TensorTable;
use self::tuning::Tuner;
use crate::batch::{BatchConfig, Due, Millis, Order, Priority, Ticket};
use crate::device::{Clock, Device, DeviceInfo, Engine};
use crate::error::Error;
use crate::tensor::{Arena, WORD};

/// Batches calls for one device, or for a GPU and the CPU beside it.
#[derive(Debug)]
pub struct Session<D> {
    devices: Devices<D>,
    life: Life,
    recovery: Recovery,
    /// Chooses between a GPU and the CPU beside it. The router rests while there is no such
    /// pair.
    router: Option<Router>,
    calibration: Option<Box<Calibration>>,
    tuner: Tuner,
    /// Whether a tuned value has changed since [`Session::take_retuned`].
    is_retuned: bool,
    limits: Limits,
    /// Every batch, from its first call to its last answer.
    queue: Queue,
    arenas: ArenaPool,
    programs: ProgramCache,
    tensors: TensorTable,
    provenances: Provenances,
    /// Calls that were answered without a flight and that no face was told of yet.
    answered: Vec<Answered>,
    /// The tensors that the call being submitted names.
    named_tensors: Vec<u32>,
    /// The tensors that the call being submitted writes.
    written_tensors: Vec<u32>,
    gate: CompileGate,
    /// The functions of callers over which devices were lost.
    blame: Blame,
    /// When the last flight of a batch landed.
    last_landing: Millis,
    /// The device that computed the newest slice of low work, or a part of it if that was the
    /// CPU.
    slice_engine: Engine,
    /// The calls made while explaining, which are never sent.
    explained: Option<Batch>,
    metrics: Metrics,
}

impl<D: Device> Session<D> {
    /// A session on a device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when the settings cannot work.
    pub fn new(mut device: D, config: BatchConfig) -> Result<Self, Error> {
        let limits = Limits::new(&config, device.limits().max_side_bytes);
        let config = BatchConfig {
            max_batch_bytes: limits.batch_bytes(0),
            ..config
        };
        let tuner = Tuner::new(&config, device.limits().chunks.by_row.whole);
        let queue = Queue::new(config, Payload::new(Arena::default()))?;
        device.allow(limits.budget().0);
        let devices = Devices::new(device);
        let mut session = Session {
            life: Life::default(),
            recovery: Recovery::new(devices.engine()),
            slice_engine: devices.engine(),
            devices,
            router: None,
            calibration: None,
            tuner,
            is_retuned: false,
            limits,
            queue,
            arenas: ArenaPool::default(),
            programs: ProgramCache::default(),
            tensors: TensorTable::default(),
            provenances: Provenances::default(),
            answered: Vec::new(),
            named_tensors: Vec::new(),
            written_tensors: Vec::new(),
            blame: Blame::default(),
            gate: CompileGate::default(),
            last_landing: Millis::default(),
            explained: None,
            metrics: Metrics::default(),
        };
        session.retune();
        Ok(session)
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
        let due = || match self.queue.has_turn(now) {
            true => Due::Now,
            false => self.queue.due(now),
        };
        self.due_first().unwrap_or_else(due)
    }

    /// When [`Session::flush`] should be called, for a face that sends batches of other
    /// priorities than normal by itself.
    pub fn flush_due(&self, now: Millis) -> Due {
        self.due_first().unwrap_or_else(|| self.queue.due(now))
    }

    /// The same while the face flushes at the end of each frame anyway.
    pub fn due_in_frames(&self, now: Millis) -> Due {
        self.due_first()
            .unwrap_or_else(|| self.queue.due_in_frames(now))
    }

    /// What is due whatever is queued, or keeps everything from being due.
    fn due_first(&self) -> Option<Due> {
        if self.has_successor() {
            return Some(Due::Now);
        }
        if self.is_stopped() {
            return Some(Due::Idle);
        }
        self.is_kernel_due().then_some(Due::Now)
    }

    /// Asks for the open batch to be sent by [`Session::launch`].
    pub fn flush(&mut self) {
        self.queue.flush();
    }

    /// Asks for everything queued to be sent, however many batches are in flight: for
    /// whoever submits something next that reads what the queued calls write. Of low work
    /// this is what writes to tensors, and what is to go before.
    pub fn flush_at_once(&mut self) {
        let order = Order {
            precedes_call: &|batch: &Batch| !batch.payload.written.is_empty(),
            precedes: &precedes_batch,
        };
        let next = next_payload(&mut self.arenas);
        self.queue.promote(Priority::Normal, &order, next);
        self.queue.flush_at_once();
    }

    /// Gives up everything pending and frees the devices. The tickets, oldest first, wait
    /// for the face to reject them.
    pub fn dispose(&mut self) -> Vec<Ticket> {
        let tickets = self.give_up_all();
        self.devices.destroy();
        tickets
    }

    /// Gives up everything pending, oldest first, and leaves the devices as they are, for
    /// [`Session::take_devices`].
    pub fn give_up_all(&mut self) -> Vec<Ticket> {
        let mut tickets = self.queue.drain(Payload::new(Arena::default()));
        self.metrics.rejected += tickets.len() as u64;
        tickets.extend(self.gate.clear());
        let untold = std::mem::take(&mut self.answered).into_iter();
        tickets.extend(untold.flat_map(|answered| answered.tickets));
        self.arenas.clear();
        self.calibration = None;
        tickets
    }

    /// Takes the devices out of a session that is over, for whoever frees them at leisure.
    /// `instead` stays in the place of the primary one.
    pub fn take_devices(&mut self, instead: D) -> Vec<D> {
        self.metrics.leave(self.devices.primary().counters());
        self.devices.take(instead)
    }

    /// Whether the device is still to free memory of tensors that were given up.
    pub fn has_released(&self) -> bool {
        self.devices.primary().has_released()
    }

    /// Frees the memory of tensors that were given up.
    pub fn free_released(&mut self) {
        self.devices.primary_mut().free_released();
    }

    /// Calls that still fit before the queue is full; not above 0 when full.
    pub fn desired_size(&self) -> i64 {
        self.queue.desired_size()
    }

    /// Calls queued and in flight.
    pub fn pending(&self) -> usize {
        self.queue.pending()
    }

    /// How many items of a batch memory holds besides a model: ⌊(0.8 · budget −
    /// `model_bytes`) / `bytes_per_item`⌋, at least 1 and at most the session's own limit
    /// of items.
    pub fn optimal_batch_size(&self, model_bytes: u64, bytes_per_item: u64) -> u64 {
        self.fitting(model_bytes, bytes_per_item, u64::MAX)
    }

    /// The same for texts of so many tokens: at most as many as a batch's limit of cost lets.
    pub fn optimal_text_batch_size(
        &self,
        model_bytes: u64,
        bytes_per_text: u64,
        tokens: u64,
    ) -> u64 {
        let most = self.queue.config().max_batch_cost / tokens.max(1);
        self.fitting(model_bytes, bytes_per_text, most)
    }

    fn fitting(&self, model_bytes: u64, bytes_per_item: u64, most: u64) -> u64 {
        let most = self.queue.config().max_batch_size.unwrap_or(most).min(most);
        self.limits
            .budget()
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
                .stats(self.queue.pending(), self.devices.primary().counters())
        }
    }

    /// Times batches by a clock from here on, for [`Session::take_facts`], or times them no
    /// more.
    pub fn measure_batches(&mut self, clock: Option<Clock>) {
        self.metrics.meter.listen(clock);
        self.devices.primary_mut().measure(clock);
    }

    /// The facts of the batch that was answered last, once, if it was measured.
    pub fn take_facts(&mut self) -> Option<Facts> {
        self.metrics.meter.take()
    }

    /// Notes how long a launch took; the face has the clock.
    pub fn note_encode(&mut self, ms: f64) {
        self.metrics.encode_ms += ms;
        if self.devices.engine() == Engine::Gpu {
            self.tuner.note_encode(ms);
        }
    }

    /// What the primary device is.
    pub fn info(&self) -> DeviceInfo {
        self.devices.primary().info()
    }

    /// The primary device.
    pub fn device(&self) -> &D {
        self.devices.primary()
    }

    /// The primary device, for work that is not a batch.
    pub fn device_mut(&mut self) -> &mut D {
        self.devices.primary_mut()
    }

    /// Bytes of the host's memory that operands and CPUs take.
    fn host_bytes(&self) -> u64 {
        let batches = self.queue.batches().map(|batch| &batch.payload.arena);
        let arenas = batches.chain(self.arenas.spare());
        let words: u64 = arenas.map(Arena::capacity).sum();
        let companion = self.devices.companion().map(Device::counters);
        words * u64::from(WORD)
            + self.devices.primary().counters().host_bytes
            + companion.map_or(0, |counters| counters.host_bytes)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
pub(crate) mod tests;
