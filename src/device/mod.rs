//! WHERE a plan runs.
//!
//! Devices execute plans; they decide nothing. Each plan's results are read back
//! by themselves and are never zeros for a failure: that is an error.

#[cfg(not(target_arch = "wasm32"))]
mod cores;
mod cpu;
mod cpu_reason;
mod gpu;
mod host;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use cores::cores;
pub use cpu::{Cpu, program};
pub use cpu_reason::CpuReason;
#[cfg(target_arch = "wasm32")]
pub use gpu::BufferPart;
#[cfg(target_arch = "wasm32")]
pub use gpu::explain_by;
#[cfg(not(any(test, target_arch = "wasm32")))]
pub(crate) use gpu::free_device;
#[cfg(not(target_arch = "wasm32"))]
pub use gpu::{Adapter, AdapterKind, adapters};
pub use gpu::{Compile, Gpu, GpuOptions, Mapped, Pipeline, PowerPreference};
pub use host::{HostPool, HostWords};

use std::pin::Pin;

use crate::error::Error;
use crate::kernel::Kernel;
use crate::plan::{ChunkSizes, Plan};
use crate::tensor::{Arena, Packing};

/// The number of a device among those that a session had, or of the time without one after a
/// loss. Nothing of an old generation settles anything of a newer one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u32);

/// The kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A GPU, through wgpu.
    Gpu,
    /// The CPU.
    Cpu,
}

/// What a device can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Bytes of the operands, or of the results, of one batch.
    pub max_side_bytes: u64,
    /// Sizes of chunks that suit the device.
    pub chunks: ChunkSizes,
    /// Threads of one dispatch.
    pub max_threads: u64,
}

/// A face's clock, in milliseconds.
pub type Clock = fn() -> f64;

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Whether the device is a GPU or the CPU.
    pub engine: Engine,
    /// Why the device is the CPU; none for a GPU.
    pub reason: Option<CpuReason>,
    /// The adapter's name, vendor or description, as the platform gives it.
    pub adapter: String,
    /// The GPU driver or architecture, as the platform gives it.
    pub driver: String,
    /// Whether it is a software adapter.
    pub software: bool,
    /// Names of the features in use.
    pub features: Vec<String>,
    /// Names and values of the limits that matter here.
    pub limits: Vec<(&'static str, u64)>,
}

/// What a device did so far, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Command buffers submitted.
    pub submits: u64,
    /// Empty submissions, by which a read-back is noticed sooner.
    pub nudges: u64,
    /// Copies of host memory to the device.
    pub uploads: u64,
    /// Mapped reads.
    pub readbacks: u64,
    /// Kernels run.
    pub dispatches: u64,
    /// Bytes copied to the device.
    pub bytes_up: u64,
    /// Bytes copied back.
    pub bytes_down: u64,
    /// Nanoseconds of writing uploads, while that is measured.
    pub upload_ns: u64,
    /// Bytes of device buffers now.
    pub pool_bytes: u64,
    /// Most bytes of device buffers at any time.
    pub pool_peak_bytes: u64,
    /// Device buffers now.
    pub pool_buffers: u64,
    /// Bytes of these buffers that were asked for; the rest is rounding.
    pub pool_live_bytes: u64,
    /// Bytes of the host's memory that the device keeps.
    pub host_bytes: u64,
    /// Pipelines compiled.
    pub pipelines_compiled: u64,
    /// Dispatches that found their pipeline ready.
    pub pipelines_reused: u64,
}

impl Counters {
    /// The counts of this device and of one that is gone: what that device did is added, what it
    /// held is not.
    pub fn after(self, gone: Counters) -> Counters {
        Counters {
            submits: self.submits + gone.submits,
            nudges: self.nudges + gone.nudges,
            uploads: self.uploads + gone.uploads,
            readbacks: self.readbacks + gone.readbacks,
            dispatches: self.dispatches + gone.dispatches,
            bytes_up: self.bytes_up + gone.bytes_up,
            bytes_down: self.bytes_down + gone.bytes_down,
            upload_ns: self.upload_ns + gone.upload_ns,
            pool_peak_bytes: self.pool_peak_bytes.max(gone.pool_peak_bytes),
            pipelines_compiled: self.pipelines_compiled + gone.pipelines_compiled,
            pipelines_reused: self.pipelines_reused + gone.pipelines_reused,
            ..self
        }
    }
}

/// The results of one plan on the host, kept until dropped.
#[derive(Debug)]
pub enum Readback {
    /// Words in the host's memory.
    Host(HostWords),
    /// A mapped range of the device's memory.
    Mapped(Mapped),
}

impl Readback {
    /// When the device's kernels began and ended, in nanoseconds of its own
    /// clock, where that was measured.
    pub fn stamps_ns(&self) -> Option<[u64; 2]> {
        match self {
            Readback::Host(_) => None,
            Readback::Mapped(mapped) => mapped.stamps_ns(),
        }
    }

    /// One word of the results.
    pub(crate) fn word(&self, at: u32) -> u32 {
        match self {
            Readback::Host(words) => words[at as usize],
            Readback::Mapped(mapped) => mapped.word(at),
        }
    }

    /// The results, or [`Error::DeviceLost`] where they went with their device before anybody
    /// took them.
    pub(crate) fn still_there(self) -> Result<Readback, Error> {
        match &self {
            Readback::Mapped(mapped) if mapped.is_detached() => {
                Err(Error::DeviceLost("its results went with it".into()))
            }
            _ => Ok(self),
        }
    }
}

/// A plan's results on their way.
pub type Flight = Pin<Box<dyn Future<Output = Result<Readback, Error>>>>;

/// The flight of a plan that failed.
pub(crate) fn failed(error: Error) -> Flight {
    Box::pin(std::future::ready(Err(error)))
}

/// Whether a device can run a kernel.
pub enum Readiness {
    /// The kernel can run now.
    Ready,
    /// The kernel does not compile. The next plan with it fails; after that it may be compiled
    /// again.
    Failed(Error),
    /// The kernel is being compiled. Whoever asks first gets the compilation, to await it.
    Compiling(Option<Compile>),
}

/// The outcome of a compilation.
pub struct Compiled {
    /// The kernel.
    pub kernel: Kernel,
    /// What a GPU runs, or why there is nothing to run.
    pub outcome: Result<Option<Pipeline>, Error>,
}

/// Something that executes plans.
pub trait Device {
    /// What it can hold.
    fn limits(&self) -> DeviceLimits;

    /// What it is.
    fn info(&self) -> DeviceInfo;

    /// What it did so far.
    fn counters(&self) -> Counters;

    /// Whether a kernel can run without waiting for a compiler. If it cannot, its compilation
    /// begins.
    fn prepare(&mut self, _: &Kernel) -> Readiness {
        Readiness::Ready
    }

    /// Takes the outcome of a compilation that [`Device::prepare`] began.
    fn adopt(&mut self, _: Compiled) {}

    /// Submits a plan; kernels that were not prepared are compiled on the way. `arena` holds the
    /// operands that the plan uploads; the device may append to the arena, never changes what
    /// was written, and is done with the arena when this returns. Plans are computed in the order
    /// of their submission, and what goes wrong from then on comes out of the flight.
    ///
    /// # Errors
    ///
    /// What keeps the plan from being submitted: nothing of the plan is computed then.
    fn launch(&mut self, plan: &Plan, arena: &mut Arena) -> Result<Flight, Error>;

    /// Keeps a tensor's data on the device, where plans find it in
    /// [`Slot::resident`](crate::plan::Slot::resident). With a packing, the words are floats in
    /// that packing.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] where no buffer holds the data.
    fn fill(&mut self, tensor: u32, words: &[u32], packing: Option<Packing>) -> Result<(), Error>;

    /// Makes room for a tensor of so many words, which calls are to write. Until they have, the
    /// words are any.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] where no buffer holds them, [`Error::OutOfMemory`].
    fn allocate(&mut self, tensor: u32, words: u32) -> Result<(), Error>;

    /// Makes room for a tensor of so many words, all of them 0. A device whose memory is always 0
    /// where a tensor begins to be has nothing to add to [`Device::allocate`].
    ///
    /// # Errors
    ///
    /// The errors of [`Device::allocate`].
    fn clear(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        self.allocate(tensor, words)
    }

    /// Bytes that a tensor takes of the device's memory; 0 for a tensor that is not on the
    /// device, or lies in a buffer of the program's.
    fn tensor_bytes(&self, tensor: u32) -> u64;

    /// Whether a launch failed over the buffer of this number, which the device cannot use: the
    /// program's, destroyed or of another device; or one that there was no memory for.
    fn is_unusable(&self, _tensor: u32) -> bool {
        false
    }

    /// A tensor's words and some padding, where the device is a CPU that has the tensor.
    fn tensor_words(&self, _tensor: u32) -> Option<&[u32]> {
        None
    }

    /// Writes a part of a tensor, from word number `at` on. Does nothing where the tensor has no
    /// such part.
    fn patch(&mut self, tensor: u32, at: u32, words: &[u32]);

    /// Gives up a tensor. Natively the tensor's memory is freed by [`Device::free_released`] or
    /// by the next launch.
    fn release(&mut self, tensor: u32);

    /// Whether memory of tensors that were given up is still to be freed.
    fn has_released(&self) -> bool {
        false
    }

    /// Frees the memory of tensors that were given up.
    fn free_released(&mut self) {}

    /// Sets the memory budget, in bytes. A launch that does not fit fails with
    /// [`Error::OutOfMemory`].
    fn allow(&mut self, _bytes: u64) {}

    /// Frees the memory that is only kept for the next plan.
    fn trim(&mut self) {}

    /// Times launches by a clock from now on, or with `None` no more.
    fn measure(&mut self, _clock: Option<Clock>) {}

    /// Frees everything that the device holds. Flights on their way fail.
    fn destroy(&mut self);
}

/// The device of a session: one of the two kinds.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a session has one, and never moves it"
)]
pub enum AnyDevice {
    /// A GPU.
    Gpu(Gpu),
    /// The CPU.
    Cpu(Cpu),
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

    fn clear(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        self.device_mut().clear(tensor, words)
    }

    fn tensor_bytes(&self, tensor: u32) -> u64 {
        self.device().tensor_bytes(tensor)
    }

    fn is_unusable(&self, tensor: u32) -> bool {
        self.device().is_unusable(tensor)
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

    fn has_released(&self) -> bool {
        self.device().has_released()
    }

    fn free_released(&mut self) {
        self.device_mut().free_released();
    }

    fn allow(&mut self, bytes: u64) {
        self.device_mut().allow(bytes);
    }

    fn trim(&mut self) {
        self.device_mut().trim();
    }

    fn measure(&mut self, clock: Option<Clock>) {
        self.device_mut().measure(clock);
    }

    fn destroy(&mut self) {
        self.device_mut().destroy();
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
