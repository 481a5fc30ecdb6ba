//! A CPU share that the CPU beside a GPU has no memory for at once.

use super::*;
use crate::graph::chain::{Axes, Chain, Home, Reduction};
use crate::graph::shape::Shape;
use crate::tensor::DType;

/// Bytes of a chunk that the CPU has memory for: a little more than an eighth of the live
/// bytes of a budget of 1 MiB.
const CAPACITY: u64 = 112 << 10;

fn scarce() -> Session<Frail> {
    let config = BatchConfig {
        memory_budget: Some(1 << 20),
        ..config()
    };
    let gpu = Frail::new(1 << 24).gpu();
    let session = Session::new(gpu, config).expect("valid settings");
    let cpu = Frail {
        capacity: CAPACITY,
        ..Frail::new(1 << 24)
    };
    session.with_companion(cpu, None)
}

/// Asks the CPU for the sum of a product of matrices: 4096 times the value.
fn sum_of_products(session: &mut Session<Frail>, value: f32) -> Ticket {
    let mut chain = Chain::default();
    let inputs = [[64, 1], [1, 64]].map(|dims| {
        let shape = Shape::new(&dims).expect("a small shape");
        chain.input(shape, DType::F32, Home::Call).expect("room")
    });
    let product = chain.matmul(inputs[0], inputs[1]).expect("they fit");
    let sum = chain.reduce(Reduction::Sum, product, Axes::of(&[0, 1]));
    chain.output(sum.expect("two axes")).expect("a node");
    let recipe = session.recipe(chain);
    let room: &mut [f32] = bytemuck::cast_slice_mut(session.room(128).expect("room"));
    room[..64].fill(value);
    room[64..128].fill(1.0);
    let submission = Submission {
        recipe,
        rows: 0,
        scalar: 0,
        key: None,
    };
    let accepted = session.submit_to(Some(Engine::Cpu), &submission, NOW);
    accepted.expect("taken").ticket
}

fn chunks(session: &Session<Frail>) -> usize {
    session.devices.companion().expect("there is one").launches
}

#[test]
fn it_goes_in_chunks_and_is_answered_as_one() {
    let mut session = scarce();
    // Each call needs 16 KiB between its stages.
    let calls = (0..40_u16).map(f32::from);
    let mut expected: Vec<(Ticket, Vec<f32>)> = calls
        .map(|value| {
            let ticket = sum_of_products(&mut session, value);
            (ticket, vec![value * 4096.0])
        })
        .collect();
    // Some calls are of another structure.
    for rows in [1, 7] {
        let call = ask_of(&mut session, (1.0, rows), None, Some(Engine::Cpu));
        expected.push((call.expect("taken").ticket, vec![2.0; rows as usize]));
    }
    let sent = launch(&mut session);
    assert!(sent.has_cpu_share);
    let mut answered = values(&land(&mut session, sent));
    for (_, floats) in &mut answered[..40] {
        floats.truncate(1); // A chain's results are rounded up to four.
    }
    assert_eq!(answered, expected);
    assert!(chunks(&session) >= 6, "{} chunks", chunks(&session));
    assert_eq!((session.pending(), session.in_flight()), (0, 0));
}

#[test]
fn a_call_is_cut_by_rows_and_answered_whole() {
    let mut session = scarce();
    let call = ask_of(&mut session, (1.0, 30_001), None, Some(Engine::Cpu));
    let ticket = call.expect("taken").ticket;
    let sent = launch(&mut session);
    let answered = values(&land(&mut session, sent));
    assert!(answered == [(ticket, vec![2.0; 30_001])]);
    assert!(chunks(&session) >= 4, "{} chunks", chunks(&session));
}

#[test]
fn a_chunk_that_fails_fails_the_part() {
    let mut session = scarce();
    for _ in 0..20 {
        sum_of_products(&mut session, 1.0);
    }
    let beside = session.devices.companion_mut().expect("there is one");
    beside.fault = Some(Error::Fatal("planned".into()));
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    assert!(settlement.outcome.is_err());
    assert_eq!((session.pending(), session.stats().rejected), (0, 20));
}

#[test]
fn its_plan_has_the_same_chunks() {
    let mut session = scarce();
    session.begin_explain();
    for _ in 0..40 {
        sum_of_products(&mut session, 1.0);
    }
    let text = session.end_explain();
    assert!(text.starts_with("on the cpu\npiece 1 of "), "{text}");
    for _ in 0..40 {
        sum_of_products(&mut session, 1.0);
    }
    let sent = launch(&mut session);
    land(&mut session, sent);
    assert_eq!(text.matches("piece ").count(), chunks(&session), "{text}");
}
