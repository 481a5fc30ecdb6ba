//! What `tracing` is told, with the feature of that name.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use engines::{in_time, manual, open};
use framebatch::EngineChoice;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// An event: its level, its target and its fields as text.
#[derive(Clone, Debug)]
struct Heard {
    level: Level,
    target: String,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Heard {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

static HEARD: Mutex<Vec<Heard>> = Mutex::new(Vec::new());

/// Keeps the events of this crate.
struct Keeper;

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("framebatch::")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut heard = Heard {
            level: *event.metadata().level(),
            target: event.metadata().target().into(),
            fields: BTreeMap::new(),
        };
        event.record(&mut heard);
        HEARD.lock().unwrap().push(heard);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The tests share what is heard, and so take turns.
fn listening() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static IS_SET: OnceLock<()> = OnceLock::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    IS_SET.get_or_init(|| tracing::subscriber::set_global_default(Keeper).unwrap());
    HEARD.lock().unwrap().clear();
    turn
}

/// The events of a target, once there are so many.
fn heard(target: &str, count: usize) -> Vec<Heard> {
    loop {
        let all = HEARD.lock().unwrap().clone();
        let of: Vec<Heard> = all.into_iter().filter(|one| one.target == target).collect();
        if of.len() >= count {
            return of;
        }
        std::thread::yield_now();
    }
}

#[test]
fn every_batch_is_an_event_with_its_facts() {
    in_time(|| {
        let _turn = listening();
        for engine in [EngineChoice::Cpu, EngineChoice::Gpu] {
            HEARD.lock().unwrap().clear();
            let gpu = open(engine, manual());
            for count in [3, 2] {
                let calls: Vec<_> = (0..count)
                    .map(|_| gpu.lerp(&[0.0; 8], &[1.0; 8], 0.5))
                    .collect();
                gpu.flush();
                for call in calls {
                    call.wait().unwrap();
                }
            }
            let batches = heard("framebatch::batch", 2);
            let is_gpu = engine == EngineChoice::Gpu;
            for (batch, calls) in batches.iter().zip([3, 2]) {
                let field = |name| batch.fields[name].clone();
                assert_eq!(batch.level, Level::DEBUG);
                assert_eq!(field("calls"), calls.to_string());
                assert_eq!(field("items"), (8 * calls).to_string());
                assert_eq!(field("failed"), "0");
                assert_eq!(field("engine"), if is_gpu { "gpu" } else { "cpu" });
                assert_eq!(field("submits"), if is_gpu { "1" } else { "0" });
                assert!(field("wall_ms").parse::<f64>().unwrap() > 0.0);
                // What is not known is no field.
                assert_eq!(batch.fields.contains_key("gpu_ms"), is_gpu);
            }
        }
    });
}

#[test]
fn what_becomes_of_the_device_is_an_event() {
    in_time(|| {
        let _turn = listening();
        let gpu = open(EngineChoice::Gpu, manual());
        gpu.wgpu_device().unwrap().destroy();
        let call = gpu.lerp(&[0.0], &[1.0], 0.5);
        gpu.flush();
        assert_eq!(call.wait().unwrap(), [0.5]);
        let told = heard("framebatch::device", 2);
        let levels: Vec<Level> = told.iter().map(|one| one.level).collect();
        assert_eq!(levels, [Level::WARN, Level::INFO]);
        assert!(told[0].fields["message"].contains("lost"));
        assert!(told[1].fields["message"].contains("in use again"));
    });
}
