//! Calls whose kernels are being compiled, behind calls of their batch that go again.

use super::super::writing::{Pose, asked, fill, result_of, written};
use super::*;

/// Loses the device, and has a call restore the pose on another one, whose kernels are compiled.
fn restored(session: &mut Session<Frail>, pose: Pose) -> Ticket {
    session.lose(session.generation());
    let next = Frail::new(1 << 20).gpu().compiling();
    session.replace_device(next, NOW);
    fill(session, pose);
    session.begin_restoration();
    let restored = written(session, pose, 5.0);
    session.end_restoration();
    assert_eq!(session.give_up_unreadable(), []);
    restored
}

#[test]
fn a_parked_call_stays_behind_a_write_that_goes_again() {
    let (mut session, mut works) = (compiling_gpu(), Vec::new());
    let pose = pose(&mut session);
    // The kernel that writes is ready, and the one that reads is not.
    let first = written(&mut session, pose, 1.0);
    session.flush();
    assert!(session.launch(NOW).is_none());
    compile(&mut session, &mut works, None);
    let sent = session.launch(NOW).expect("ready");
    land(&mut session, sent);
    assert_eq!(told(&mut session), [(first, Ok(()))]);

    let writer = written(&mut session, pose, 5.0);
    let reader = asked(&mut session, pose, None);
    session.flush();
    let shortage = Error::OutOfMemory("planned".into());
    session.devices.primary_mut().fault = Some(shortage);
    let mut sent = session.launch(NOW).expect("the write is tried");
    compile(&mut session, &mut works, None);
    let outcome = pollster::block_on(sent.flights.remove(0));
    assert!(
        session
            .settle(sent.batch, sent.generation, outcome)
            .is_none()
    );
    let mut settlements = Vec::new();
    while let Some(sent) = session.launch(NOW) {
        settlements.push(land(&mut session, sent));
    }
    assert_eq!(told(&mut session), [(writer, Ok(()))]);
    assert_eq!(result_of(&settlements, reader), [5.0; 4]);
    assert_eq!(session.pending(), 0);
}

#[test]
fn a_parked_restoration_goes_before_calls_that_go_again() {
    let (mut session, mut works) = (compiling_gpu(), Vec::new());
    let pose = pose(&mut session);
    let again = made(&mut session, 0, 1.0);
    session.flush();
    assert!(session.launch(NOW).is_none());
    compile(&mut session, &mut works, None);
    let _lost = session.launch(NOW).expect("ready");

    let restored = restored(&mut session, pose);
    // What restores has to wait for its kernel, and everything else for what restores.
    assert!(session.launch(NOW).is_none());
    works.clear();
    compile(&mut session, &mut works, None);
    let sent = session.launch(NOW).expect("what restores");
    land(&mut session, sent);
    assert_eq!(told(&mut session), [(restored, Ok(()))]);
    assert!(session.launch(NOW).is_none());
    compile(&mut session, &mut works, None);
    let sent = session.launch(NOW).expect("what goes again");
    let settlement = land(&mut session, sent);
    assert_eq!(settlement.answers[0].ticket, again);
}

#[test]
fn a_parked_restoration_goes_before_calls_of_high_priority() {
    let (mut session, mut works) = (compiling_gpu(), Vec::new());
    let pose = pose(&mut session);
    let restored = restored(&mut session, pose);
    assert!(session.launch(NOW).is_none(), "its kernel is compiled");
    // A call that has nothing to do with what restores.
    let (recipe, _) = structure(&mut session, 0);
    let room: &mut [f32] = bytemuck::cast_slice_mut(session.room(8).expect("room"));
    room[..8].copy_from_slice(&[[0.0; 4], [2.0; 4]].concat());
    let submission = Submission {
        recipe,
        rows: 4,
        scalar: 0.5_f32.to_bits(),
        key: None,
    };
    let high = session.submit_with(Priority::High, None, &submission, NOW);
    let high = high.expect("taken").ticket;
    let mut settlements = Vec::new();
    for _ in 0..4 {
        works.extend(session.compiles());
        while !works.is_empty() {
            compile(&mut session, &mut works, None);
        }
        while let Some(sent) = session.launch(NOW) {
            settlements.push(land(&mut session, sent));
        }
    }
    assert_eq!(told(&mut session), [(restored, Ok(()))]);
    assert_eq!(result_of(&settlements, high), [1.0; 4]);
    assert_eq!(session.pending(), 0);
}
