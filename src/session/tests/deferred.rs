//! Deferred tensors: only the CPU beside a GPU has them so far, because it answers all
//! calls.

use super::writing::{Pose, asked, pose, result_of, written};
use super::*;
use crate::plan::KINDS;

/// A session in which the CPU answered the last batch, sooner than its GPU would, and
/// tensors that were made after that batch.
fn elsewhere(gpu: Frail) -> (Session<Frail>, Pose) {
    let mut model = Model([0.0; FACTS.len()]);
    model.0[0] = 10.0;
    model.0[FACTS.len() - KINDS + 1] = 1e3;
    let session = Session::new(gpu.gpu(), config()).expect("valid settings");
    let mut session = session.with_companion(Frail::new(1 << 20), Some(model.into()));
    put(&mut session, 1.0, 4);
    let sent = launch(&mut session);
    assert!(sent.has_cpu_share && sent.flights.is_empty());
    land(&mut session, sent);
    let pose = pose(&mut session);
    (session, pose)
}

fn on_gpu(session: &Session<Frail>, pose: Pose) -> [bool; 2] {
    [pose.store, pose.target].map(|tensor| session.devices.primary().tensor_bytes(tensor) > 0)
}

/// What the target holds, read on a device.
fn value(session: &mut Session<Frail>, pose: Pose, engine: Option<Engine>) -> Vec<f32> {
    let call = asked(session, pose, engine);
    let sent = launch(session);
    let settlements = land_all(session, sent);
    result_of(&settlements, call)
}

#[test]
fn a_gpu_gets_a_tensor_with_the_first_batch_that_reads_it_there() {
    let (mut session, pose) = elsewhere(Frail::new(1 << 20));
    let bytes = session.stats().tensors;
    assert_eq!(value(&mut session, pose, None), [0.0; 4]);
    assert_eq!(on_gpu(&session, pose), [false, false]);
    session
        .patch(pose.target, 1, &[5.0_f32.to_bits()])
        .expect("held");
    assert_eq!(value(&mut session, pose, None), [0.0, 5.0, 0.0, 0.0]);
    assert_eq!(on_gpu(&session, pose), [false, false]);
    let patched = value(&mut session, pose, Some(Engine::Gpu));
    assert_eq!(patched, [0.0, 5.0, 0.0, 0.0]);
    assert_eq!(on_gpu(&session, pose), [false, true]);
    // From here on both devices have the target.
    session
        .patch(pose.target, 2, &[6.0_f32.to_bits()])
        .expect("held");
    for engine in [Engine::Gpu, Engine::Cpu] {
        assert_eq!(
            value(&mut session, pose, Some(engine)),
            [0.0, 5.0, 6.0, 0.0]
        );
    }
    // A tensor that is made while the GPU is in use goes there at once.
    value(&mut session, pose, Some(Engine::Gpu));
    let next = session.hold();
    session.fill(next, &[1; 4]).expect("held");
    assert!(session.devices.primary().tensor_bytes(next) > 0);
    session.release(next);
    assert_eq!(session.stats().tensors, bytes, "it was counted before");
}

#[test]
fn a_tensor_that_is_written_or_shown_is_on_the_gpu_with_what_it_was() {
    let (mut session, pose) = elsewhere(Frail::new(1 << 20));
    session
        .fill(pose.target, &[3.0_f32.to_bits(); 4])
        .expect("held");
    session.bring(pose.target).expect("room");
    session.bring(pose.target).expect("no more to do");
    assert_eq!(on_gpu(&session, pose), [false, true]);
    written(&mut session, pose, 2.0);
    assert_eq!(value(&mut session, pose, None), [2.0; 4]);
    assert_eq!(on_gpu(&session, pose), [true, true]);
}

#[test]
fn what_only_the_cpu_has_is_filled_anew_after_a_loss() {
    let (mut session, pose) = elsewhere(Frail::new(1 << 20));
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20).gpu(), NOW);
    session.bring(pose.target).expect("nothing to bring");
    assert_eq!(on_gpu(&session, pose), [false, false]);
    writing::fill(&mut session, pose);
    assert_eq!(value(&mut session, pose, Some(Engine::Gpu)), [0.0; 4]);
    session.release(pose.target);
    session.release(pose.store);
    assert_eq!(session.stats().tensors.f32, 0);
}

#[test]
fn a_gpu_without_memory_for_a_tensor_leaves_its_calls_to_the_cpu() {
    let (mut session, pose) = elsewhere(Frail::new(1 << 20));
    session.devices.primary_mut().capacity = 8;
    let call = asked(&mut session, pose, Some(Engine::Gpu));
    let mut sent = launch(&mut session);
    let settled = loop {
        let (batch, generation) = (sent.batch, sent.generation);
        let mut settled = Vec::new();
        for flight in flights(&mut session, sent) {
            let outcome = pollster::block_on(flight);
            settled.extend(session.settle(batch, generation, outcome));
        }
        if !settled.is_empty() {
            break settled;
        }
        sent = session.launch(NOW).expect("it goes again");
    };
    assert_eq!(result_of(&settled, call), [0.0; 4]);
    assert_eq!(on_gpu(&session, pose), [false, false]);
    // Once there is room the GPU gets both tensors.
    session.devices.primary_mut().capacity = u64::MAX;
    assert_eq!(value(&mut session, pose, Some(Engine::Gpu)), [0.0; 4]);
    assert_eq!(on_gpu(&session, pose), [false, true]);
}
