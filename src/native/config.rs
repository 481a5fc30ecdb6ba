//! The settings of a session, and the device that they choose.

use super::platform::{AnyDevice, Gpu};
use crate::batch::{BatchConfig, Preset};
use crate::device::{Adapter, Cpu, CpuReason, Device, DeviceInfo, GpuOptions};
use crate::driver::usual_stall_ms;
use crate::error::Error;

/// Where calls run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Where each group of equal calls of a flush is answered sooner: on the GPU
    /// or the CPU; on the CPU where there is no GPU in hardware. A
    /// structure keeps its route for 60 flushes, its first two for 8, unless its group
    /// becomes four times larger or smaller. Floats may differ in their last bits between
    /// the devices.
    #[default]
    Auto,
    /// On a GPU, a software adapter included, but for calls that ask for the
    /// CPU; without one opening fails. Here as under
    /// [`Auto`](EngineChoice::Auto) the CPU takes over when no GPU stays, and
    /// gives way to one again that is found later: it is looked for after a second,
    /// and then in pauses that grow to a minute.
    Gpu,
    /// On the CPU.
    Cpu,
}

/// The settings of a session.
///
/// A worker thread has no frames: [`Policy::Auto`] takes a burst of calls for a task of a
/// page, and sends at its end. Under [`Policy::Frame`] the program sends, by
/// [`flush`](super::Gpu::flush), or `max_wait` does; under [`Policy::Manual`] the program
/// alone.
///
/// [`Policy::Auto`]: crate::batch::Policy::Auto
/// [`Policy::Frame`]: crate::batch::Policy::Frame
/// [`Policy::Manual`]: crate::batch::Policy::Manual
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where calls run.
    pub engine: EngineChoice,
    /// When batches are sent, and how much may wait; by default
    /// [`Preset::Auto`].
    pub batch: BatchConfig,
    /// What to ask of the platform.
    pub gpu: GpuOptions,
    /// The adapter to open, one of [`adapters`](crate::adapters), instead of the
    /// one that the platform gives. After a loss it is the same one again. One in
    /// software is opened under [`EngineChoice::Gpu`] only: under
    /// [`EngineChoice::Auto`] calls run on the CPU instead, which is faster.
    pub adapter: Option<Adapter>,
    /// Milliseconds without an answer after which a GPU counts as lost: what it owes is
    /// sent to the next one. The last handle waits no longer for a GPU either. More than 0; `None`,
    /// the default, is 10,000, and 60,000 for a GPU in software.
    pub stall_ms: Option<f64>,
}

impl Default for Config {
    fn default() -> Self {
        Preset::Auto.into()
    }
}

impl From<Preset> for Config {
    fn from(preset: Preset) -> Self {
        Config {
            engine: EngineChoice::default(),
            batch: preset.config(),
            gpu: GpuOptions::default(),
            adapter: None,
            stall_ms: None,
        }
    }
}

impl Config {
    /// Refuses settings that cannot work.
    pub(super) fn validate(&self) -> Result<(), Error> {
        if let Some(stall_ms) = self.stall_ms
            && (stall_ms.is_nan() || stall_ms <= 0.0)
        {
            return Err(Error::InvalidInput(format!(
                "stall_ms is {stall_ms}; give milliseconds above 0, infinity to wait for ever"
            )));
        }
        self.batch.validate()
    }

    /// The longest that this device may owe an answer, in milliseconds.
    pub(super) fn stall_ms(&self, device: &DeviceInfo) -> f64 {
        self.stall_ms.unwrap_or_else(|| usual_stall_ms(device))
    }
}

/// Milliseconds before each request for a device that replaces a lost one: a GPU driver that
/// restarts has none for a while. A browser waits longer, because its GPU process takes longer to
/// restart; callers here may be blocked meanwhile.
pub(super) const PAUSES: [f64; 4] = [0.0, 50.0, 100.0, 200.0];

/// Opens the device that the settings ask for, on a thread that may enter a GPU driver.
pub(super) async fn open_device(config: &Config) -> Result<AnyDevice, Error> {
    match config.engine {
        EngineChoice::Cpu => Ok(AnyDevice::Cpu(Cpu::default())),
        EngineChoice::Gpu => open_gpu(config).await.map(AnyDevice::Gpu),
        EngineChoice::Auto => match open_gpu(config).await {
            Ok(gpu) if !gpu.info().software => Ok(AnyDevice::Gpu(gpu)),
            Ok(_) => Ok(instead_of_gpu(CpuReason::SoftwareAdapter)),
            Err(Error::NoAdapter(_)) if config.adapter.is_none() => {
                Ok(instead_of_gpu(CpuReason::NoAdapter))
            }
            Err(Error::Unsupported(_)) if config.adapter.is_none() => {
                Ok(instead_of_gpu(CpuReason::Unsupported))
            }
            Err(error) => Err(error),
        },
    }
}

/// The CPU, where the settings would have a GPU.
pub(super) fn instead_of_gpu(reason: CpuReason) -> AnyDevice {
    AnyDevice::Cpu(Cpu::instead_of_gpu(reason))
}

/// Opens the GPU that the settings ask for.
async fn open_gpu(config: &Config) -> Result<Gpu, Error> {
    match &config.adapter {
        None => Gpu::open(&config.gpu).await,
        Some(adapter) => Gpu::open_on(adapter, &config.gpu).await,
    }
}
