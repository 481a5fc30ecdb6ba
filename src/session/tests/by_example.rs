//! What a session promises, one example each.

use super::*;
use crate::Code;
use crate::batch::Request;

#[test]
fn a_batch_answers_its_calls_in_order_and_once() {
    let mut session = Session::new(Cpu::default(), config()).unwrap();
    let tickets = [1, 5, 2].map(|rows| put(&mut session, rows as f32, rows));
    let sent = launch(&mut session);
    let (batch, generation) = (sent.batch, sent.generation);
    let settlement = land(&mut session, sent);
    let expected = [
        (tickets[0], vec![2.0; 1]),
        (tickets[1], vec![6.0; 5]),
        (tickets[2], vec![3.0; 2]),
    ];
    assert_eq!(values(&settlement), expected);
    let again = session.settle(batch, generation, Ok(Readback::Host(Vec::new().into())));
    assert!(again.is_none());
    assert_eq!(session.pending(), 0);
}

#[test]
fn a_failed_batch_is_an_error_for_its_calls_alone() {
    let mut session = session(1 << 20);
    let faults = [
        Error::OutOfMemory("at launch".into()),
        Error::OutOfMemory("in flight".into()),
    ];
    for fault in faults {
        let failed = put(&mut session, 0.0, 3);
        session.devices.primary_mut().fault = Some(fault.clone());
        let sent = launch(&mut session);
        let unharmed = put(&mut session, 7.0, 1);
        let settlement = land(&mut session, sent);
        assert_eq!(settlement.answers[0].ticket, failed);
        assert_eq!(settlement.outcome.unwrap_err(), fault);
        let sent = launch(&mut session);
        let settlement = land(&mut session, sent);
        assert_eq!(values(&settlement), [(unharmed, vec![8.0])]);
    }
    let stats = session.stats();
    assert_eq!((stats.calls, stats.settled, stats.rejected), (4, 2, 2));
}

#[test]
fn a_lost_device_costs_no_call() {
    let mut session = session(1 << 20);
    let first = put(&mut session, 1.0, 3);
    let sent = launch(&mut session);
    let second = put(&mut session, 2.0, 1);
    let lost = session.settle(
        sent.batch,
        sent.generation,
        Err(Error::DeviceLost("test".into())),
    );
    assert!(
        lost.is_none() && session.is_lost(),
        "nobody is answered yet"
    );
    session.flush();
    assert!(
        session.launch(NOW).is_none(),
        "nothing is sent to a lost device"
    );
    session.replace_device(Frail::new(1 << 20), NOW);
    let again = session.launch(NOW).expect("the first batch again");
    assert_eq!(values(&land(&mut session, again)), [(first, vec![2.0; 3])]);
    let next = session.launch(NOW).expect("then the one behind it");
    assert_eq!(values(&land(&mut session, next)), [(second, vec![3.0])]);
    let stats = session.stats();
    assert_eq!((stats.calls, stats.settled, stats.batches), (2, 2, 2));
}

/// Loses the device with a batch in flight. Returns what the batch's calls are told.
fn lose_with(session: &mut Session<Frail>, sent: &Launch) -> Option<Settlement> {
    let loss = Err(Error::DeviceLost("test".into()));
    let told = session.settle(sent.batch, sent.generation, loss);
    session.replace_device(Frail::new(1 << 20), NOW);
    told
}

#[test]
fn what_is_lost_at_every_attempt_is_an_error() {
    let mut session = session(1 << 20);
    let ticket = put(&mut session, 1.0, 1);
    session.flush();
    for _ in 1..ATTEMPTS {
        let sent = session.launch(NOW).expect("sent, and sent again");
        assert!(lose_with(&mut session, &sent).is_none());
    }
    let last = session.launch(NOW).expect("the last attempt");
    let settlement = lose_with(&mut session, &last).expect("given up");
    assert_eq!(settlement.answers[0].ticket, ticket);
    assert_eq!(settlement.outcome.unwrap_err().code(), Code::DeviceLost);
    assert_eq!(session.pending(), 0);
}

#[test]
fn what_waits_while_devices_are_lost_has_all_its_attempts() {
    let config = BatchConfig {
        max_in_flight: 1,
        ..config()
    };
    let mut session = Session::new(Frail::new(1 << 20), config).unwrap();
    put(&mut session, 1.0, 1);
    let mut sent = launch(&mut session);
    let waiting = put(&mut session, 5.0, 1);
    session.flush();
    while lose_with(&mut session, &sent).is_none() {
        sent = session.launch(NOW).expect("the first batch again");
    }
    for _ in 1..ATTEMPTS {
        sent = session.launch(NOW).expect("the one that waited");
        assert!(lose_with(&mut session, &sent).is_none());
    }
    let sent = session.launch(NOW).expect("sent again");
    assert_eq!(values(&land(&mut session, sent)), [(waiting, vec![6.0])]);
}

#[test]
fn what_is_behind_another_batch_has_all_its_attempts() {
    let mut session = session(1 << 20);
    let asked = [1.0, 2.0, 3.0].map(|value| {
        let ticket = put(&mut session, value, 1);
        (ticket, launch(&mut session))
    });
    let (tickets, mut flying): (Vec<Ticket>, Vec<Launch>) = asked.into_iter().unzip();
    for (value, ticket) in [2.0, 3.0, 4.0].into_iter().zip(tickets) {
        for _ in 1..ATTEMPTS {
            let loss = || Err(Error::DeviceLost("test".into()));
            for sent in &flying {
                let told = session.settle(sent.batch, sent.generation, loss());
                assert!(told.is_none(), "each is sent again");
            }
            session.replace_device(Frail::new(1 << 20), NOW);
            flying = std::iter::from_fn(|| session.launch(NOW)).collect();
        }
        let answered = land(&mut session, flying.remove(0));
        assert_eq!(values(&answered), [(ticket, vec![value])]);
    }
}

#[test]
fn nothing_of_another_life_of_the_device_settles_a_batch() {
    let mut session = session(1 << 20);
    let ticket = put(&mut session, 1.0, 1);
    let old = launch(&mut session);
    session.lose(old.generation);
    session.replace_device(Frail::new(1 << 20), NOW);
    let new = session.launch(NOW).expect("sent again");
    assert_eq!(old.batch, new.batch, "the same batch in another life");
    let stale = session.settle(
        old.batch,
        old.generation,
        Ok(Readback::Host(vec![9; 4].into())),
    );
    assert!(stale.is_none(), "sent to the first life");
    session.lose(old.generation);
    assert!(!session.is_lost(), "an old loss is no news");
    assert_eq!(values(&land(&mut session, new)), [(ticket, vec![2.0])]);
}

#[test]
fn disposal_gives_up_what_is_queued_and_in_flight() {
    let mut session = session(1 << 20);
    let flying = put(&mut session, 0.0, 1);
    let sent = launch(&mut session);
    let sealed = put(&mut session, 1.0, 1);
    session.flush();
    let open = put(&mut session, 2.0, 1);
    assert_eq!(session.dispose(), [flying, sealed, open]);
    assert!(session.devices.primary().destroyed);
    let (batch, generation) = (sent.batch, sent.generation);
    let outcome = pollster::block_on(flight(sent));
    let late = session.settle(batch, generation, outcome);
    assert!(late.is_none());
    assert_eq!(session.dispose(), []);
    assert_eq!(session.stats().rejected, 3);
}

#[test]
fn an_aborted_call_is_not_computed_or_its_result_is_dropped() {
    let mut session = session(1 << 20);
    let [queued, flying, kept] = [1.0, 2.0, 3.0].map(|value| put(&mut session, value, 1));
    assert!(session.abort(queued));
    assert!(!session.abort(queued), "only once");
    let sent = launch(&mut session);
    assert_eq!(tickets(last_sent(&session)), [flying, kept]);
    assert!(session.abort(flying));
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(kept, vec![4.0])]);
    assert!(!session.abort(kept), "settled");
}

#[test]
fn a_batch_given_up_whole_is_never_sent_and_leaves_its_memory() {
    let mut session = session(1 << 20);
    let open = put(&mut session, 1.0, 100);
    session.abort(open);
    assert!(super::open(&session).payload.arena.is_empty());
    let sealed = put(&mut session, 1.0, 100);
    session.flush();
    session.abort(sealed);
    assert!(session.launch(NOW).is_none());
    assert_eq!(session.due(NOW), Due::Idle);
    let next = put(&mut session, 5.0, 2);
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(next, vec![6.0; 2])]);
    assert_eq!(session.devices.primary().launches, 1);
}

#[test]
fn a_call_that_does_not_fit_takes_its_operands_to_the_next_batch() {
    // A batch may hold a quarter of a side: 256 bytes, or two calls of 96.
    let mut session = session(1024);
    let tickets: Vec<Ticket> = (0..5).map(|k| put(&mut session, k as f32, 8)).collect();
    session.flush();
    let mut answers = Vec::new();
    let mut sizes = Vec::new();
    while let Some(sent) = session.launch(NOW) {
        let settlement = land(&mut session, sent);
        sizes.push(settlement.answers.len());
        answers.extend(values(&settlement));
    }
    assert_eq!(sizes, [2, 2, 1]);
    for (k, (ticket, floats)) in answers.into_iter().enumerate() {
        assert_eq!((ticket, floats), (tickets[k], vec![k as f32 + 1.0; 8]));
    }
}

#[test]
fn a_refused_call_changes_nothing() {
    let mut session = session(1024);
    let kept = put(&mut session, 1.0, 2);
    let too_large = session.room(1 << 33).unwrap_err();
    assert_eq!(too_large.code(), Code::LimitExceeded);
    let recipe = session.recipe(ops::lerp(1, Timing::Call).unwrap());
    for (recipe, rows, scalar) in [
        (recipe, 0, 0.5),
        (recipe, 1, f32::NAN),
        (RecipeId(99), 1, 0.5),
    ] {
        let scalar = f32::to_bits(scalar);
        session.room(8).unwrap();
        let wrong = Submission {
            recipe,
            rows,
            scalar,
            key: None,
        };
        let error = session.submit(&wrong, NOW).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput, "{error}");
    }
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(kept, vec![2.0; 2])]);
    assert_eq!(session.stats().calls, 1);
}

#[test]
fn explained_calls_are_planned_and_never_sent() {
    let mut session = session(1 << 20);
    let before = put(&mut session, 1.0, 1);
    session.begin_explain();
    put(&mut session, 2.0, 3);
    put(&mut session, 3.0, 4);
    let plan = session.end_explain();
    assert!(
        plan.contains("dispatch lerp(s0, s0, t) -> s1, 2 calls, 7 rows"),
        "{plan}"
    );
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(before, vec![2.0])]);
    assert_eq!(session.devices.primary().launches, 1);
    assert_eq!(session.stats().calls, 1);
}

#[test]
fn memory_is_used_again() {
    let mut session = session(64 << 20);
    let held = |session: &Session<Frail>| {
        let arenas = session
            .arenas
            .spare()
            .iter()
            .chain([&open(session).payload.arena]);
        let sizes: Vec<u64> = arenas.map(Arena::capacity).collect();
        (sizes.len(), sizes.iter().sum::<u64>())
    };
    let round = |session: &mut Session<Frail>| {
        for k in 0..50 {
            put(session, 0.0, 10_000 + k);
        }
        let sent = launch(session);
        land(session, sent);
        held(session)
    };
    // Two arenas take turns, and each grows for what two of its batches needed.
    for _ in 0..3 {
        round(&mut session);
    }
    let warm = round(&mut session);
    for _ in 0..20 {
        assert_eq!(round(&mut session), warm);
    }
}

#[test]
fn a_call_is_no_larger_than_its_parts_in_lists_of_their_own() {
    // The planner's part of a call, its weight in the queue, and its ticket.
    let apart = size_of::<plan::Call>() + size_of::<(Ticket, Request)>() + size_of::<Ticket>();
    assert!(size_of::<payload::Call>() <= apart);
}
