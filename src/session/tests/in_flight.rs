//! Calls that wait and batches in flight: how soon a flush sends them, what memory they
//! hold, and when a device counts as silent.

use super::*;
use crate::Code;
use crate::batch::{Capacity, Overflow};
use crate::graph::chain::{Axes, Chain, Home, Reduction};
use crate::graph::sampling::Sampling;
use crate::graph::shape::Shape;
use crate::tensor::DType;

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

/// Asks for a sampling without lanes, which writes to a tensor.
fn put_stored(session: &mut Session<Frail>) -> Ticket {
    let sampling = Sampling {
        layers: 1,
        lanes: 0,
        width: 4,
        row: 1,
        is_stored: true,
    };
    let recipe = session.recipe(sampling);
    let names = [0; 2].map(|_| {
        let tensor = session.hold();
        session.fill(tensor, &[0; 4]).expect("held");
        tensor
    });
    let words = 4 + sampling.header().next_multiple_of(4) as usize;
    let room = session.room(words as u64 + 4).expect("room");
    room[..words].fill(0);
    room[words..words + 2].copy_from_slice(&names);
    submit(session, recipe, 1).ticket
}

/// Lands the next flight of a batch at this moment.
fn land_at(session: &mut Session<Frail>, sent: &mut Launch, now: f64) {
    let outcome = pollster::block_on(sent.flights.remove(0));
    settle_at(session, sent, now, outcome);
}

fn settle_at(
    session: &mut Session<Frail>,
    sent: &Launch,
    now: f64,
    outcome: Result<Readback, Error>,
) {
    session.note_landing(
        LaunchId {
            batch: sent.batch,
            generation: sent.generation,
        },
        &outcome,
        Millis(now),
    );
    let settlement = session.settle(sent.batch, sent.generation, outcome);
    assert!(settlement.is_some(), "on its way");
}

#[test]
fn a_device_owes_an_answer_since_it_gave_the_last() {
    let device = Frail::in_chunks(1 << 20, 256).gpu();
    let session = Session::new(device, config()).expect("valid settings");
    let mut session = session.with_companion(Frail::new(1 << 20), None);
    let owes = |session: &Session<Frail>| session.oldest_in_flight().map(|since| since.0);
    let mut sent = [1, 200, 1].map(|rows| {
        put(&mut session, 1.0, rows);
        launch(&mut session)
    });
    assert!(
        sent[1].flights.len() >= 3,
        "{} chunks",
        sent[1].flights.len()
    );
    assert_eq!(owes(&session), Some(0.0));
    // Each chunk of each batch is an answer.
    land_at(&mut session, &mut sent[0], 4000.0);
    assert_eq!(owes(&session), Some(4000.0));
    land_at(&mut session, &mut sent[1], 8000.0);
    assert_eq!(owes(&session), Some(8000.0));
    // No answer: a failure, a chunk that nothing is read of, and one of the CPU.
    drop(pollster::block_on(sent[1].flights.remove(0)));
    let fails = Err(Error::Fatal("test".into()));
    settle_at(&mut session, &sent[1], 9000.0, fails);
    put_stored(&mut session);
    let mut stored = launch(&mut session);
    land_at(&mut session, &mut stored, 10_000.0);
    ask_of(&mut session, (1.0, 1), None, Some(Engine::Cpu)).expect("taken");
    let mut aside = launch(&mut session);
    assert!(aside.has_cpu_share && aside.flights.is_empty());
    aside.flights.push(session.compute(aside.batch));
    land_at(&mut session, &mut aside, 11_000.0);
    assert_eq!(owes(&session), Some(8000.0));
    // A batch that is sent later is owed since then.
    for mut sent in sent.into_iter().skip(1) {
        while !sent.flights.is_empty() {
            land_at(&mut session, &mut sent, 12_000.0);
        }
    }
    put(&mut session, 1.0, 1);
    session.flush();
    session.launch(Millis(20_000.0)).expect("a batch to send");
    assert_eq!(owes(&session), Some(20_000.0));
}

#[test]
fn nothing_is_owed_to_calls_that_wait_for_room_alone() {
    let device = Frail::in_chunks(1 << 20, 256).gpu().compiling();
    let config = BatchConfig {
        max_pieces_in_flight: Some(1),
        ..config()
    };
    let mut session = Session::new(device, config).expect("valid settings");
    let compile = |session: &mut Session<Frail>, now: f64| {
        for compiled in session.compiles() {
            let compiled = pollster::block_on(compiled);
            session.compiled(session.generation(), compiled, Millis(now));
        }
    };
    let owes = |session: &Session<Frail>| session.oldest_in_flight().map(|since| since.0);
    put(&mut session, 1.0, 200);
    session.flush();
    assert!(session.launch(NOW).is_none(), "its kernel is compiled");
    assert_eq!(owes(&session), Some(0.0));
    compile(&mut session, 1.0);
    let mut warm = session.launch(Millis(1.0)).expect("it can go");
    drain(&mut session, &mut warm, &[1.0]);
    // A large call that can go, and a small one of another kernel.
    let large = put(&mut session, 1.0, 200);
    put_stored(&mut session);
    session.flush();
    let mut sent = session.launch(Millis(2.0)).expect("the large one");
    compile(&mut session, 300.0);
    assert_eq!(owes(&session), Some(2.0));
    assert!(session.launch(Millis(300.0)).is_none(), "held back");
    let answered = drain(&mut session, &mut sent, &[4000.0, 8000.0, 12_000.0]);
    assert_eq!(answered, [large]);
    let mut sent = session.launch(Millis(12_000.0)).expect("the small one");
    drain(&mut session, &mut sent, &[12_001.0]);
    assert_eq!(owes(&session), None);
}

/// Lands all chunks of a batch, one at each of these moments and the rest at the last. Each
/// moment is that since when the device owes an answer, until the last chunk. Returns who
/// was answered.
fn drain(session: &mut Session<Frail>, sent: &mut Launch, moments: &[f64]) -> Vec<Ticket> {
    let mut answered = Vec::new();
    for at in 0.. {
        let now = moments[at.min(moments.len() - 1)];
        let outcome = pollster::block_on(sent.flights.remove(0));
        session.note_landing(
            LaunchId {
                batch: sent.batch,
                generation: sent.generation,
            },
            &outcome,
            Millis(now),
        );
        let settled = session.settle(sent.batch, sent.generation, outcome);
        let settled = settled.expect("on its way");
        let last = settled.answers.iter().filter(|answer| answer.is_last());
        answered.extend(last.map(|answer| answer.ticket));
        sent.flights.extend(settled.next);
        if settled.is_last {
            return answered;
        }
        assert_eq!(session.oldest_in_flight(), Some(Millis(now)));
    }
    unreachable!("a batch ends");
}

#[test]
fn operands_that_memory_has_no_room_for_are_refused() {
    let mut session = session(u64::MAX);
    let first = put(&mut session, 1.0, 3);
    let room = session.free_room().len();
    let refused = session
        .room(u32::MAX.into())
        .expect_err("no address is left");
    assert_eq!(refused.code(), Code::OutOfMemory);
    assert_eq!(session.free_room().len(), room);
    let second = put(&mut session, 2.0, 1);
    let sent = launch(&mut session);
    let expected = [(first, vec![2.0; 3]), (second, vec![3.0])];
    assert_eq!(values(&land(&mut session, sent)), expected);
}

#[test]
fn operands_that_go_to_the_next_batch_are_held_once() {
    const LARGE: u32 = 2 * Arena::GROWTH;
    for rows in [LARGE, 8] {
        let limits = BatchConfig {
            max_batch_size: Some(LARGE.into()),
            queue_capacity: Capacity {
                calls: LARGE as usize,
                ..config().queue_capacity
            },
            ..config()
        };
        let mut session = Session::new(Frail::new(1 << 28), limits).expect("valid settings");
        let first = put(&mut session, 1.0, LARGE - 4);
        let second = put(&mut session, 2.0, rows);
        let rest = match rows {
            8 => Arena::GROWTH,
            rows => 2 * rows,
        };
        assert_eq!(held(&session), 2 * LARGE + rest, "{rows} rows");
        let sent = [(); 2].map(|()| launch(&mut session));
        let expected = [(first, vec![2.0]), (second, vec![3.0])];
        for (sent, expected) in sent.into_iter().zip(expected) {
            let answers = values(&land(&mut session, sent));
            assert_eq!((answers[0].0, answers[0].1[0]), (expected.0, expected.1[0]));
        }
    }
}

#[test]
fn what_was_given_up_is_not_held_until_the_batch_goes() {
    const ROWS: u32 = Arena::GROWTH / 2;
    for is_superseded in [true, false] {
        let limits = BatchConfig {
            overflow: Overflow::Latest,
            queue_capacity: Capacity {
                calls: if is_superseded { 2 } else { 100 },
                bytes: 1 << 30,
            },
            ..config()
        };
        let mut session = Session::new(Frail::new(1 << 28), limits).expect("valid settings");
        let kept = put(&mut session, 1.0, 5);
        let mut last = kept;
        for number in 2..30_u8 {
            let accepted = ask(&mut session, number.into(), ROWS, Some(7)).expect("taken");
            if last != kept {
                assert_eq!(accepted.superseded, is_superseded.then_some(last));
                assert_eq!(session.abort(last), !is_superseded);
            }
            last = accepted.ticket;
            // Up to three batches with the oldest, as many to come, and what is spare.
            assert!(held(&session) <= 8 * Arena::GROWTH, "{}", held(&session));
        }
        let sent = launch(&mut session);
        let answers = values(&land(&mut session, sent));
        assert_eq!(answers[0], (kept, vec![2.0; 5]));
        assert_eq!((answers[1].0, answers[1].1[0]), (last, 30.0));
        assert_eq!((answers.len(), session.pending()), (2, 0));
    }
}

/// Asks for the sum of a tensor of four floats.
fn put_sum(session: &mut Session<Frail>, recipe: RecipeId, tensor: u32) -> Ticket {
    session.room(4).expect("room")[0] = tensor;
    submit(session, recipe, 0).ticket
}

#[test]
fn calls_without_operands_that_were_given_up_leave_their_tensors() {
    let mut session = session(1 << 24);
    let mut chain = Chain::default();
    let shape = Shape::new(&[4]).expect("a shape");
    let x = chain
        .input(shape, DType::F32, Home::Resident)
        .expect("room");
    let sum = chain.reduce(Reduction::Sum, x, Axes::ALL);
    chain.output(sum.expect("all of it")).expect("a node of it");
    let recipe = session.recipe(chain);
    let [kept, gone] = [1.0_f32, 2.0].map(|value| {
        let tensor = session.hold();
        session.fill(tensor, &[value.to_bits(); 4]).expect("held");
        tensor
    });
    let first = put_sum(&mut session, recipe, kept);
    let given_up: Vec<Ticket> = (0..20_000)
        .map(|_| put_sum(&mut session, recipe, gone))
        .collect();
    let last = put_sum(&mut session, recipe, kept);
    session.release(gone);
    for ticket in given_up {
        assert!(session.abort(ticket));
    }
    assert!(
        open(&session).calls().len() < 10_000,
        "{}",
        open(&session).calls().len()
    );
    assert!(open(&session).payload.read.len() < 10_000);
    let sent = launch(&mut session);
    let answers = values(&land(&mut session, sent));
    let sums = answers.iter().map(|(ticket, sum)| (*ticket, sum[0]));
    assert!(sums.eq([(first, 4.0), (last, 4.0)]));
    assert_eq!(
        session.devices.primary().tensor_bytes(gone),
        0,
        "nobody reads it"
    );
    assert_eq!(session.devices.primary().tensor_bytes(kept), 16);
}
