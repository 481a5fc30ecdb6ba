//! Buffers of the program's that a device cannot use: which calls of a batch are rejected, and
//! that all others are answered.

use std::collections::BTreeMap;

use super::*;
use crate::Code;
use crate::graph::UnaryFn;
use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::tensor::DType;

/// Elements of a tensor.
const ELEMENTS: u16 = 20;

/// What became of each call: its first float, or why there is none.
type Answers = BTreeMap<Ticket, Result<f32, Code>>;

/// A session whose GPU likes chunks of so many bytes, and its tensors: tensor `i` is full of
/// `i + 1`.
fn opened(target: u64) -> (Session<Frail>, [u32; 3]) {
    let device = Frail::in_chunks(1 << 20, target).gpu();
    let mut session = Session::new(device, config()).expect("valid settings");
    let tensors = [1.0_f32, 2.0, 3.0].map(|value| {
        let tensor = session.hold();
        let words = [value.to_bits(); ELEMENTS as usize];
        session.fill(tensor, &words).expect("held");
        tensor
    });
    (session, tensors)
}

/// Asks for a tensor's elements, each made positive.
fn read(session: &mut Session<Frail>, tensor: u32) -> Ticket {
    let shape = Shape::new(&[ELEMENTS.into()]).expect("a small shape");
    let mut chain = Chain::default();
    let x = chain.input(shape, DType::F32, Home::Resident);
    let x = chain.unary(UnaryFn::Abs, x.expect("room"));
    chain.output(x.expect("one tensor")).expect("a node");
    let recipe = session.recipe(chain);
    session.room(8).expect("room")[0] = tensor;
    submit(session, recipe, 0).ticket
}

/// Sends until nothing is left; how often batches were sent.
fn finish(session: &mut Session<Frail>, answers: &mut Answers) -> usize {
    session.flush();
    let mut launches = 0;
    while let Some(sent) = session.launch(NOW) {
        launches += 1;
        assert!(launches < 20, "the batch goes again and again");
        for flight in sent.flights {
            let outcome = pollster::block_on(flight);
            let Some(settlement) = session.settle(sent.batch, sent.generation, outcome) else {
                continue;
            };
            for answer in &settlement.answers {
                let told = match &settlement.outcome {
                    Ok(_) => Ok(floats(&settlement, answer)[0]),
                    Err(error) => Err(error.code()),
                };
                assert!(answers.insert(answer.ticket, told).is_none(), "once");
            }
        }
    }
    launches
}

#[test]
fn calls_that_name_an_unusable_buffer_are_rejected_and_no_others() {
    let rejected = Err(Code::InvalidInput);
    // Bytes of a chunk, the tensors that are unusable, and how often the batch is sent at most.
    let cases: [(u64, &[usize], usize); 6] = [
        (1 << 20, &[], 1),
        (1 << 20, &[0], 2),
        (1 << 20, &[0, 2], 2),
        (1 << 20, &[0, 1, 2], 2),
        (256, &[0], 10),
        (256, &[0, 1, 2], 10),
    ];
    for (target, unusable, most) in cases {
        let (mut session, tensors) = opened(target);
        session.devices.primary_mut().unusable = unusable.iter().map(|at| tensors[*at]).collect();
        let mut expected = Answers::new();
        for round in [10.0_f32, 20.0] {
            for (at, value) in [1.0, 2.0, 3.0].into_iter().enumerate() {
                let ticket = read(&mut session, tensors[at]);
                let is_refused = unusable.contains(&at);
                expected.insert(ticket, if is_refused { rejected } else { Ok(value) });
                expected.insert(put(&mut session, round, 3), Ok(round + 1.0));
            }
        }
        let mut answers = Answers::new();
        let launches = finish(&mut session, &mut answers);
        assert_eq!(answers, expected, "{unusable:?} in chunks of {target}");
        assert!(launches <= most, "{launches} launches");
        assert_eq!((session.pending(), loads(&session)), (0, 1));
        let stats = session.stats();
        assert_eq!(stats.rejected, 2 * unusable.len() as u64);
        assert_eq!(stats.settled, 12 - stats.rejected);
    }
}

#[test]
fn a_batch_of_nothing_else_is_rejected_at_once() {
    let (mut session, tensors) = opened(1 << 20);
    session.devices.primary_mut().unusable = vec![tensors[1]];
    let calls = [(); 3].map(|()| read(&mut session, tensors[1]));
    let mut answers = Answers::new();
    assert_eq!(finish(&mut session, &mut answers), 1);
    assert_eq!(
        answers,
        calls.map(|call| (call, Err(Code::InvalidInput))).into()
    );
    // The tensor of this number lies in another buffer from here on.
    session.devices.primary_mut().unusable.clear();
    let again = read(&mut session, tensors[1]);
    finish(&mut session, &mut answers);
    assert_eq!(answers[&again], Ok(2.0));
}

#[test]
fn a_device_that_is_lost_meanwhile_costs_nobody_an_answer() {
    let (mut session, tensors) = opened(1 << 20);
    session.devices.primary_mut().unusable = vec![tensors[0]];
    let refused = read(&mut session, tensors[0]);
    let other = put(&mut session, 1.0, 3);
    let sent = launch(&mut session);
    let settlement = land(&mut session, sent);
    assert_eq!(settlement.answers.len(), 1);
    assert_eq!(settlement.answers[0].ticket, refused);
    assert!(!settlement.is_last && settlement.outcome.is_err());
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20), NOW);
    assert!(session.give_up_unreadable().is_empty());
    let mut answers = Answers::new();
    finish(&mut session, &mut answers);
    assert_eq!(answers, [(other, Ok(2.0))].into());
}
