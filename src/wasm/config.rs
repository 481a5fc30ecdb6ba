//! Options from JavaScript, and the device that they ask for.

use js_sys::Reflect;
use wasm_bindgen::JsValue;

use super::fields::Fields;
use crate::batch::{BatchConfig, Capacity, Overflow, Policy, Preset};
use crate::device::{AnyDevice, Cpu, CpuReason, Device, Gpu, GpuOptions, PowerPreference};
use crate::error::Error;
use crate::session::{Model, Routing};

/// The options of `open`.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) engine: Engine,
    pub(super) batch: BatchConfig,
    pub(super) gpu: GpuOptions,
    /// Milliseconds without an answer after which a GPU counts as lost, if given.
    pub(super) stall_ms: Option<f64>,
}

/// The device to take.
#[derive(Clone, Copy, Debug)]
pub(super) enum Engine {
    /// A hardware GPU, or else the CPU.
    Auto,
    /// A GPU, also a software one.
    Gpu,
    /// The CPU.
    Cpu,
}

/// Every option, so that a wrong name can be answered with the right ones.
const NAMES: [&str; 19] = [
    "engine",
    "flush",
    "preset",
    "maxBatchSize",
    "minBatchSize",
    "maxWaitMs",
    "targetLatencyMs",
    "maxBatchCost",
    "maxInFlight",
    "maxPiecesInFlight",
    "queueCalls",
    "queueBytes",
    "overflow",
    "powerPreference",
    "requiredFeatures",
    "requiredLimits",
    "maxLimits",
    "stallMs",
    "memoryBudget",
];

const ENGINES: [(&str, Engine); 3] = [
    ("auto", Engine::Auto),
    ("gpu", Engine::Gpu),
    ("cpu", Engine::Cpu),
];

const POWERS: [(&str, PowerPreference); 2] = [
    ("low-power", PowerPreference::LowPower),
    ("high-performance", PowerPreference::HighPerformance),
];

const PRESETS: [(&str, Preset); 7] = [
    ("auto", Preset::Auto),
    ("frame", Preset::Frame),
    ("eager", Preset::Eager),
    ("latency", Preset::Latency),
    ("balanced", Preset::Balanced),
    ("throughput", Preset::Throughput),
    ("embeddings", Preset::Embeddings),
];

const POLICIES: [(&str, Policy); 4] = [
    ("auto", Policy::Auto),
    ("frame", Policy::Frame),
    ("eager", Policy::Eager),
    ("manual", Policy::Manual),
];

const OVERFLOWS: [(&str, Overflow); 3] = [
    ("wait", Overflow::Wait),
    ("reject", Overflow::Reject),
    ("latest", Overflow::Latest),
];

/// Reads the options object.
pub(super) fn read_options(value: &JsValue) -> Result<Options, Error> {
    let fields = Fields::new(value, &NAMES)?;
    let gpu = GpuOptions {
        power: fields
            .choice("powerPreference", &POWERS)?
            .unwrap_or_default(),
        required_features: fields.names("requiredFeatures")?,
        required_limits: fields.limits("requiredLimits")?,
        max_limits: fields.limits("maxLimits")?,
    };
    let engine = fields.choice("engine", &ENGINES)?.unwrap_or(Engine::Auto);
    Ok(Options {
        engine,
        batch: batch_config(&fields)?,
        gpu,
        stall_ms: fields.whole("stallMs")?.map(|ms| ms as f64),
    })
}

fn batch_config(fields: &Fields) -> Result<BatchConfig, Error> {
    let policy = fields.choice("flush", &POLICIES)?;
    let preset = fields.choice("preset", &PRESETS)?;
    // A flush policy without a preset has defaults of its own.
    let base = match (preset, policy) {
        (None, Some(Policy::Eager)) => Preset::Eager,
        (preset, _) => preset.unwrap_or_default(),
    }
    .config();
    let queue = base.queue_capacity;
    let count = |name| -> Result<Option<usize>, Error> {
        let given = fields.whole(name)?;
        Ok(given.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    };
    let size = fields.whole("maxBatchSize")?;
    let target = fields.number("targetLatencyMs")?;
    // What a preset says of the values that a target tunes makes way for the target.
    let of_preset = target.is_none();
    let calls = count("queueCalls")?;
    // What is not given makes way for what is: a batch is never larger than the queue.
    let most = calls.map_or(u64::MAX, |calls| calls as u64);
    let least = size.map_or(0, |size| usize::try_from(size).unwrap_or(usize::MAX));
    Ok(BatchConfig {
        policy: policy.unwrap_or(base.policy),
        max_batch_size: size.or(base
            .max_batch_size
            .filter(|_| of_preset)
            .map(|size| size.min(most))),
        max_batch_cost: fields.whole("maxBatchCost")?.unwrap_or(base.max_batch_cost),
        max_in_flight: count("maxInFlight")?.unwrap_or(base.max_in_flight),
        max_pieces_in_flight: count("maxPiecesInFlight")?,
        memory_budget: fields.whole("memoryBudget")?,
        min_batch_size: fields.whole("minBatchSize")?.unwrap_or(base.min_batch_size),
        max_wait: fields
            .number("maxWaitMs")?
            .or(base.max_wait.filter(|_| of_preset)),
        target_latency: target,
        queue_capacity: Capacity {
            calls: calls.unwrap_or(queue.calls.max(least)),
            bytes: fields.whole("queueBytes")?.unwrap_or(queue.bytes),
        },
        overflow: fields
            .choice("overflow", &OVERFLOWS)?
            .unwrap_or(base.overflow),
        ..base
    })
}

/// Opens a device for this engine.
pub(super) async fn open_device(engine: Engine, options: &GpuOptions) -> Result<AnyDevice, Error> {
    match engine {
        Engine::Cpu => Ok(AnyDevice::Cpu(Cpu::default())),
        Engine::Gpu => open_gpu(options).await.map(AnyDevice::Gpu),
        Engine::Auto => match open_gpu(options).await {
            Ok(gpu) if !gpu.info().software => Ok(AnyDevice::Gpu(gpu)),
            Ok(mut software) => {
                software.destroy();
                Ok(instead_of_gpu(CpuReason::SoftwareAdapter))
            }
            // A feature or limit that this machine lacks is an error, also where the CPU could do.
            Err(error @ Error::InvalidInput(_)) => Err(error),
            Err(Error::Unsupported(_)) => Ok(instead_of_gpu(without_web_gpu())),
            Err(_) => Ok(instead_of_gpu(CpuReason::NoAdapter)),
        },
    }
}

fn instead_of_gpu(reason: CpuReason) -> AnyDevice {
    AnyDevice::Cpu(Cpu::instead_of_gpu(reason))
}

/// Why there is no WebGPU: browsers hide it from pages of insecure addresses.
fn without_web_gpu() -> CpuReason {
    match property(&js_sys::global(), "isSecureContext").as_bool() {
        Some(false) => CpuReason::InsecureContext,
        _ => CpuReason::Unsupported,
    }
}

/// Milliseconds of a frame for which the CPU may compute: it is the page's main thread.
const PATIENCE_MS: f64 = 4.0;

/// The cost model of a session that chooses between a GPU and the CPU, and how long the CPU may
/// compute in a frame.
pub(super) fn routing(engine: Engine, batch: &BatchConfig) -> Option<Routing> {
    let patience_ms = match batch.policy {
        Policy::Auto | Policy::Frame => PATIENCE_MS,
        Policy::Eager | Policy::Manual => f64::INFINITY,
    };
    matches!(engine, Engine::Auto).then(|| Routing {
        model: Model::default(),
        patience_ms,
    })
}

async fn open_gpu(options: &GpuOptions) -> Result<Gpu, Error> {
    // wgpu panics in environments without a navigator, such as Node.
    let navigator = property(&js_sys::global(), "navigator");
    if !navigator.is_object() || property(&navigator, "gpu").is_falsy() {
        return Err(Error::Unsupported(
            "there is no WebGPU here (navigator.gpu is missing); open with engine 'cpu' or 'auto' to run without a GPU".into(),
        ));
    }
    Gpu::open(options).await
}

/// A property of an object; undefined where it cannot be read.
fn property(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &name.into()).unwrap_or_default()
}
