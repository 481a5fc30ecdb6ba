//! The handle that programs hold.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use super::blocking::Blocking;
use super::builder::Batch;
use super::config::{Config, EngineChoice, open_device};
use super::platform::{self, AnyDevice, Task, block_on};
use super::recovery::Opener;
use super::room::Room;
use super::shared::{Purpose, Shared};
use super::submission::Terms;
use super::worker;
use crate::batch::{Preset, Priority};
use crate::device::{Cpu, DeviceInfo, Engine};
use crate::embed::Activations;
use crate::error::Error;
use crate::session::{Model, Stats, Tuning};

/// A session on a device, shared by all clones of this handle.
///
/// Calls from any thread join the same batches. Each method copies its inputs
/// and returns at once with a [`Call`](super::Call) to await; a wrong argument comes out of
/// the call as well. When the last handle is dropped, what is pending is
/// rejected and the device freed.
///
/// On the CPU a batch is computed while the session is locked: calls,
/// [`stats`](Gpu::stats) and [`dispose`](Gpu::dispose) wait until it is done.
///
/// ```
/// # pollster::block_on(async {
/// use framebatch::{Config, Gpu};
///
/// let gpu = Gpu::open(Config::default()).await?;
/// let near = gpu.lerp(&[0.0, 1.0], &[1.0, 3.0], 0.25);
/// let far = gpu.lerp(&[0.0, 1.0], &[1.0, 3.0], 1.0); // May share near's batch.
/// assert_eq!(near.await?, [0.25, 1.5]);
/// assert_eq!(far.await?, [1.0, 3.0]);
/// # Ok::<(), framebatch::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Gpu {
    owner: Arc<Owner>,
    terms: Terms,
}

/// A list of one session, for functions that take several.
impl AsRef<[Gpu]> for Gpu {
    fn as_ref(&self) -> &[Gpu] {
        std::slice::from_ref(self)
    }
}

/// Closes the session with the last handle.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    worker: Option<Task>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.close(&Error::Disposed);
        match &self.worker {
            // A listener, or a task that was woken, may drop the last handle on a thread that the
            // worker waits for, or that is the worker's own.
            Some(_) if platform::is_lasting() => {}
            // A GPU that stalls may keep the worker for ever, so this wait has an end.
            Some(worker) => {
                worker.wait(self.shared.longest_end());
            }
            // A session without a worker explains calls, on a CPU device.
            None => drop(self.shared.take_devices()),
        }
    }
}

impl Gpu {
    /// Opens a device and starts the worker that sends to it. The device is opened, used and
    /// freed by threads of the process that never end, since a thread that has used a
    /// GPU driver may be caught there when it ends.
    ///
    /// # Errors
    ///
    /// [`Error::NoAdapter`] without a GPU under
    /// [`EngineChoice::Gpu`](super::EngineChoice::Gpu), or without the
    /// [`adapter`](Config::adapter) that is asked for, and
    /// [`Error::InvalidInput`] for settings that cannot work.
    pub async fn open(config: Config) -> Result<Gpu, Error> {
        config.validate()?;
        let own = config.clone();
        let device = platform::enter(move || block_on(open_device(&own))).await??;
        let routing = (config.engine == EngineChoice::Auto).then(Model::default);
        let shared = Arc::new(Shared::new(device, routing, &config, Purpose::Send)?);
        #[cfg(feature = "tracing")]
        super::tracing::trace(&shared);
        let opener = Opener::new(config);
        let theirs = Arc::clone(&shared);
        let worker = platform::spawn(move || worker::run(&theirs, opener))?;
        Ok(Gpu::new(shared, Some(worker)))
    }

    fn new(shared: Arc<Shared>, worker: Option<Task>) -> Gpu {
        Gpu {
            owner: Arc::new(Owner { shared, worker }),
            terms: Terms::default(),
        }
    }

    /// The same session with methods that block until the answer is there, for plain
    /// threads.
    pub fn blocking(&self) -> Blocking {
        Blocking::new(self.clone())
    }

    /// The same session with calls that, in a full queue under
    /// [`Overflow::Latest`](crate::batch::Overflow::Latest), take the place of
    /// the oldest queued call of their key.
    #[must_use]
    pub fn keyed(&self, key: u32) -> Gpu {
        let key = Some(key);
        let terms = Terms { key, ..self.terms };
        Gpu {
            terms,
            ..self.clone()
        }
    }

    /// The same session with calls that run on a device of this kind: with
    /// [`Auto`](EngineChoice::Auto) where the session has them run, as at first.
    ///
    /// ```
    /// use framebatch::{Blocking, Config, EngineChoice};
    ///
    /// let gpu = Blocking::open(Config::default())?;
    /// let halfway = gpu.on(EngineChoice::Cpu).lerp(&[0.0], &[1.0], 0.5)?;
    /// assert_eq!((halfway, gpu.stats().ran_on_cpu), (vec![0.5], 1));
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// On a session without a GPU such calls fail with [`Error::NoAdapter`]; on
    /// the CPU they fail with [`Error::InvalidInput`] where they read a
    /// tensor that only the GPU has: an imported buffer, one that clips write, one
    /// of more than 262,144 floats however they are kept, or one made when 32 MiB
    /// of others were there.
    #[must_use]
    pub fn on(&self, engine: EngineChoice) -> Gpu {
        let engine = match engine {
            EngineChoice::Auto => None,
            EngineChoice::Gpu => Some(Engine::Gpu),
            EngineChoice::Cpu => Some(Engine::Cpu),
        };
        let terms = Terms {
            engine,
            ..self.terms
        };
        Gpu {
            terms,
            ..self.clone()
        }
    }

    /// The same session with calls that fail with [`Error::Timeout`] when they are not answered
    /// within so long from when they were made; their neighbors are answered. A call that is
    /// computed by then is computed for nothing. The session's worker tells of deadlines, which
    /// is late while the worker computes on the CPU.
    ///
    /// ```
    /// use std::time::Duration;
    /// use framebatch::{Blocking, Config, Error, Policy, Preset};
    ///
    /// let mut config = Config::from(Preset::Auto);
    /// config.batch.policy = Policy::Manual; // Nobody flushes.
    /// let gpu = Blocking::open(config)?;
    /// let patient = gpu.with_deadline(Duration::from_millis(20));
    /// assert_eq!(patient.lerp(&[0.0], &[1.0], 0.5), Err(Error::Timeout));
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Gpu {
        let deadline_ms = Some(deadline.as_secs_f64() * 1e3);
        let terms = Terms {
            deadline_ms,
            ..self.terms
        };
        Gpu {
            terms,
            ..self.clone()
        }
    }

    /// The same session with calls of this priority.
    ///
    /// - [`High`](Priority::High) is sent at once, whatever the policy, before all that waits;
    ///   one such batch may pass
    ///   [`max_in_flight`](crate::BatchConfig::max_in_flight).
    /// - [`Normal`](Priority::Normal) is sent by the policy, as without this method.
    /// - [`Low`](Priority::Low) fills what others leave, whatever the policy but
    ///   [`Manual`](crate::Policy::Manual), in slices: for a second after a call of high
    ///   priority each takes at most 4 ms of the device, by what those before took, and one is
    ///   in flight; otherwise 12.5 ms, and two. While others keep the device busy, low work gets
    ///   a tenth of its time. A call is never cut, however long it takes.
    ///
    /// Calls that read or write a tensor which another of them writes keep their order: what a
    /// more urgent call must find done goes before that call, as urgent as it.
    ///
    /// ```
    /// use framebatch::{Blocking, Config, Priority};
    ///
    /// let gpu = Blocking::open(Config::default())?;
    /// let corpus = gpu.gpu().with_priority(Priority::Low);
    /// let calls: Vec<_> = (0..100).map(|_| corpus.lerp(&[0.0], &[1.0], 0.5)).collect();
    /// let asked = gpu.with_priority(Priority::High).lerp(&[0.0], &[1.0], 0.25)?;
    /// assert_eq!(asked, [0.25]);
    /// # for call in calls { assert_eq!(call.wait()?, [0.5]); }
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    #[must_use]
    pub fn with_priority(&self, priority: Priority) -> Gpu {
        let terms = Terms {
            priority,
            ..self.terms
        };
        Gpu {
            terms,
            ..self.clone()
        }
    }

    /// A command builder: records operations, which are then sent as one call; see [`Batch`].
    pub fn batch<'a>(&self) -> Batch<'a> {
        Batch::new(self.clone())
    }

    /// Lends the memory of a result that is no longer needed to results to come, of
    /// this session's calls of floats. To hand out fresh memory takes the system as
    /// long as to copy a large result there, so a consumer of large results gives
    /// them back; small ones are freed. 512 MiB are kept at most, and none of it once
    /// no batch has been sent for two seconds, or the session is closed.
    ///
    /// ```
    /// use framebatch::{Blocking, Config, State};
    ///
    /// let gpu = Blocking::open(Config::default())?;
    /// let chunks = (0..3).map(|_| vec![State::default(); 1000]);
    /// for gradients in gpu.stream(chunks, |gpu, states| gpu.compute_gradients(&states)) {
    ///     let gradients = gradients?;
    ///     assert_eq!(gradients.len(), 1000 * 32);
    ///     gpu.recycle(gradients);
    /// }
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn recycle(&self, result: Vec<f32>) {
        let unkept = self.shared().lock().keep(result);
        drop(unkept); // Outside the lock, because freeing much memory takes long.
    }

    /// Sends what is queued without waiting for the policy's moment. With too
    /// many batches on their way it goes as soon as one returns.
    pub fn flush(&self) {
        self.shared().flush();
    }

    /// Waits until the queue has room. Under
    /// [`Overflow::Wait`](crate::batch::Overflow::Wait) a call is taken even
    /// beyond the capacity, in memory of its own: a producer that makes calls
    /// faster than they return awaits this before each.
    ///
    /// # Errors
    ///
    /// [`Error::Disposed`], or what ended the worker.
    pub async fn ready(&self) -> Result<(), Error> {
        let mut room = Room::of(self.shared());
        poll_fn(|context| room.poll(context)).await
    }

    /// Calls that still fit before the queue is full; 0 or less when it is.
    pub fn desired_size(&self) -> i64 {
        self.shared().lock().driver.session.desired_size()
    }

    /// Items of a batch that memory holds beside a model: ⌊(0.8 · memory budget
    /// − `model_bytes`) / `bytes_per_item`⌋, at least 1 and at most
    /// [`BatchConfig::max_batch_size`](crate::BatchConfig::max_batch_size). The
    /// budget is [`BatchConfig::memory_budget`](crate::BatchConfig::memory_budget).
    pub fn optimal_batch_size(&self, model_bytes: u64, bytes_per_item: u64) -> u64 {
        let state = self.shared().lock();
        state
            .driver
            .session
            .optimal_batch_size(model_bytes, bytes_per_item)
    }

    /// Texts of a batch that memory holds beside a model, where each has these
    /// [`Activations`]: the rule of [`optimal_batch_size`](Gpu::optimal_batch_size) with
    /// [`Activations::bytes`] for each text, and at most as many texts as
    /// [`BatchConfig::max_batch_cost`](crate::BatchConfig::max_batch_cost) has tokens for.
    ///
    /// ```
    /// use framebatch::embed::Activations;
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let text = Activations { tokens: 128, hidden: 384, intermediate: 1536 };
    /// assert_eq!(gpu.optimal_text_batch_size(90_900_000, &text), 128); // 16,384 tokens
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn optimal_text_batch_size(&self, model_bytes: u64, text: &Activations) -> u64 {
        let state = self.shared().lock();
        let session = &state.driver.session;
        session.optimal_text_batch_size(model_bytes, text.bytes(), text.tokens)
    }

    /// The plan of the calls that `calls` makes through the handle it is
    /// given, as text, and a line of what is [tuned](Gpu::tuning) once something is. They are
    /// not sent, and asking for their values is an error.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let plan = gpu.explain(|gpu| drop(gpu.lerp(&[0.0], &[1.0], 0.5)));
    /// assert!(plan.contains("dispatch"));
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn explain(&self, calls: impl FnOnce(&Gpu)) -> String {
        let plan = record(calls).shared().lock().driver.session.end_explain();
        plan + &self.shared().lock().driver.session.explain_tuning()
    }

    /// Counts since the session was opened; times in milliseconds, sizes in bytes.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// gpu.lerp(&[0.0], &[1.0], 0.5)?;
    /// assert_eq!(gpu.stats().calls, 1);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.shared().lock().driver.session.stats()
    }

    /// What the device is: its adapter, driver, features and limits.
    pub fn info(&self) -> DeviceInfo {
        self.shared().lock().driver.session.info()
    }

    /// What calls are foreseen to take, by which the devices are chosen, and
    /// whether it was measured in this process; `None` where nothing is chosen.
    pub fn model(&self) -> Option<(Model, bool)> {
        self.shared().lock().driver.session.model()
    }

    /// What is tuned to the load, and by what was measured: how long calls wait while the GPU
    /// is busy, and how large batches grow. Tuned values are kept for later sessions of this
    /// process on the same adapter. A value that the settings or their preset give is not
    /// tuned; see [`BatchConfig::max_wait`](crate::BatchConfig::max_wait) and
    /// [`BatchConfig::max_batch_size`](crate::BatchConfig::max_batch_size).
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, Preset};
    /// let mut config = Config::from(Preset::Auto);
    /// # config.engine = EngineChoice::Cpu;
    /// config.batch.target_latency = Some(8.0); // milliseconds from a call to its answer
    /// let gpu = Blocking::open(config)?;
    /// assert_eq!(gpu.tuning().wait_ms, Some(4.0)); // until more is known
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn tuning(&self) -> Tuning {
        self.shared().lock().driver.session.tuning()
    }

    /// The wgpu device in use, to share with other users of it; `None` on the
    /// CPU. It changes when the device is lost and replaced.
    ///
    /// Callbacks of this device (`map_async`, `on_submitted_work_done`) may run on
    /// the session's thread while it is locked: only send a message from them; make
    /// no calls of this session, and take no lock that is held where some are made.
    pub fn wgpu_device(&self) -> Option<wgpu::Device> {
        platform::wgpu_device(self.shared().lock().driver.session.device())
    }

    /// The device's queue, likewise, and what [`wgpu_device`](Gpu::wgpu_device) says of
    /// callbacks holds for those of the queue.
    pub fn wgpu_queue(&self) -> Option<wgpu::Queue> {
        platform::wgpu_queue(self.shared().lock().driver.session.device())
    }

    /// Ends the session for all of its handles: what is pending fails with
    /// [`Error::Disposed`], and so does every call from now on. The device is freed. Await
    /// the calls first to keep their results; disposing twice is fine.
    pub fn dispose(&self) {
        self.shared().close(&Error::Disposed);
    }

    /// Whether both are handles of one session.
    pub(super) fn is_same(&self, other: &Gpu) -> bool {
        Arc::ptr_eq(self.shared(), other.shared())
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }

    pub(super) fn terms(&self) -> Terms {
        self.terms
    }
}

/// A session that takes calls to plan them, and sends none.
pub(super) fn record(calls: impl FnOnce(&Gpu)) -> Gpu {
    // Plans do not depend on the device, and calls of other threads do not enter this session.
    let device = AnyDevice::Cpu(Cpu::default());
    let config = Config::from(Preset::Frame);
    let shared = Shared::new(device, None, &config, Purpose::Explain).expect("presets are valid");
    let aside = Gpu::new(Arc::new(shared), None);
    calls(&aside);
    aside
}
