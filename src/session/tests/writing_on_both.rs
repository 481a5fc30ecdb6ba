//! Writes on a GPU with a CPU beside it, which has copies of tensors.

use super::writing::{Pose, asked, fill, pose, read, result_of, write, written};
use super::*;
use crate::Code;
use crate::batch::{Capacity, Overflow};

/// A GPU and the CPU beside it, which calls ask for.
fn both(gpu: Frail) -> Session<Frail> {
    let session = Session::new(gpu.gpu(), config()).expect("valid settings");
    session.with_companion(Frail::new(1 << 20), None)
}

#[test]
fn only_results_of_the_gpu_prove_that_it_works() {
    let mut session = both(Frail::new(1 << 20));
    let pose = pose(&mut session);
    let proves = |session: &mut Session<Frail>, now: f64| {
        session.flush();
        let sent = session.launch(Millis(now)).expect("a batch to send");
        let own = (sent.batch, sent.generation);
        let flights = flights(session, sent).into_iter();
        let proofs = flights.map(|flight| {
            session.recovery.losses = 1;
            let outcome = pollster::block_on(flight);
            assert!(session.settle(own.0, own.1, outcome).is_some());
            session.recovery.losses == 0
        });
        proofs.collect::<Vec<bool>>()
    };
    // Results of the CPU, and calls that nothing is read back of, prove nothing.
    asked(&mut session, pose, Some(Engine::Cpu));
    assert_eq!(proves(&mut session, 0.0), [false]);
    written(&mut session, pose, 1.0);
    assert_eq!(proves(&mut session, 1000.0), [false]);
    put(&mut session, 1.0, 3);
    session.devices.primary_mut().fault = Some(Error::Fatal("planned".into()));
    assert_eq!(proves(&mut session, 2000.0), [false]);
    asked(&mut session, pose, None);
    written(&mut session, pose, 2.0);
    assert_eq!(proves(&mut session, 3000.0), [true]);
    put(&mut session, 1.0, 3);
    put_on_both(&mut session);
    assert_eq!(proves(&mut session, 4000.0), [false, true]);
    // A page that only draws would give up its GPU after some losses, days apart.
    written(&mut session, pose, 1.0);
    assert_eq!(proves(&mut session, 60_000.0), [false]);
    written(&mut session, pose, 1.0);
    assert_eq!(proves(&mut session, 62_000.0), [true]);
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20).gpu(), NOW);
    fill(&mut session, pose);
    written(&mut session, pose, 1.0);
    assert_eq!(proves(&mut session, 70_000.0), [false]);
}

fn put_on_both(session: &mut Session<Frail>) {
    ask_of(session, (1.0, 3), None, Some(Engine::Cpu)).expect("taken");
}

#[test]
fn the_cpu_keeps_what_its_calls_still_read() {
    let mut session = both(Frail::new(1 << 24));
    let pose = pose(&mut session);
    let target = pose.target;
    let kept = |session: &Session<Frail>| {
        let beside = session.devices.companion().expect("there is one");
        beside.tensor_bytes(target)
    };
    let large = vec![2.0_f32.to_bits(); (1 << 18) + 1];
    session.fill(target, &[1.0_f32.to_bits(); 4]).expect("held");
    let call = asked(&mut session, pose, Some(Engine::Cpu));
    session.fill(target, &large).expect("held");
    let refused = read(&mut session, pose, (None, Some(Engine::Cpu)));
    assert_eq!(refused.unwrap_err().code(), Code::InvalidInput);
    let newer = asked(&mut session, pose, None);
    let sent = launch(&mut session);
    let settlements = land_all(&mut session, sent);
    assert_eq!(result_of(&settlements, call), [1.0; 4]);
    assert_eq!(result_of(&settlements, newer), [2.0; 4]);
    // No call reads the CPU's copy any more.
    session.fill(target, &large).expect("held");
    assert_eq!(kept(&session), 0);

    session.fill(target, &[1.0_f32.to_bits(); 4]).expect("held");
    asked(&mut session, pose, Some(Engine::Cpu));
    session.fill(target, &large).expect("held");
    session.release(target);
    assert!(kept(&session) > 0);
    let sent = launch(&mut session);
    assert!(land(&mut session, sent).outcome.is_ok());
    assert_eq!(kept(&session), 0);
}

/// Whether a call that reads the tensor may ask for the CPU.
fn may_leave(session: &mut Session<Frail>, pose: Pose) -> bool {
    session.begin_explain();
    let asked = read(session, pose, (None, Some(Engine::Cpu)));
    session.end_explain();
    asked.is_ok()
}

#[test]
fn the_cpus_copy_is_old_once_a_write_is_taken() {
    let one = BatchConfig {
        overflow: Overflow::Reject,
        queue_capacity: Capacity {
            calls: 1,
            bytes: 1 << 20,
        },
        ..config()
    };
    let session = Session::new(Frail::new(1 << 20).gpu(), one).expect("valid settings");
    let mut session = session.with_companion(Frail::new(1 << 20), None);
    let pose = pose(&mut session);
    // An explained call does not drop the copy, and a refused call does not.
    session.begin_explain();
    written(&mut session, pose, 1.0);
    session.end_explain();
    assert!(may_leave(&mut session, pose));
    put(&mut session, 1.0, 3);
    let refused = write(&mut session, pose, 1.0, (None, None)).unwrap_err();
    assert_eq!(refused.code(), Code::QueueFull);
    assert!(may_leave(&mut session, pose));
    let sent = launch(&mut session);
    land(&mut session, sent);
    let refused = write(&mut session, pose, 1.0, (None, Some(Engine::Cpu))).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidInput);
    assert!(may_leave(&mut session, pose));

    written(&mut session, pose, 1.0);
    assert!(!may_leave(&mut session, pose));
    // The CPU lacks what a write makes of the tensor that the next device is filled with, too.
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20).gpu(), NOW);
    fill(&mut session, pose);
    let sent = launch(&mut session);
    land(&mut session, sent);
    assert!(!may_leave(&mut session, pose));
}

#[test]
fn a_plan_sends_what_reads_a_write_to_the_gpu() {
    let session = Session::new(Frail::new(1 << 20).gpu(), config()).expect("valid settings");
    let model = Model([0.0; FACTS.len()]);
    let mut session = session.with_companion(Frail::new(1 << 20), Some(model.into()));
    let pose = pose(&mut session);
    session.begin_explain();
    asked(&mut session, pose, None);
    assert!(session.end_explain().starts_with("on the cpu\n"));
    session.begin_explain();
    written(&mut session, pose, 1.0);
    asked(&mut session, pose, None);
    let text = session.end_explain();
    assert!(!text.contains("on the cpu"), "{text}");
}

#[test]
fn what_waited_whole_goes_to_the_cpu_that_takes_over() {
    let mut session = both(Frail::new(1 << 20).compiling());
    let pose = pose(&mut session);
    let before = asked(&mut session, pose, None);
    written(&mut session, pose, 1.0);
    session.flush();
    assert!(session.launch(NOW).is_none(), "both wait for a kernel");
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20), NOW);
    fill(&mut session, pose);
    let sent = session.launch(NOW).expect("sent again");
    let settlement = land(&mut session, sent);
    assert_eq!(result_of(&[settlement], before), [0.0; 4]);
    assert_eq!(session.pending(), 0);
}
