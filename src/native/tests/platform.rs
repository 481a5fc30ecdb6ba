//! The outside world as a model: at every lock and every wait another thread may go on, and a test
//! decides what becomes of devices.
//!
//! The file is the twin of `platform.rs`, with the same names. All threads of a run share one thread of
//! the system, so the run's world is a thread-local.

pub(super) use shuttle::future::block_on;
pub(super) use shuttle::sync::atomic::AtomicU64;
pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard};
pub(super) use shuttle::thread;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use shuttle::future::yield_now;
use shuttle::rand::{Rng, thread_rng};

use crate::batch::Millis;
use crate::device::{
    Adapter, Compiled, Counters, Cpu, Device, DeviceInfo, DeviceLimits, Engine, Flight, GpuOptions,
    Readiness,
};
use crate::error::Error;
use crate::kernel::{Kernel, Named};
use crate::plan::Plan;
use crate::tensor::{Arena, Packing};

/// What becomes of devices in a run. A choice is as likely as it is often in its list.
#[derive(Clone, Copy)]
pub(super) struct World {
    /// What becomes of batches.
    pub(super) flights: &'static [Fate],
    /// What becomes of kernels.
    pub(super) kernels: &'static [Fate],
    /// What becomes of the kernel that samples clips.
    pub(super) clips: &'static [Fate],
    /// What opens in the place of a lost device; the first one is always in hardware.
    pub(super) opens: &'static [Opens],
}

/// What there is to open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Opens {
    Hardware,
    Software,
    Nothing,
}

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate {
    Arrives,
    /// The flight fails for lack of memory.
    Fails,
    /// The device is lost before the batch is sent.
    LostBefore,
    /// The flight never comes while the device is there.
    Stalls,
    /// The device is lost with the batch.
    LostWith,
    /// The device is lost after the batch.
    LostAfter,
    /// The GPU driver brings the worker down, with the session locked.
    PanicsAtLaunch,
    /// The GPU driver brings the worker down while the worker waits for the batch.
    PanicsInFlight,
}

thread_local! {
    static WORLD: Cell<World> = const { Cell::new(World { flights: &[], kernels: &[], clips: &[], opens: &[] }) };
    static OPENED: Cell<u32> = const { Cell::new(0) };
}

impl World {
    /// Makes this the world of the run.
    pub(super) fn begin(self) {
        WORLD.set(self);
        OPENED.set(0);
    }
}

fn draw<T: Copy>(choices: &[T]) -> T {
    choices[thread_rng().gen_range(0..choices.len())]
}

/// Nothing takes any time.
pub(super) fn now_ms() -> f64 {
    0.0
}

/// A clock that goes on by a tenth of a millisecond with each look, so that waits end.
#[derive(Debug, Default)]
pub(super) struct Clock {
    looks: AtomicU32,
}

impl Clock {
    pub(super) fn start() -> Self {
        Clock::default()
    }

    pub(super) fn now(&self) -> Millis {
        Millis(f64::from(self.looks.fetch_add(1, Ordering::Relaxed)) / 10.0)
    }
}

/// A job, to be waited for.
#[derive(Debug)]
pub(super) struct Task(Mutex<Option<thread::JoinHandle<()>>>);

shuttle::thread_local! {
    static IS_LASTING: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn is_lasting() -> bool {
    IS_LASTING.with(Cell::get)
}

impl Task {
    /// Waits without a limit: the model never times out.
    pub(super) fn wait(&self, _: Duration) -> bool {
        let thread = self.0.lock().unwrap().take();
        if let Some(thread) = thread {
            let _ = thread.join(); // A job's panic is its own matter.
        }
        true
    }
}

/// Threads of a model end with its run, so each job has one of its own.
pub(super) fn spawn(job: impl FnOnce() + Send + 'static) -> Result<Task, Error> {
    let thread = thread::spawn(move || {
        IS_LASTING.with(|is_lasting| is_lasting.set(true));
        job();
    });
    Ok(Task(Mutex::new(Some(thread))))
}

/// No GPU driver is entered in the model.
#[expect(clippy::unnecessary_wraps, reason = "it has the signature of its twin")]
pub(super) fn run<T>(job: impl FnOnce() -> T) -> Result<T, Error> {
    Ok(job())
}

/// No GPU driver is entered in the model.
#[expect(clippy::unused_async, reason = "it has the signature of its twin")]
pub(super) async fn enter<T>(job: impl FnOnce() -> T) -> Result<T, Error> {
    Ok(job())
}

/// Frees a device at once: a model's device is never at work on its own.
pub(super) fn free(device: AnyDevice, _: Duration) -> Option<Task> {
    drop(device);
    None
}

/// No wgpu runs in the model.
pub(super) fn wgpu_device(_: &AnyDevice) -> Option<wgpu::Device> {
    None
}

/// No wgpu runs in the model.
pub(super) fn wgpu_queue(_: &AnyDevice) -> Option<wgpu::Queue> {
    None
}

/// Tensors of the model have no buffers.
pub(super) fn show(_: &mut AnyDevice, _: u32) -> Option<wgpu::Buffer> {
    None
}

/// The model imports no buffers.
pub(super) fn import(_: &mut AnyDevice, _: u32, _: &wgpu::Buffer, _: u32) -> Result<(), Error> {
    Err(Error::InvalidInput("the model has no buffers".into()))
}

/// The device of a session.
#[derive(Debug)]
pub(super) enum AnyDevice {
    Gpu(Gpu),
    Cpu(Cpu),
}

/// How far a kernel is.
#[derive(Clone, Copy, Debug)]
enum Known {
    Compiling,
    Works,
    Fails,
}

/// A GPU of the model: a CPU device, and the world that decides its fate.
#[derive(Debug)]
pub(super) struct Gpu {
    cpu: Cpu,
    software: bool,
    lost: Arc<AtomicBool>,
    /// The kernels that were asked for, and how far each is.
    kernels: Vec<(Kernel, Known)>,
}

impl Gpu {
    #[expect(clippy::unused_async, reason = "opening a real device waits")]
    pub(super) async fn open(_: &GpuOptions) -> Result<Gpu, Error> {
        let opened = OPENED.replace(OPENED.get() + 1);
        let opens = match opened {
            0 => Opens::Hardware,
            _ => draw(WORLD.get().opens),
        };
        if opens == Opens::Nothing {
            return Err(Error::NoAdapter("the model has none now".into()));
        }
        Ok(Gpu {
            cpu: Cpu::default(),
            software: opens == Opens::Software,
            lost: Arc::default(),
            kernels: Vec::new(),
        })
    }

    /// The model has one adapter.
    pub(super) async fn open_on(_: &Adapter, options: &GpuOptions) -> Result<Gpu, Error> {
        Gpu::open(options).await
    }

    fn known(&self, kernel: &Kernel) -> Option<Known> {
        let mut kernels = self.kernels.iter();
        let known = kernels.find(|(known, _)| known == kernel);
        known.map(|(_, known)| *known)
    }

    /// Loses the device.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }
}

fn check(lost: &AtomicBool) -> Result<(), Error> {
    match lost.load(Ordering::Relaxed) {
        true => Err(Error::DeviceLost("model".into())),
        false => Ok(()),
    }
}

async fn compile(kernel: Kernel, lost: Arc<AtomicBool>) -> Compiled {
    for _ in 0..thread_rng().gen_range(0..3) {
        yield_now().await;
    }
    let World { kernels, clips, .. } = WORLD.get();
    let fate = draw(if kernel == Kernel::Named(Named::Clip) {
        clips
    } else {
        kernels
    });
    while fate == Fate::Stalls && check(&lost).is_ok() {
        yield_now().await;
    }
    assert!(fate != Fate::PanicsInFlight, "the GPU driver fell over");
    if fate == Fate::LostWith {
        lost.store(true, Ordering::Relaxed);
    }
    let fails = fate == Fate::Fails;
    let shader = fails.then(|| Error::Shader("model".into()));
    let outcome = check(&lost).and(shader.map_or(Ok(None), Err));
    Compiled { kernel, outcome }
}

impl Device for Gpu {
    fn limits(&self) -> DeviceLimits {
        self.cpu.limits()
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            engine: Engine::Gpu,
            reason: None,
            software: self.software,
            ..self.cpu.info()
        }
    }

    fn counters(&self) -> Counters {
        self.cpu.counters()
    }

    fn prepare(&mut self, kernel: &Kernel) -> Readiness {
        match self.known(kernel) {
            Some(Known::Works) => Readiness::Ready,
            Some(Known::Fails) => Readiness::Failed(Error::Shader("model".into())),
            Some(Known::Compiling) => Readiness::Compiling(None),
            None => {
                self.kernels.push((kernel.clone(), Known::Compiling));
                let work = compile(kernel.clone(), Arc::clone(&self.lost));
                Readiness::Compiling(Some(Box::pin(work)))
            }
        }
    }

    fn adopt(&mut self, compiled: Compiled) {
        let mut kernels = self.kernels.iter_mut();
        let kernel = kernels.find(|(kernel, _)| *kernel == compiled.kernel);
        kernel.expect("asked for").1 = match compiled.outcome {
            Ok(_) => Known::Works,
            Err(_) => Known::Fails,
        };
    }

    fn launch(&mut self, plan: &Plan, arena: &mut Arena) -> Result<Flight, Error> {
        let mut kernels = plan.dispatches().map(|work| &work.kernel);
        if let Some(failed) =
            kernels.find(|kernel| matches!(self.known(kernel), Some(Known::Fails)))
        {
            self.kernels.retain(|(kernel, _)| kernel != failed);
            return Err(Error::Shader("model".into()));
        }
        let fate = draw(WORLD.get().flights);
        assert!(fate != Fate::PanicsAtLaunch, "the GPU driver fell over");
        if fate == Fate::LostBefore {
            self.lose();
        }
        let lost = Arc::clone(&self.lost);
        check(&lost)?;
        let flight = self.cpu.launch(plan, arena)?;
        Ok(Box::pin(async move {
            for _ in 0..thread_rng().gen_range(0..3) {
                yield_now().await;
            }
            assert!(fate != Fate::PanicsInFlight, "the GPU driver fell over");
            if fate == Fate::Stalls {
                loop {
                    yield_now().await;
                }
            }
            if fate == Fate::Fails {
                return Err(Error::OutOfMemory("model".into()));
            }
            if fate == Fate::LostWith {
                lost.store(true, Ordering::Relaxed);
            }
            check(&lost)?;
            if fate == Fate::LostAfter {
                lost.store(true, Ordering::Relaxed);
            }
            flight.await
        }))
    }

    fn fill(&mut self, tensor: u32, words: &[u32], packing: Option<Packing>) -> Result<(), Error> {
        self.cpu.fill(tensor, words, packing)
    }

    fn allocate(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        self.cpu.allocate(tensor, words)
    }

    fn tensor_bytes(&self, tensor: u32) -> u64 {
        self.cpu.tensor_bytes(tensor)
    }

    fn tensor_words(&self, tensor: u32) -> Option<&[u32]> {
        self.cpu.tensor_words(tensor)
    }

    fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) {
        self.cpu.patch(tensor, at, words);
    }

    fn release(&mut self, tensor: u32) {
        self.cpu.release(tensor);
    }

    fn destroy(&mut self) {
        self.lose();
    }
}

impl AnyDevice {
    fn device(&self) -> &dyn Device {
        match self {
            AnyDevice::Gpu(gpu) => gpu,
            AnyDevice::Cpu(cpu) => cpu,
        }
    }

    fn device_mut(&mut self) -> &mut dyn Device {
        match self {
            AnyDevice::Gpu(gpu) => gpu,
            AnyDevice::Cpu(cpu) => cpu,
        }
    }
}

impl Device for AnyDevice {
    fn limits(&self) -> DeviceLimits {
        self.device().limits()
    }

    fn info(&self) -> DeviceInfo {
        self.device().info()
    }

    fn counters(&self) -> Counters {
        self.device().counters()
    }

    fn prepare(&mut self, kernel: &Kernel) -> Readiness {
        self.device_mut().prepare(kernel)
    }

    fn adopt(&mut self, compiled: Compiled) {
        self.device_mut().adopt(compiled);
    }

    fn launch(&mut self, plan: &Plan, arena: &mut Arena) -> Result<Flight, Error> {
        self.device_mut().launch(plan, arena)
    }

    fn fill(&mut self, tensor: u32, words: &[u32], packing: Option<Packing>) -> Result<(), Error> {
        self.device_mut().fill(tensor, words, packing)
    }

    fn allocate(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        self.device_mut().allocate(tensor, words)
    }

    fn tensor_bytes(&self, tensor: u32) -> u64 {
        self.device().tensor_bytes(tensor)
    }

    fn tensor_words(&self, tensor: u32) -> Option<&[u32]> {
        self.device().tensor_words(tensor)
    }

    fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) {
        self.device_mut().patch(tensor, at, words);
    }

    fn release(&mut self, tensor: u32) {
        self.device_mut().release(tensor);
    }

    fn destroy(&mut self) {
        self.device_mut().destroy();
    }
}
