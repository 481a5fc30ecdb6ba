//! Chains whose results are stored in resident tensors.

use super::*;
use crate::graph::chain::{Chain, Home, Norm, Store, StoreExtent};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, NodeId, UnaryFn};
use crate::tensor::DType;

const SIDE: u32 = 3;

fn square() -> Shape {
    Shape::new(&[SIDE, SIDE]).expect("a small shape")
}

/// What a step computes of resident tensors, and the numbers of the inputs that it is stored in.
pub(super) type Record = fn(&mut Chain, &[NodeId]) -> Result<Vec<(NodeId, usize)>, Error>;

/// Asks for a step over these tensors.
pub(super) fn step(session: &mut Session<Frail>, tensors: &[u32], record: Record) -> Ticket {
    let mut chain = Chain::default();
    let inputs: Vec<NodeId> = tensors
        .iter()
        .map(|_| chain.input(square(), DType::F32, Home::Resident))
        .collect::<Result<_, _>>()
        .expect("room");
    for (value, target) in record(&mut chain, &inputs).expect("a good chain") {
        let store = Store {
            target: inputs[target],
            extent: StoreExtent::Whole,
        };
        chain.store(value, store).expect("a good target");
    }
    let recipe = session.recipe(chain);
    let room = session.room(tensors.len() as u64 + 1).expect("room");
    room[..tensors.len()].copy_from_slice(tensors);
    room[tensors.len()] = 0;
    submit(session, recipe, 0).ticket
}

/// Asks for floats to be written from a place on.
pub(super) fn write(
    session: &mut Session<Frail>,
    tensor: u32,
    floats: &[f32],
    at: u32,
) -> Result<Ticket, Error> {
    let mut chain = Chain::default();
    let count = u32::try_from(floats.len()).expect("few");
    let shape = Shape::new(&[count]).expect("a small shape");
    let data = chain.input(shape, DType::F32, Home::Call).expect("room");
    let target = chain
        .input(square(), DType::F32, Home::Resident)
        .expect("room");
    let store = Store {
        target,
        extent: StoreExtent::Part,
    };
    chain.store(data, store).expect("a good target");
    let recipe = session.recipe(chain);
    let words = floats.len().next_multiple_of(4);
    let room = session.room(words as u64 + 2).expect("room");
    room[..floats.len()].copy_from_slice(bytemuck::cast_slice(floats));
    room[words..words + 2].copy_from_slice(&[tensor, at]);
    let submission = Submission {
        recipe,
        rows: 0,
        scalar: 0,
        key: None,
    };
    Ok(session.submit(&submission, NOW)?.ticket)
}

/// Asks for a tensor's floats.
pub(super) fn read(session: &mut Session<Frail>, tensor: u32) -> Ticket {
    let mut chain = Chain::default();
    let x = chain.input(square(), DType::F32, Home::Resident);
    chain.output(x.expect("room")).expect("a node of it");
    let recipe = session.recipe(chain);
    session.room(4).expect("room")[0] = tensor;
    submit(session, recipe, 0).ticket
}

fn tensor(session: &mut Session<Frail>, floats: &[f32]) -> u32 {
    let number = session.hold();
    session
        .fill(number, bytemuck::cast_slice(floats))
        .expect("room");
    number
}

/// The floats of one call among those that were sent together.
pub(super) fn floats_of(settlements: &[Settlement], ticket: Ticket) -> Vec<f32> {
    super::writing::result_of(settlements, ticket)
}

const A: [f32; 9] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
const B: [f32; 9] = [1.0, -1.0, 0.5, 2.0, -3.0, 0.25, 9.0, -8.0, 1.5];

#[test]
fn steps_of_one_batch_find_what_those_before_them_stored() {
    let transposed = |x: &[f32]| -> Vec<f32> { (0..9).map(|i| x[i % 3 * 3 + i / 3]).collect() };
    let sum = |x: &[f32], y: &[f32]| -> Vec<f32> { x.iter().zip(y).map(|(x, y)| x + y).collect() };
    let sum_ab: Record = |g, x| Ok(vec![(g.binary(BinaryFn::Add, x[0], x[1])?, 0)]);
    let turn: Record = |g, x| Ok(vec![(g.transpose(x[0], &[])?, 0)]);
    let swap: Record = |_, x| Ok(vec![(x[0], 1), (x[1], 0)]);
    let copy: Record = |g, x| Ok(vec![(g.unary(UnaryFn::Neg, x[0])?, 1)]);
    /// Name, step, how many steps, and what the tensors hold behind them.
    type Case<'a> = (&'a str, Record, usize, Vec<f32>, Vec<f32>);
    let cases: [Case<'_>; 5] = [
        ("in place", sum_ab, 1, sum(&A, &B), B.to_vec()),
        (
            "in place, thrice",
            sum_ab,
            3,
            sum(&sum(&sum(&A, &B), &B), &B),
            B.to_vec(),
        ),
        ("by scratch", turn, 1, transposed(&A), B.to_vec()),
        ("two at once", swap, 3, B.to_vec(), A.to_vec()),
        (
            "another tensor",
            copy,
            1,
            A.to_vec(),
            A.map(|x| -x).to_vec(),
        ),
    ];
    for (name, record, steps, a, b) in cases {
        let mut session = session(1 << 20);
        let tensors = [tensor(&mut session, &A), tensor(&mut session, &B)];
        let before = tensors.map(|tensor| read(&mut session, tensor));
        let stored: Vec<Ticket> = (0..steps)
            .map(|_| step(&mut session, &tensors, record))
            .collect();
        let after = tensors.map(|tensor| read(&mut session, tensor));
        let sent = launch(&mut session);
        let settlements = land_all(&mut session, sent);
        assert_eq!(session.stats().batches, 1, "{name}");
        for (ticket, expected) in before.iter().zip([&A, &B]) {
            assert_eq!(floats_of(&settlements, *ticket), expected, "{name}: before");
        }
        for (ticket, expected) in after.iter().zip([&a, &b]) {
            assert_eq!(floats_of(&settlements, *ticket), *expected, "{name}: after");
        }
        let stored: Vec<_> = stored.into_iter().map(|call| (call, Ok(()))).collect();
        assert_eq!(told(&mut session), stored, "{name}: nothing comes back");
    }
}

#[test]
fn a_computed_tensor_is_read_like_one_of_data() {
    let mut session = session(1 << 20);
    let x = tensor(&mut session, &A);
    let y = session.hold();
    session.allocate(y, 9).expect("room");
    let softmax: Record = |g, x| Ok(vec![(g.norm(Norm::Softmax, x[0], -1, None)?, 1)]);
    step(&mut session, &[x, y], softmax);
    let row = [0.090_030_57, 0.244_728_47, 0.665_240_94];
    let expected: Vec<f32> = row.iter().cycle().take(9).copied().collect();
    for _ in 0..2 {
        let own = read(&mut session, y);
        let sent = launch(&mut session);
        let settlements = land_all(&mut session, sent);
        let found = floats_of(&settlements, own);
        let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        assert!(off.fold(0.0, f32::max) < 1e-6, "{found:?}");
    }
}

#[test]
fn parts_are_written_beside_others() {
    let mut session = session(1 << 20);
    let x = tensor(&mut session, &A);
    for (at, floats) in [
        (7, vec![-7.0, -8.0]),
        (1, vec![-1.0, -2.0, -3.0, -4.0, -5.0]),
    ] {
        write(&mut session, x, &floats, at).expect("within");
    }
    let own = read(&mut session, x);
    write(&mut session, x, &[9.0], 0).expect("within");
    for at in [8, u32::MAX] {
        let refused = write(&mut session, x, &[1.0, 1.0], at);
        assert!(matches!(refused, Err(Error::InvalidInput(_))), "{at}");
    }
    let later = read(&mut session, x);
    let sent = launch(&mut session);
    let settlements = land_all(&mut session, sent);
    let mut expected = [0.0, -1.0, -2.0, -3.0, -4.0, -5.0, 6.0, -7.0, -8.0];
    assert_eq!(floats_of(&settlements, own), expected);
    expected[0] = 9.0;
    assert_eq!(floats_of(&settlements, later), expected);
}

#[test]
fn a_plan_shows_the_copy_of_a_result_by_scratch() {
    let mut session = session(1 << 20);
    let x = tensor(&mut session, &A);
    session.begin_explain();
    step(&mut session, &[x], |g, x| {
        Ok(vec![(g.transpose(x[0], &[])?, 0)])
    });
    let text = session.end_explain();
    let copied = "copy     (s2) -> tensor 0, 1 calls";
    assert!(text.contains(copied), "{text}");
}

#[test]
fn what_is_computed_again_after_a_loss_is_there_for_all_that_waits() {
    let mut session = session(1 << 20);
    let x = tensor(&mut session, &A);
    let y = session.hold();
    session.allocate(y, 9).expect("room");
    let negate: Record = |g, x| Ok(vec![(g.unary(UnaryFn::Neg, x[0])?, 1)]);
    step(&mut session, &[x, y], negate);
    let sent = launch(&mut session);
    land_all(&mut session, sent);

    // Calls that wait over the loss: a reading, and a write of what the tensor came from.
    let before = read(&mut session, y);
    write(&mut session, x, &[50.0], 0).expect("within");
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20), NOW);
    session.fill(x, bytemuck::cast_slice(&A)).expect("room");
    session.allocate(y, 9).expect("room");
    session.begin_restoration();
    step(&mut session, &[x, y], negate);
    session.end_restoration();
    assert_eq!(session.give_up_unreadable(), []);

    let after = read(&mut session, y);
    let last = read(&mut session, x);
    session.flush();
    let mut settlements = Vec::new();
    while let Some(sent) = session.launch(NOW) {
        settlements.extend(land_all(&mut session, sent));
    }
    let negated = A.map(|x| -x);
    assert_eq!(floats_of(&settlements, before), negated);
    assert_eq!(floats_of(&settlements, after), negated);
    assert_eq!(floats_of(&settlements, last)[0], 50.0);
}

#[test]
fn a_tensor_that_is_filled_from_a_snapshot_is_read_and_written_by_all_that_waits() {
    for is_snapshot in [true, false] {
        let mut session = session(1 << 20);
        let x = tensor(&mut session, &A);
        write(&mut session, x, &[50.0], 0).expect("within");
        let sent = launch(&mut session);
        land_all(&mut session, sent);

        let before = read(&mut session, x);
        write(&mut session, x, &[60.0], 1).expect("within");
        session.lose(session.generation());
        session.replace_device(Frail::new(1 << 20), NOW);
        session.fill(x, bytemuck::cast_slice(&A)).expect("room");
        if is_snapshot {
            session.heal(x);
        }
        assert_eq!(session.give_up_unreadable(), []);
        let after = read(&mut session, x);
        session.flush();
        let mut settlements = Vec::new();
        while let Some(sent) = session.launch(NOW) {
            settlements.extend(land_all(&mut session, sent));
        }
        if !is_snapshot {
            // What the page has is older than what calls wrote, and nobody was told.
            let answered = std::iter::from_fn(|| session.take_answered());
            let refused = answered.filter(|answered| answered.outcome.is_err());
            let tickets: Vec<_> = refused.flat_map(|refused| refused.tickets).collect();
            assert_eq!(tickets, [before, after]);
            continue;
        }
        assert_eq!(floats_of(&settlements, before), A);
        let mut expected = A;
        expected[1] = 60.0;
        assert_eq!(floats_of(&settlements, after), expected);
    }
}
