//! Statistics and facts as plain JavaScript objects; the clock; the console.

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::batch::Millis;
use crate::device::{DeviceInfo, Engine};
use crate::session::{FACTS, Facts, Model, Stats, Tuning};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(value: &JsValue);
}

thread_local! {
    static CLOCK: web_sys::Performance = Reflect::get(&js_sys::global(), &"performance".into())
        .map(JsCast::unchecked_into)
        .expect("every place that runs wasm has a performance object");
}

/// Milliseconds since the page, or the worker, began.
pub(super) fn now() -> Millis {
    CLOCK.with(|clock| Millis(clock.now()))
}

/// Prints an error that must not happen to the console.
pub(super) fn complain(value: &JsValue) {
    console_error(value);
}

/// `gpu.stats()`.
pub(super) fn stats(stats: &Stats) -> JsValue {
    let device = &stats.device;
    let wait = numbers(&[("p50", stats.wait_p50), ("p95", stats.wait_p95)]);
    let ran_on = numbers(&[
        ("gpu", stats.ran_on_gpu as f64),
        ("cpu", stats.ran_on_cpu as f64),
    ]);
    let pool = numbers(&[
        ("bytes", device.pool_bytes as f64),
        ("peakBytes", device.pool_peak_bytes as f64),
        ("buffers", device.pool_buffers as f64),
        ("liveBytes", device.pool_live_bytes as f64),
        ("hostBytes", stats.host_bytes as f64),
    ]);
    let pipelines = numbers(&[
        ("compiled", device.pipelines_compiled as f64),
        ("reused", device.pipelines_reused as f64),
    ]);
    let tensors = numbers(&[
        ("bytes", stats.tensors.sum() as f64),
        ("f32", stats.tensors.f32 as f64),
        ("f16", stats.tensors.f16 as f64),
        ("bf16", stats.tensors.bf16 as f64),
        ("int8", stats.tensors.int8 as f64),
        ("int4", stats.tensors.int4 as f64),
    ]);
    let object = numbers(&[
        ("calls", stats.calls as f64),
        ("settled", stats.settled as f64),
        ("rejected", stats.rejected as f64),
        ("pending", stats.pending as f64),
        ("batches", stats.batches as f64),
        ("subBatches", stats.pieces as f64),
        ("submits", device.submits as f64),
        ("nudges", device.nudges as f64),
        ("uploads", device.uploads as f64),
        ("readbacks", device.readbacks as f64),
        ("dispatches", device.dispatches as f64),
        ("fallbacks", stats.fallbacks as f64),
        ("bytesUp", device.bytes_up as f64),
        ("bytesDown", device.bytes_down as f64),
        ("meanBatchSize", stats.mean_batch_size),
        ("fillRate", stats.fill_rate),
        ("encodeMs", stats.encode_ms),
        ("transferMs", known(stats.measured.transfer_ms)),
        ("gpuMs", known(stats.measured.gpu_ms)),
        ("readMs", known(stats.measured.read_ms)),
        ("kernelEfficiency", known(stats.measured.kernel_efficiency)),
        ("utilization", known(stats.measured.utilization)),
    ]);
    set(&object, "waitMs", &wait);
    set(&object, "ranOn", &ran_on);
    set(&object, "pool", &pool);
    set(&object, "tensors", &tensors);
    set(&object, "pipelines", &pipelines);
    object.into()
}

/// The facts of a batch. `first` and `last` are tickets.
pub(super) fn facts(facts: &Facts) -> JsValue {
    let kernel_rate = facts.kernel_bytes_per_second();
    let object = numbers(&[
        ("first", facts.first.0.into()),
        ("last", facts.last.0.into()),
        ("id", facts.id.0.into()),
        ("calls", facts.calls as f64),
        ("items", facts.items as f64),
        ("failed", facts.failed as f64),
        ("subBatches", facts.pieces as f64),
        ("submits", facts.submits as f64),
        ("bytesUp", facts.bytes_up as f64),
        ("bytesDown", facts.bytes_down as f64),
        ("flops", known(facts.flops)),
        ("kernelBytes", known(facts.kernel_bytes)),
        ("memoryBytes", facts.memory_bytes as f64),
        ("startTime", facts.sent.0),
        ("waitMs", facts.wait_ms),
        ("encodeMs", facts.encode_ms),
        ("transferMs", facts.transfer_ms),
        ("gpuMs", known(facts.gpu_ms)),
        ("readMs", facts.read_ms),
        ("wallMs", facts.wall_ms),
        ("resolutionMs", known(facts.resolution_ms)),
        ("itemsPerSecond", known(facts.items_per_second())),
        ("itemsPerMs", known(facts.items_per_ms())),
        ("bytesPerSecond", known(facts.bytes_per_second())),
        ("kernelBytesPerSecond", known(kernel_rate)),
        ("flopsPerSecond", known(facts.flops_per_second())),
        ("kernelEfficiency", known(facts.kernel_efficiency())),
        ("utilization", known(facts.utilization())),
    ]);
    set(&object, "engine", &name_of(facts.engine).into());
    object.into()
}

/// `gpu.info`.
pub(super) fn info(info: &DeviceInfo, model: Option<(Model, bool)>, tuning: &Tuning) -> JsValue {
    let limits = Object::new();
    for (name, value) in &info.limits {
        set(&limits, name, &(*value as f64).into());
    }
    let features = Array::new();
    for feature in &info.features {
        features.push(&feature.into());
    }
    let object = Object::new();
    set(&object, "adapter", &info.adapter.as_str().into());
    set(&object, "driver", &info.driver.as_str().into());
    set(&object, "software", &info.software.into());
    set(&object, "engine", &name_of(info.engine).into());
    if let Some(reason) = info.reason {
        set(&object, "reason", &reason.as_str().into());
    }
    set(&object, "features", &features);
    set(&object, "limits", &limits);
    set(&object, "version", &env!("CARGO_PKG_VERSION").into());
    let tuned = numbers(&[
        ("waitMs", known(tuning.wait_ms)),
        (
            "batchBytes",
            known(tuning.batch_bytes.map(|bytes| bytes as f64)),
        ),
        ("fixedMs", tuning.fixed_ms),
        ("msPerMegabyte", tuning.ms_per_megabyte),
        ("encodeMs", tuning.encode_ms),
        ("batches", tuning.batches as f64),
    ]);
    set(&object, "tuning", &tuned);
    if let Some((model, is_calibrated)) = model {
        let facts = Object::new();
        for (name, value) in FACTS.into_iter().zip(model.0) {
            set(&facts, name, &value.into());
        }
        set(&facts, "calibrated", &is_calibrated.into());
        set(&object, "routing", &facts);
    }
    object.into()
}

fn name_of(engine: Engine) -> &'static str {
    match engine {
        Engine::Gpu => "gpu",
        Engine::Cpu => "cpu",
    }
}

/// A number, or the NaN of which [`numbers`] makes null.
fn known(number: Option<f64>) -> f64 {
    number.unwrap_or(f64::NAN)
}

fn numbers(fields: &[(&str, f64)]) -> Object {
    let object = Object::new();
    for (name, value) in fields {
        let value = match value.is_nan() {
            true => JsValue::NULL,
            false => (*value).into(),
        };
        set(&object, name, &value);
    }
    object
}

fn set(object: &Object, name: &str, value: &JsValue) {
    Reflect::set(object, &name.into(), value).expect("a plain object takes properties");
}
