//! Calls of high and of low priority: their answers, their order on tensors that are written,
//! and slices.

use proptest::prelude::*;

use super::writing::{Pose, pose};
use super::*;

const PRIORITIES: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

/// Makes what `call` asks for a call of this priority.
fn of<T>(
    session: &mut Session<Frail>,
    priority: Priority,
    call: impl FnOnce(&mut Session<Frail>) -> T,
) -> T {
    ASKED.set(priority);
    let made = call(session);
    ASKED.set(Priority::Normal);
    made
}

/// A session that sends without being asked.
fn by_itself(device: Frail) -> Session<Frail> {
    let config = BatchConfig {
        policy: crate::batch::Policy::Auto,
        ..config()
    };
    Session::new(device, config).expect("valid settings")
}

/// Sends and lands everything; the answers, and which calls were in one batch.
fn land_everything(session: &mut Session<Frail>) -> (Vec<Settlement>, Vec<Vec<Ticket>>) {
    let (mut settlements, mut batches) = (Vec::new(), Vec::new());
    let mut now = 0.0;
    session.flush();
    while session.pending() > 0 {
        let sent = session.launch(Millis(now)).expect("a batch to send");
        batches.push(tickets(last_sent(session)));
        let launch = LaunchId {
            batch: sent.batch,
            generation: sent.generation,
        };
        for flight in flights(session, sent) {
            let outcome = pollster::block_on(flight);
            now += 1.0;
            session.note_landing(launch, &outcome, Millis(now));
            let settled = session.settle(launch.batch, launch.generation, outcome);
            settlements.push(settled.expect("on its way"));
        }
        session.flush();
    }
    (settlements, batches)
}

#[test]
fn calls_of_all_priorities_are_answered_and_high_ones_first() {
    let mut session = session(1 << 24);
    // With so many rows memory moves along.
    let mut expected = Vec::new();
    for (n, rows) in [7, 300, 40_000, 3].into_iter().enumerate() {
        for priority in PRIORITIES {
            let value = (10 * n + priority as usize) as f32;
            let ticket = of(&mut session, priority, |session| put(session, value, rows));
            expected.push((ticket, value + 1.0, rows as usize));
        }
    }
    let (settlements, batches) = land_everything(&mut session);
    for (ticket, value, rows) in expected {
        assert_eq!(writing::result_of(&settlements, ticket), vec![value; rows]);
    }
    assert_eq!(batches[0].len(), 4, "all of high priority");
    assert!(batches.len() > 3, "low work went in slices");
    assert_eq!(session.queue.pending_bytes(), 0);
}

#[test]
fn slices_grow_while_they_take_no_time() {
    let mut session = session(1 << 20);
    for n in 0..40_u8 {
        of(&mut session, Priority::Low, |session| {
            put(session, n.into(), 4)
        });
    }
    let (_, batches) = land_everything(&mut session);
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 40);
    assert!(sizes[0] == 1 && sizes.len() <= 5, "{sizes:?}");
    let mut pairs = sizes.windows(2);
    assert!(pairs.all(|pair| pair[1] <= 4 * pair[0]), "{sizes:?}");
}

#[test]
fn a_fence_waits_for_calls_of_every_priority() {
    for priority in PRIORITIES {
        let mut session = session(1 << 20);
        put(&mut session, 1.0, 1);
        land_everything(&mut session);
        of(&mut session, priority, |session| put(session, 1.0, 1));
        let fence = session.fence();
        assert!(!session.has_passed(fence), "{priority:?}");
        put(&mut session, 1.0, 1);
        land_everything(&mut session);
        assert!(session.has_passed(fence), "{priority:?}");
    }
}

#[test]
fn a_fence_waits_for_a_batch_of_every_priority_that_is_in_flight() {
    for priority in PRIORITIES {
        let mut session = session(1 << 20);
        of(&mut session, priority, |session| put(session, 1.0, 1));
        session.flush();
        let sent = session.launch(Millis(0.0)).expect("a batch to send");
        let fence = session.fence();
        assert!(!session.has_passed(fence), "{priority:?}");
        for flight in flights(&mut session, sent) {
            let outcome = pollster::block_on(flight);
            let last = last_sent(&session).id;
            session.settle(last, Generation(0), outcome);
        }
        assert!(session.has_passed(fence), "{priority:?}");
    }
}

#[test]
fn low_work_behind_a_call_of_high_priority_is_asked_for_with_the_next_turn() {
    let mut session = by_itself(Frail::new(1 << 20));
    let pose = pose(&mut session);
    of(&mut session, Priority::High, |session| {
        writing::written(session, pose, 3.0)
    });
    of(&mut session, Priority::Low, |session| {
        writing::read(session, pose, (None, None)).expect("room")
    });
    let sent = session.launch(Millis(0.0)).expect("high work");
    assert!(!session.is_ready() && !session.has_low());
    session.flush_joined();
    assert!(session.is_ready(), "no clock was told of the call");
    drop(sent);
}

#[test]
fn low_work_whose_kernels_compile_is_parked_a_slice_at_a_time() {
    let mut session = by_itself(Frail::new(1 << 20).compiling());
    for n in 0..20_u8 {
        of(&mut session, Priority::Low, |session| {
            put(session, n.into(), 4)
        });
    }
    for _ in 0..5 {
        assert!(session.launch(Millis(0.0)).is_none(), "nothing is compiled");
    }
    let parked = session.queue.waiting().map(|batch| batch.calls().len());
    let mut sizes: Vec<usize> = parked.filter(|calls| *calls > 0).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 19]);
}

#[test]
fn what_goes_at_once_goes_with_all_that_writes() {
    let mut session = session(1 << 20);
    let pose = pose(&mut session);
    of(&mut session, Priority::Low, |session| {
        writing::written(session, pose, 3.0)
    });
    session.flush_at_once();
    assert!(session.is_ready(), "low work that writes goes along");
    of(&mut session, Priority::Low, |session| put(session, 1.0, 1));
    land_everything(&mut session);
    of(&mut session, Priority::Low, |session| put(session, 1.0, 1));
    session.flush_at_once();
    assert!(!session.is_ready(), "other low work goes in slices");
    land_everything(&mut session);
}

/// What a call does with the tensor that is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Use {
    Reads,
    Writes,
    /// Nothing.
    Ignores,
}

fn uses() -> impl Strategy<Value = Vec<(usize, Use, bool)>> {
    let kind = prop_oneof![Just(Use::Reads), Just(Use::Writes), Just(Use::Ignores)];
    prop::collection::vec((0_usize..3, kind, prop::bool::weighted(0.2)), 1..40)
}

proptest! {
    /// Whatever the priorities, a call that reads a tensor finds what was written before, and
    /// nothing that a later call writes.
    #[test]
    fn calls_keep_their_order_on_a_tensor_that_is_written(uses in uses()) {
        let mut session = session(1 << 20);
        let pose: Pose = pose(&mut session);
        let (mut reads, mut value) = (Vec::new(), 0.0);
        let mut flying: Vec<Launch> = Vec::new();
        let mut all = Vec::new();
        for (priority, kind, goes) in uses {
            let priority = PRIORITIES[priority];
            match kind {
                Use::Reads => {
                    let ticket = of(&mut session, priority, |s| writing::asked(s, pose, None));
                    reads.push((ticket, value));
                }
                Use::Writes => {
                    value += 1.0;
                    of(&mut session, priority, |s| writing::written(s, pose, value));
                }
                Use::Ignores => {
                    of(&mut session, priority, |s| put(s, 1.0, 3));
                }
            }
            if goes {
                session.flush();
                flying.extend(session.launch(NOW));
            }
            if flying.len() > 1 {
                let sent = flying.remove(0);
                all.extend(land_all(&mut session, sent));
            }
        }
        for sent in flying {
            all.extend(land_all(&mut session, sent));
        }
        all.extend(land_everything(&mut session).0);
        for (ticket, before) in reads {
            prop_assert_eq!(writing::result_of(&all, ticket), [before; 4], "{:?}", ticket);
        }
    }
}
