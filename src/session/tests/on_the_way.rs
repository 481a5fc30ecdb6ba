//! Calls that wait and batches on their way: how soon a flush sends them, what they
//! hold, and when a device counts as silent.

use super::*;

#[test]
fn what_is_wanted_at_once_waits_for_no_batch() {
    let mut session = session(1 << 20);
    let sent = [1.0, 2.0, 3.0].map(|value| {
        put(&mut session, value, 1);
        launch(&mut session)
    });
    let ticket = put(&mut session, 4.0, 1);
    session.flush();
    assert!(session.launch(NOW).is_none(), "three are on their way");
    session.flush_at_once();
    assert_eq!(session.due(NOW), Due::Now);
    let urgent = session.launch(NOW).expect("whatever is on its way");
    assert!(session.launch(NOW).is_none() && session.in_flight() == 4);
    for sent in sent {
        land(&mut session, sent);
    }
    let settlement = land(&mut session, urgent);
    assert_eq!(values(&settlement), [(ticket, vec![5.0])]);
}
