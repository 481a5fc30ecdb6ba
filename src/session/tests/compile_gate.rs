//! The compile gate, without a session.

use super::*;
use crate::batch::Ticket;
use crate::kernel::Named;
use crate::session::compile_gate::{CompileGate, State};

const KERNELS: [Kernel; 2] = [Kernel::Named(Named::Lerp), Kernel::Named(Named::Clip)];

fn ask(gate: &mut CompileGate, device: &mut Frail, kernels: &[Kernel]) -> State {
    gate.ask(device, kernels.iter())
}

/// Has a compilation end, well or not, as it does for the device.
fn compile(gate: &mut CompileGate, device: &mut Frail, works: Vec<crate::device::Compile>) {
    for work in works {
        device.adopt(pollster::block_on(work));
        gate.compiled(NOW);
    }
}

#[test]
fn kernels_compile_at_the_same_time_and_once() {
    let (mut gate, mut device) = (CompileGate::default(), Frail::new(1 << 20).compiling());
    for _ in 0..2 {
        let state = ask(&mut gate, &mut device, &KERNELS);
        assert!(matches!(state, State::Compiling));
    }
    let works = gate.take_compiles();
    assert_eq!((works.len(), gate.take_compiles().len()), (2, 0));
    assert!(!gate.is_open(), "nothing is compiled yet");
    compile(&mut gate, &mut device, works);
    assert!(gate.is_open());
    let state = ask(&mut gate, &mut device, &KERNELS);
    assert!(matches!(state, State::Ready));
}

#[test]
fn a_warm_up_is_over_with_the_last_of_its_kernels() {
    let (mut gate, mut device) = (CompileGate::default(), Frail::new(1 << 20).compiling());
    let ticket = Ticket(7);
    gate.warm_up(ticket, Kernels(KERNELS.to_vec()));
    assert!(gate.has_warmup_due());
    assert!(gate.warmed(&mut device, Millis(0.0)).is_none());
    assert!(!gate.has_warmup_due(), "until a kernel is compiled");
    assert_eq!(gate.warmups_since(), Some(Millis(0.0)));
    let mut works = gate.take_compiles();
    let last = works.split_off(1);
    compile(&mut gate, &mut device, works);
    assert!(gate.has_warmup_due() && gate.warmed(&mut device, Millis(0.0)).is_none());
    compile(&mut gate, &mut device, last);
    let warmed = gate
        .warmed(&mut device, Millis(0.0))
        .expect("all are compiled");
    assert!(warmed.0 == ticket && warmed.1.is_ok());
    assert_eq!(gate.warmups_since(), None);
    assert!(!gate.has_warmup_due() && gate.clear().is_empty());
}

#[test]
fn another_device_is_asked_anew() {
    let (mut gate, mut device) = (CompileGate::default(), Frail::new(1 << 20).compiling());
    gate.warm_up(Ticket(0), Kernels(KERNELS.to_vec()));
    assert!(gate.warmed(&mut device, Millis(0.0)).is_none());
    gate.forget_compiles();
    assert!(gate.take_compiles().is_empty() && gate.has_warmup_due());
    let mut other = Frail::new(1 << 20).compiling();
    assert!(gate.warmed(&mut other, Millis(0.0)).is_none());
    assert_eq!(gate.take_compiles().len(), 2);
    assert_eq!(gate.clear(), [Ticket(0)]);
}
