//! What cannot be seen from outside: a worker that fails.

use std::sync::Arc;

use super::request;
use super::shared::{Purpose, Shared};
use super::worker::supervise;
use crate::Code;
use crate::batch::{BatchConfig, Policy, Preset};
use crate::device::{AnyDevice, Cpu};
use crate::ops::State;

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
