//! Calls that read resident tensors alone, and so have no words of operands: a batch that
//! such calls left for another one shares an arena without memory.

use super::*;
use crate::graph::UnaryFn;
use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::tensor::DType;

/// Asks for a function of a tensor of so many elements.
fn ask(session: &mut Session<Frail>, function: UnaryFn, tensor: u32, elements: u32) -> Ticket {
    let shape = Shape::new(&[elements]).expect("a small shape");
    let mut chain = Chain::default();
    let x = chain.input(shape, DType::F32, Home::Resident);
    let y = chain.unary(function, x.expect("room")).expect("one tensor");
    chain.output(y).expect("a node");
    let recipe = session.recipe(chain);
    session.room(4).expect("room")[0] = tensor;
    submit(session, recipe, 0).ticket
}

#[test]
fn they_go_one_kernel_after_another() {
    let (mut session, mut works) = (compiling(), Vec::new());
    let tensor = session.hold();
    let words = [-2.0, -1.0, 1.0, 2.0].map(f32::to_bits);
    session.fill(tensor, &words).expect("held");
    let asked = [
        (UnaryFn::Relu, [0.0, 0.0, 1.0, 2.0]),
        (UnaryFn::Neg, [2.0, 1.0, -1.0, -2.0]),
        (UnaryFn::Abs, [2.0, 1.0, 1.0, 2.0]),
    ];
    let expected = asked.map(|(function, floats)| {
        let ticket = ask(&mut session, function, tensor, 4);
        (ticket, floats.to_vec())
    });
    session.flush();
    assert!(session.launch(NOW).is_none(), "nothing is ready");
    for one in expected {
        compile(&mut session, &mut works, None);
        let sent = session.launch(NOW).expect("one more is ready");
        assert_eq!(values(&land(&mut session, sent)), [one]);
    }
    assert_eq!((session.pending(), loads(&session)), (0, 1));
}
