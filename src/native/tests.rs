//! What cannot be seen from outside: a worker that fails, a device that is lost.

use std::sync::Arc;
use std::thread;

use super::config::{Config, EngineChoice, open_device};
use super::recovery::Recovery;
use super::request;
use super::shared::{Purpose, Shared};
use super::worker::{self, supervise};
use crate::batch::{BatchConfig, Policy, Preset};
use crate::device::{AnyDevice, Cpu, Engine, Generation, GpuOptions};
use crate::ops::State;
use crate::{Code, Error};

#[test]
fn a_panic_in_the_worker_rejects_what_is_pending_and_what_comes() {
    let batch = BatchConfig {
        policy: Policy::Manual,
        ..Preset::Eager.config()
    };
    let device = AnyDevice::Cpu(Cpu::default());
    let shared = Arc::new(Shared::new(device, batch, Purpose::Send).unwrap());
    let states = [State::default(); 3];
    let ask = || shared.submit::<f32>(Ok(request::gradients(&states)), None);
    let pending = ask();

    supervise(&shared, || panic!("out of cheese"));

    for call in [pending, ask()] {
        let error = call.wait().unwrap_err();
        assert_eq!(error.code(), Code::Fatal);
        assert!(error.to_string().contains("out of cheese"), "{error}");
    }
    assert_eq!(shared.lock().session.pending(), 0);
}

#[test]
fn a_panic_under_the_lock_does_as_well() {
    let device = AnyDevice::Cpu(Cpu::default());
    let shared = Arc::new(Shared::new(device, Preset::Eager.config(), Purpose::Send).unwrap());
    let states = [State::default()];
    let call = shared.submit::<f32>(Ok(request::gradients(&states)), None);
    supervise(&shared, || {
        let _state = shared.lock();
        panic!("while holding it");
    });
    assert_eq!(call.wait().unwrap_err().code(), Code::Fatal);
}

/// Answers a call, takes the GPU away, and answers one more. The engine that
/// did, where devices are opened with `options` after the first.
fn engine_after_loss(options: GpuOptions) -> Engine {
    let config = Config {
        engine: EngineChoice::Gpu,
        ..Config::default()
    };
    let device = pollster::block_on(open_device(&config)).unwrap();
    let shared = Arc::new(Shared::new(device, config.batch, Purpose::Send).unwrap());
    let theirs = Arc::clone(&shared);
    let worker = thread::spawn(move || worker::run(&theirs, Recovery::new(options)));
    let states = [State([0x80; 16])];
    let ask = || shared.submit::<f32>(Ok(request::gradients(&states)), None);
    let first = ask().wait().unwrap();

    match shared.lock().session.device() {
        AnyDevice::Gpu(gpu) => gpu.wgpu_device().destroy(),
        AnyDevice::Cpu(_) => panic!("opened with engine gpu"),
    }
    let again = [ask(), ask(), ask()].map(|call| call.wait().unwrap());
    assert_eq!(again, [first.clone(), first.clone(), first]);

    let engine = shared.lock().session.info().engine;
    assert_eq!(shared.lock().session.generation(), Generation(1));
    assert_eq!(shared.lock().session.pending(), 0);
    shared.close(&Error::Disposed);
    worker.join().unwrap();
    engine
}

#[test]
fn calls_outlive_a_lost_device() {
    assert_eq!(engine_after_loss(GpuOptions::default()), Engine::Gpu);
}

#[test]
fn the_processor_takes_over_where_no_other_device_opens() {
    let impossible = GpuOptions {
        required_features: vec!["time-travel".into()],
        ..GpuOptions::default()
    };
    assert_eq!(engine_after_loss(impossible), Engine::Cpu);
}
