//! Statistics and facts as plain JavaScript objects; the clock; the console.

use js_sys::{Object, Reflect};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::batch::Millis;
use crate::device::{DeviceInfo, Engine};
use crate::session::Stats;

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

/// Shows what must not have happened.
pub(super) fn complain(value: &JsValue) {
    console_error(value);
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatsObject {
    calls: f64,
    settled: f64,
    rejected: f64,
    pending: f64,
    batches: f64,
    sub_batches: f64,
    submits: f64,
    nudges: f64,
    uploads: f64,
    readbacks: f64,
    dispatches: f64,
    bytes_up: f64,
    bytes_down: f64,
    mean_batch_size: f64,
    fill_rate: f64,
    wait_ms: WaitObject,
    encode_ms: f64,
    ran_on: RanOnObject,
    pool: PoolObject,
    pipelines: PipelinesObject,
}

#[derive(Serialize)]
struct WaitObject {
    p50: f64,
    p95: f64,
}

#[derive(Serialize)]
struct RanOnObject {
    gpu: f64,
    cpu: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PoolObject {
    bytes: f64,
    peak_bytes: f64,
    buffers: f64,
}

#[derive(Serialize)]
struct PipelinesObject {
    compiled: f64,
    reused: f64,
}

#[derive(Serialize)]
struct InfoObject<'a> {
    adapter: &'a str,
    driver: &'a str,
    software: bool,
    engine: &'static str,
    features: &'a [String],
    #[serde(with = "serde_wasm_bindgen::preserve")]
    limits: JsValue,
}

/// `gpu.stats()`.
pub(super) fn stats(stats: &Stats) -> JsValue {
    let device = &stats.device;
    to_object(&StatsObject {
        calls: stats.calls as f64,
        settled: stats.settled as f64,
        rejected: stats.rejected as f64,
        pending: stats.pending as f64,
        batches: stats.batches as f64,
        sub_batches: stats.pieces as f64,
        submits: device.submits as f64,
        nudges: device.nudges as f64,
        uploads: device.uploads as f64,
        readbacks: device.readbacks as f64,
        dispatches: device.dispatches as f64,
        bytes_up: device.bytes_up as f64,
        bytes_down: device.bytes_down as f64,
        mean_batch_size: stats.mean_batch_size,
        fill_rate: stats.fill_rate,
        wait_ms: WaitObject {
            p50: stats.wait_p50,
            p95: stats.wait_p95,
        },
        encode_ms: stats.encode_ms,
        ran_on: RanOnObject {
            gpu: stats.ran_on_gpu as f64,
            cpu: stats.ran_on_cpu as f64,
        },
        pool: PoolObject {
            bytes: device.pool_bytes as f64,
            peak_bytes: device.pool_peak_bytes as f64,
            buffers: device.pool_buffers as f64,
        },
        pipelines: PipelinesObject {
            compiled: device.pipelines_compiled as f64,
            reused: device.pipelines_reused as f64,
        },
    })
}

/// `gpu.info`.
pub(super) fn info(info: &DeviceInfo) -> JsValue {
    let limits = Object::new();
    for (name, value) in &info.limits {
        Reflect::set(&limits, &(*name).into(), &(*value as f64).into())
            .expect("a plain object takes properties");
    }
    to_object(&InfoObject {
        adapter: &info.adapter,
        driver: &info.driver,
        software: info.software,
        engine: match info.engine {
            Engine::Gpu => "gpu",
            Engine::Cpu => "cpu",
        },
        features: &info.features,
        limits: limits.into(),
    })
}

fn to_object(value: &impl Serialize) -> JsValue {
    value
        .serialize(&serde_wasm_bindgen::Serializer::json_compatible())
        .expect("numbers and names always serialize")
}
