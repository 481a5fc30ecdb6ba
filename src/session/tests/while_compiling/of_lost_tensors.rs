//! Calls that read a lost tensor, behind a parked call that writes all of it, whatever their batch
//! has cost.

use std::sync::Arc;

use super::super::writing::{asked, written};
use super::*;

#[test]
fn a_lost_tensor_is_read_once_a_parked_call_has_written_it() {
    for losses in 0..ATTEMPTS {
        read_behind_a_parked_write(losses);
    }
}

/// Reads the tensor in a batch over which so many devices were lost.
fn read_behind_a_parked_write(losses: u32) {
    let (mut session, mut works) = (compiling(), Vec::new());
    let pose = pose(&mut session);
    // The kernel that reads is ready, and the one that writes is not.
    let first = asked(&mut session, pose, None);
    session.flush();
    assert!(session.launch(NOW).is_none());
    compile(&mut session, &mut works, None);
    let sent = session.launch(NOW).expect("ready");
    assert_eq!(values(&land(&mut session, sent)), [(first, vec![0.0; 4])]);

    session.provenances.lose(pose.target, &Arc::from("test"));
    let early = asked(&mut session, pose, None);
    session.flush();
    assert!(session.launch(NOW).is_none());
    assert_eq!(told(&mut session), [(early, Err(Code::DeviceLost))]);
    let writer = written(&mut session, pose, 5.0);
    session.flush();
    assert!(session.launch(NOW).is_none(), "the write is parked");
    let reader = asked(&mut session, pose, None);
    session.queue.open_mut().payload.losses = losses;
    session.flush();
    assert!(session.launch(NOW).is_none(), "the reading stays behind");
    assert_eq!(told(&mut session), []);

    compile(&mut session, &mut works, None);
    let mut settlements = Vec::new();
    while let Some(sent) = session.launch(NOW) {
        settlements.push(land(&mut session, sent));
    }
    assert_eq!(told(&mut session), [(writer, Ok(()))]);
    let read: Vec<_> = settlements.iter().flat_map(values).collect();
    assert_eq!(read, [(reader, vec![5.0; 4])]);
    assert_eq!(session.pending(), 0);
}
