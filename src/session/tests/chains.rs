//! Chains through a session: operands, constants and resident tensors.

use super::*;
use crate::Code;
use crate::graph::chain::{Axes, Chain, Home, Norm, Reduction};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, UnaryFn};
use crate::tensor::DType;

/// relu(x) · c0 + y for `x` of so many elements; `y` lies at `home`.
fn chain(elements: u32, home: Home) -> Chain {
    let shape = Shape::new(&[elements]).expect("a small shape");
    let mut chain = Chain::default();
    let x = chain.input(shape, DType::F32, Home::Call).expect("room");
    let y = chain.input(shape, DType::F32, home).expect("room");
    let factor = chain.constant().expect("room");
    let x = chain.unary(UnaryFn::Relu, x).expect("one tensor");
    let x = chain
        .binary(BinaryFn::Mul, x, factor)
        .expect("they broadcast");
    let x = chain.binary(BinaryFn::Add, x, y).expect("they broadcast");
    chain.output(x).expect("a node of it");
    chain
}

/// Reads the chain relu(x) · c0 + y, with x counting up from -2.
fn read(session: &mut Session<Frail>, elements: u32, factor: f32, y: Result<f32, u32>) -> Accepted {
    let home = if y.is_ok() {
        Home::Call
    } else {
        Home::Resident
    };
    let recipe = session.recipe(chain(elements, home));
    let side = elements.next_multiple_of(4) as usize;
    let room: &mut [f32] =
        bytemuck::cast_slice_mut(session.room(3 * side as u64 + 8).expect("room"));
    for (x, i) in room[..elements as usize].iter_mut().zip(0_u16..) {
        *x = f32::from(i) - 2.0;
    }
    let mut next = side;
    if let Ok(y) = y {
        room[next..next + side].fill(y);
        next += side;
    }
    room[next] = factor;
    if let Err(tensor) = y {
        room[next + 4] = f32::from_bits(tensor);
    }
    submit(session, recipe, 0)
}

fn right(elements: u32, factor: f32, y: f32) -> Vec<f32> {
    let x = (0..elements).map(|i| i as f32 - 2.0);
    x.map(|x| x.max(0.0) * factor + y).collect()
}

#[test]
fn calls_of_any_length_share_a_dispatch() {
    let mut session = session(1 << 20);
    let lengths = [5, 64, 1, 33];
    let mut expected = Vec::new();
    for (length, factor) in lengths.into_iter().zip([2.0, 3.0, -1.0, 0.5]) {
        let ticket = read(&mut session, length, factor, Ok(1.0)).ticket;
        expected.push((ticket, right(length, factor, 1.0)));
    }
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), expected);

    session.begin_explain();
    for length in lengths {
        read(&mut session, length, 2.0, Ok(1.0));
    }
    let plan = session.end_explain();
    assert_eq!(plan.matches("dispatch").count(), 1, "{plan}");
    assert!(plan.contains("map((relu(in0) * c0) + in1)"), "{plan}");
}

#[test]
fn a_long_chain_is_cut_like_any_call() {
    let mut session = session(1 << 20);
    *session.devices.primary_mut() = Frail::in_chunks(1 << 20, 256);
    let ticket = read(&mut session, 1000, 2.0, Ok(1.0)).ticket;
    let sent = launch(&mut session);
    assert!(sent.flights.len() > 5, "{} chunks", sent.flights.len());
    let mut result = vec![0.0; 1000];
    for settlement in land_all(&mut session, sent) {
        let Ok(Readback::Host(words)) = &settlement.outcome else {
            panic!("not a result of a CPU: {:?}", settlement.outcome);
        };
        for answer in &settlement.answers {
            assert_eq!(answer.ticket, ticket);
            let (from, at) = (answer.span.at as usize, answer.at as usize);
            let floats = &words[from..from + answer.span.words as usize];
            result[at..at + floats.len()].copy_from_slice(bytemuck::cast_slice(floats));
        }
    }
    assert_eq!(result, right(1000, 2.0, 1.0));
}

#[test]
fn a_tensor_stays_until_nobody_reads_it() {
    let mut session = session(1 << 20);
    let tensor = session.hold();
    session.fill(tensor, &[5.0_f32.to_bits(); 7]).expect("held");
    let ticket = read(&mut session, 7, 2.0, Err(tensor)).ticket;
    session.release(tensor);
    assert_eq!(
        session.check_tensor(tensor).unwrap_err().code(),
        Code::InvalidInput
    );
    assert_ne!(session.hold(), tensor, "a call still reads it");
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(ticket, right(7, 2.0, 5.0))]);
    assert_eq!(session.hold(), tensor, "its number can be given again");
}

#[test]
fn what_went_with_the_device_is_filled_again_or_given_up() {
    let mut session = session(1 << 20);
    let tensors = [session.hold(), session.hold()];
    for tensor in tensors {
        session.fill(tensor, &[5.0_f32.to_bits(); 7]).expect("held");
    }
    let [kept, gone] = tensors.map(|tensor| read(&mut session, 7, 2.0, Err(tensor)).ticket);
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20), NOW);
    session
        .fill(tensors[0], &[6.0_f32.to_bits(); 7])
        .expect("held");
    assert_eq!(session.give_up_unreadable(), [gone]);
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(kept, right(7, 2.0, 6.0))]);
}

/// Reads layerNorm(x · w) of so many rows of ones, of four floats each.
fn read_normed(session: &mut Session<Frail>, rows: u32, epsilon: f32, w: u32) {
    let mut chain = Chain::default();
    let mut input = |dims: &[u32], home| {
        let shape = Shape::new(dims).expect("a small shape");
        chain.input(shape, DType::F32, home).expect("room")
    };
    let x = input(&[rows, 4], Home::Call);
    let matrix = input(&[4, 4], Home::Resident);
    let number = chain.constant().expect("room");
    let y = chain.matmul(x, matrix).expect("they suit");
    let y = chain.norm(Norm::Layer, y, -1, Some(number));
    chain.output(y.expect("rows")).expect("a node of it");
    let recipe = session.recipe(chain);
    let words = 4 * rows as usize;
    let room: &mut [f32] = bytemuck::cast_slice_mut(session.room(words as u64 + 8).expect("room"));
    room[..words].fill(1.0);
    room[words] = epsilon;
    room[words + 4] = f32::from_bits(w);
    submit(session, recipe, 0);
}

#[test]
fn calls_with_the_same_numbers_read_one_copy_and_are_one() {
    let mut session = session(1 << 20);
    let w = session.hold();
    session.fill(w, &[1.0_f32.to_bits(); 16]).expect("held");
    let mut plan = |epsilons: [f32; 4]| {
        session.begin_explain();
        for (rows, epsilon) in [3, 1, 40, 2].into_iter().zip(epsilons) {
            read_normed(&mut session, rows, epsilon, w);
        }
        session.end_explain()
    };
    // The constants lie between the rows of this call, and not between those of the next
    // calls.
    let same = plan([0.5; 4]);
    assert_eq!(same.matches(", 4 calls, ").count(), 1, "{same}");
    assert_eq!(
        same.matches(", 4 calls as 1, 46 threads").count(),
        1,
        "{same}"
    );
    let pairs = plan([0.5, 0.5, 0.25, 0.25]);
    assert_eq!(
        pairs.matches(", 4 calls as 2, 46 threads").count(),
        1,
        "{pairs}"
    );
    let other = plan([0.5, 0.25, 0.5, 0.25]);
    assert_eq!(other.matches(", 4 calls, 46 threads").count(), 1, "{other}");
}

#[test]
fn a_chain_of_more_threads_than_are_counted_is_refused() {
    let mut session = session(u64::MAX);
    let mut chain = Chain::default();
    let [a, b] = [&[1 << 26, 1, 1][..], &[1, 1]].map(|dims| {
        let shape = Shape::new(dims).expect("few elements");
        chain
            .input(shape, DType::F32, Home::Resident)
            .expect("room")
    });
    let products = chain.matmul(a, b).expect("they fit");
    let sum = chain.reduce(Reduction::Sum, products, Axes::ALL);
    chain.output(sum.expect("all of it")).expect("a node of it");
    let recipe = session.recipe(chain);
    let tensors = [session.hold(), session.hold()];
    session.room(4).expect("room")[..2].copy_from_slice(&tensors);
    let submission = Submission {
        recipe,
        rows: 0,
        scalar: 0,
        key: None,
    };
    let refused = session.submit(&submission, NOW).expect_err("too many");
    assert_eq!(refused.code(), Code::LimitExceeded);
}
