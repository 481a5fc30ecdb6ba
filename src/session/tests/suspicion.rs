//! Functions of callers over which devices are lost: who goes with whom afterwards, who is refused,
//! and who is not.

use std::sync::Arc;

use super::*;
use crate::Code;
use crate::graph::chain::{Chain, Home, Op};
use crate::graph::shape::Shape;
use crate::graph::{CallerFn, FnContent, FnForm, FnInput, Twin, ValueType};
use crate::tensor::DType;

/// A function that adds a number on the CPU.
pub(super) fn adds(name: &str, number: f32) -> Arc<CallerFn> {
    let twin = Arc::new(move |of: &crate::graph::Elements<'_>, to: &mut [f32]| {
        for (to, x) in to.iter_mut().zip(of.columns[0]) {
            *to = x + number;
        }
        Ok(())
    });
    define(name, Some(twin))
}

/// A function of an element, which this computes on the CPU.
pub(super) fn define(name: &str, twin: Option<Twin>) -> Arc<CallerFn> {
    let content = FnContent {
        name: name.into(),
        code: "of the test".into(),
        form: FnForm::Element,
        inputs: vec![FnInput {
            of: ValueType::F32,
            is_whole: false,
        }],
        result: ValueType::F32,
        told_by: None,
        max_passes: None,
        flops: None,
        params: Vec::new(),
    };
    CallerFn::define(content, |_| String::new(), twin)
}

/// Applies a function to a float that comes with the call.
pub(super) fn apply(session: &mut Session<Frail>, function: &Arc<CallerFn>, value: f32) -> Ticket {
    let mut chain = Chain::default();
    let shape = Shape::new(&[1]).expect("a small shape");
    let x = chain.input(shape, DType::F32, Home::Call).expect("room");
    let y = chain
        .apply(Op::Call(Arc::clone(function)), &[x])
        .expect("one value");
    chain.output(y).expect("a node of it");
    let recipe = session.recipe(chain);
    let room: &mut [f32] = bytemuck::cast_slice_mut(session.room(4).expect("room"));
    room[0] = value;
    submit(session, recipe, 0).ticket
}

fn gpu() -> Frail {
    Frail::new(1 << 20).gpu()
}

fn gpu_session() -> Session<Frail> {
    Session::new(gpu(), config()).expect("valid settings")
}

/// The device goes, and another one comes.
fn lose(session: &mut Session<Frail>) {
    session.lose(session.generation());
    while let Some(settlement) = session.refuse_chunk() {
        assert!(settlement.outcome.is_err());
    }
    session.remedy(NOW);
    session.replace_device(gpu(), NOW);
}

/// The tickets of the next batch that goes, which does not come back yet.
fn next(session: &mut Session<Frail>) -> (Launch, Vec<Ticket>) {
    let sent = session.launch(NOW).expect("a batch to send");
    let tickets = tickets(last_sent(session));
    (sent, tickets)
}

#[test]
fn after_a_loss_calls_under_suspicion_go_by_themselves() {
    let (f, g) = (adds("f", 1.0), adds("g", 2.0));
    let mut session = gpu_session();
    let of_f = apply(&mut session, &f, 1.0);
    let plain = put(&mut session, 3.0, 1);
    let of_g = apply(&mut session, &g, 1.0);
    let also_f = apply(&mut session, &f, 5.0);
    let sent = launch(&mut session);
    assert_eq!(tickets(last_sent(&session)), [of_f, plain, of_g, also_f]);
    drop(sent);
    lose(&mut session);
    let mut answers = Vec::new();
    for expected in [vec![plain], vec![of_f, also_f], vec![of_g]] {
        let (sent, tickets) = next(&mut session);
        assert_eq!(tickets, expected);
        for settlement in land_all(&mut session, sent) {
            answers.extend(values(&settlement));
        }
    }
    let right = [(plain, 4.0), (of_f, 2.0), (also_f, 6.0), (of_g, 3.0)];
    assert_eq!(answers, right.map(|(ticket, value)| (ticket, vec![value])));
    // Whoever was answered is under suspicion no more.
    let all = [
        apply(&mut session, &f, 1.0),
        put(&mut session, 3.0, 1),
        apply(&mut session, &g, 1.0),
    ];
    let sent = launch(&mut session);
    assert_eq!(tickets(last_sent(&session)), all);
    land_all(&mut session, sent);
}

#[test]
fn the_third_loss_refuses_a_functions_calls_and_no_others() {
    let (f, g) = (adds("bad", 1.0), adds("good", 2.0));
    let mut session = gpu_session();
    let of_f = apply(&mut session, &f, 1.0);
    let of_g = apply(&mut session, &g, 1.0);
    let plain = put(&mut session, 3.0, 1);
    drop(launch(&mut session));
    for _ in 0..3 {
        lose(&mut session);
        // Everybody but the one that brings devices down is answered.
        while let Some(sent) = session.launch(NOW) {
            if tickets(last_sent(&session)).contains(&of_f) {
                break;
            }
            land_all(&mut session, sent);
        }
    }
    // The batch that cost three devices was refused with the last of them.
    let later = apply(&mut session, &f, 1.0);
    let other = put(&mut session, 3.0, 1);
    let sent = launch(&mut session);
    assert_eq!(tickets(last_sent(&session)), [other]);
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(other, vec![4.0])]);
    assert_eq!(told(&mut session), [(later, Err(Code::DeviceLost))]);
    let _ = (of_g, plain);
}

/// A call that stores what a function gives of a tensor there, and one that reads the tensor.
fn storing_and_reading(session: &mut Session<Frail>, f: &Arc<CallerFn>) -> (RecipeId, RecipeId) {
    let shape = Shape::new(&[4]).expect("a small shape");
    let mut chain = Chain::default();
    let x = chain
        .input(shape, DType::F32, Home::Resident)
        .expect("room");
    let y = chain
        .apply(Op::Call(Arc::clone(f)), &[x])
        .expect("one value");
    let store = crate::graph::chain::Store {
        target: x,
        extent: crate::graph::chain::StoreExtent::Whole,
    };
    chain.store(y, store).expect("a target");
    let storing = session.recipe(chain);
    let mut reading = Chain::default();
    let x = reading
        .input(shape, DType::F32, Home::Resident)
        .expect("room");
    let y = reading
        .unary(crate::graph::UnaryFn::Neg, x)
        .expect("floats");
    reading.output(y).expect("a node of it");
    (storing, session.recipe(reading))
}

#[test]
fn a_call_that_reads_what_a_suspect_writes_stays_behind_it() {
    let f = adds("writer", 1.0);
    let mut session = gpu_session();
    let tensor = session.hold();
    session.fill(tensor, &[0; 4]).expect("held");
    let (recipe, read) = storing_and_reading(&mut session, &f);
    let name = |session: &mut Session<Frail>| session.room(8).expect("room")[0] = tensor;
    name(&mut session);
    let first = apply(&mut session, &f, 1.0);
    drop(launch(&mut session));
    lose(&mut session);
    session.fill(tensor, &[0; 4]).expect("held");
    // Under suspicion now: the write goes by itself, and then the reading.
    name(&mut session);
    let write = submit(&mut session, recipe, 0).ticket;
    name(&mut session);
    let reading = submit(&mut session, read, 0).ticket;
    session.flush();
    let mut order = Vec::new();
    let mut answers = Vec::new();
    while let Some(sent) = session.launch(NOW) {
        order.extend(tickets(last_sent(&session)));
        for settlement in land_all(&mut session, sent) {
            answers.extend(values(&settlement));
        }
    }
    assert_eq!(order, [first, write, reading]);
    let read = answers.iter().find(|(ticket, _)| *ticket == reading);
    assert_eq!(read, Some(&(reading, vec![-1.0; 4])));
}

#[test]
fn nobody_reads_a_lost_tensor_behind_a_write_that_is_refused() {
    let f = adds("writer", 1.0);
    let mut session = gpu_session();
    let [lost, other] = std::array::from_fn(|_| session.hold());
    session.fill(lost, &[0; 4]).expect("held");
    session.fill(other, &[0; 4]).expect("held");
    session.provenances.lose(lost, &Arc::from("planned"));
    for _ in 0..ATTEMPTS {
        session.blame.lost(&[f.number()]);
    }
    // The write does not read what it replaces.
    let shape = Shape::new(&[4]).expect("a small shape");
    let mut chain = Chain::default();
    let [x, target] = std::array::from_fn(|_| {
        let input = chain.input(shape, DType::F32, Home::Resident);
        input.expect("room")
    });
    let y = chain.apply(Op::Call(Arc::clone(&f)), &[x]);
    let store = crate::graph::chain::Store {
        target,
        extent: crate::graph::chain::StoreExtent::Whole,
    };
    chain.store(y.expect("one value"), store).expect("a target");
    let write = session.recipe(chain);
    let (_, read) = storing_and_reading(&mut session, &f);
    session.room(8).expect("room")[..2].copy_from_slice(&[other, lost]);
    let writer = submit(&mut session, write, 0).ticket;
    session.room(8).expect("room")[0] = lost;
    let reader = submit(&mut session, read, 0).ticket;
    session.flush();
    assert!(session.launch(NOW).is_none(), "nothing is left to be sent");
    let refused = Err(Code::DeviceLost);
    assert_eq!(told(&mut session), [(writer, refused), (reader, refused)]);
}

/// A call that reads a tensor of four floats, through a function or as it is, but for its sign.
fn reading(session: &mut Session<Frail>, f: Option<&Arc<CallerFn>>, tensor: u32) -> Ticket {
    let mut chain = Chain::default();
    let shape = Shape::new(&[4]).expect("a small shape");
    let x = chain.input(shape, DType::F32, Home::Resident);
    let op = match f {
        Some(f) => Op::Call(Arc::clone(f)),
        None => Op::Unary(crate::graph::UnaryFn::Neg),
    };
    let y = chain.apply(op, &[x.expect("room")]).expect("one value");
    chain.output(y).expect("a node of it");
    let recipe = session.recipe(chain);
    session.room(8).expect("room")[0] = tensor;
    submit(session, recipe, 0).ticket
}

/// Of calls of which some are under suspicion, none passes a write that waits for its kernel.
#[test]
fn what_calls_under_suspicion_leave_behind_stays_behind_parked_writes() {
    let [f, g, h] = [("f", 1.0), ("g", 2.0), ("h", 4.0)].map(|(name, by)| adds(name, by));
    for first in [Some(&f), None] {
        let mut session = Session::new(gpu().compiling(), config()).expect("valid settings");
        let tensor = session.hold();
        session.fill(tensor, &[0; 4]).expect("held");
        // All kernels but that of the write are compiled before.
        reading(&mut session, first, tensor);
        apply(&mut session, &g, 1.0);
        session.flush();
        assert!(session.launch(NOW).is_none(), "nothing is compiled");
        compile_all(&mut session);
        while let Some(sent) = session.launch(NOW) {
            land_all(&mut session, sent);
        }
        for function in [&f, &g] {
            session.blame.lost(&[function.number()]);
        }
        let (write, _) = storing_and_reading(&mut session, &h);
        session.room(8).expect("room")[0] = tensor;
        let write = submit(&mut session, write, 0).ticket;
        session.flush();
        assert!(session.launch(NOW).is_none(), "its kernel is compiled");
        let reader = reading(&mut session, first, tensor);
        let other = apply(&mut session, &g, 1.0);
        session.flush();
        assert!(session.launch(NOW).is_none(), "the write is ahead");
        compile_all(&mut session);
        let (mut order, mut answers) = (Vec::new(), Vec::new());
        while let Some(sent) = session.launch(NOW) {
            order.extend(tickets(last_sent(&session)));
            for settlement in land_all(&mut session, sent) {
                answers.extend(values(&settlement));
            }
        }
        assert_eq!(order, [write, reader, other]);
        let read = if first.is_some() { 5.0 } else { -4.0 };
        assert!(answers.contains(&(reader, vec![read; 4])), "{answers:?}");
    }
}

fn compile_all(session: &mut Session<Frail>) {
    for work in session.compiles() {
        let compiled = pollster::block_on(work);
        session.compiled(session.generation(), compiled, NOW);
    }
}
