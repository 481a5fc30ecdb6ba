//! Calls whose kernels are still being compiled.

mod behind_retries;
mod in_any_order;
mod of_lost_tensors;
mod of_tensors_alone;

use std::collections::BTreeMap;

use super::writing::{pose, read, write};
use super::*;
use crate::Code;
use crate::batch::{Capacity, Overflow};
use crate::device::Compile;

/// The kernels of calls: each gives `value + 1`.
const OPS: usize = 3;

fn compiling() -> Session<Frail> {
    let config = BatchConfig {
        max_in_flight: 2,
        ..config()
    };
    Session::new(Frail::new(1 << 20).compiling(), config).expect("valid settings")
}

/// The same with a device that passes for a GPU.
fn compiling_gpu() -> Session<Frail> {
    let device = Frail::new(1 << 20).gpu().compiling();
    Session::new(device, config()).expect("valid settings")
}

/// The structure of a call of `op`, and its operands of `rows` floats each.
fn structure(session: &mut Session<Frail>, op: usize) -> (RecipeId, usize) {
    let (asked, operands) = match op {
        0 => (ops::lerp(1, Timing::Call), 2),
        1 => (ops::bezier(1, Timing::Call), 4),
        _ => (ops::lerp(1, Timing::Call), 2),
    };
    if op < 2 {
        return (session.recipe(asked.expect("a width of 1")), operands);
    }
    let shape = crate::graph::shape::Shape::new(&[4]).expect("a small shape");
    let mut chain = crate::graph::chain::Chain::default();
    let home = crate::graph::chain::Home::Call;
    let mut input = || chain.input(shape, crate::tensor::DType::F32, home);
    let (x, y) = (input().expect("room"), input().expect("room"));
    let sum = chain.binary(crate::graph::BinaryFn::Maximum, x, y);
    let least = chain.unary(crate::graph::UnaryFn::Relu, sum.expect("they broadcast"));
    chain.output(least.expect("one tensor")).expect("a node");
    (session.recipe(chain), operands)
}

/// Asks for `op` on four floats.
fn call(session: &mut Session<Frail>, op: usize, value: f32, key: Option<u32>) -> Option<Accepted> {
    let (recipe, operands) = structure(session, op);
    let room: &mut [f32] = bytemuck::cast_slice_mut(session.room(16).expect("room"));
    for operand in 0..operands {
        let spread = match (op, operand) {
            (0, 0) => 0.0,
            (0, _) => 2.0,
            (1, _) => 1.0,
            (_, 0) => -1.0,
            (_, _) => 1.0,
        };
        room[operand * 4..operand * 4 + 4].fill(value + spread);
    }
    let submission = Submission {
        recipe,
        rows: if op < 2 { 4 } else { 0 },
        scalar: if op < 2 { 0.5_f32.to_bits() } else { 0 },
        key,
    };
    session.submit(&submission, NOW).ok()
}

fn made(session: &mut Session<Frail>, op: usize, value: f32) -> Ticket {
    call(session, op, value, None).expect("taken").ticket
}

/// Ends the next compilation.
fn compile(session: &mut Session<Frail>, works: &mut Vec<Compile>, failed: Option<Error>) {
    works.extend(session.compiles());
    let mut compiled = pollster::block_on(works.remove(0));
    if let Some(error) = failed {
        compiled.outcome = Err(error);
    }
    session.compiled(session.generation(), compiled, NOW);
}

#[test]
fn what_is_ready_goes_and_the_rest_when_it_is() {
    let (mut session, mut works) = (compiling(), Vec::new());
    // No kernel is ready: nothing goes, and each kernel is compiled once.
    let first = [0, 1, 0].map(|op| made(&mut session, op, 1.0));
    session.flush();
    assert!(session.launch(NOW).is_none());
    works.extend(session.compiles());
    assert_eq!(works.len(), 2, "lerp and bezier");
    assert_eq!((session.in_flight(), session.pending()), (0, 3));

    compile(&mut session, &mut works, None);
    assert_eq!(session.due(NOW), Due::Now);
    let sent = session.launch(NOW).expect("lerp is ready");
    assert!(session.launch(NOW).is_none(), "bezier is not");
    let later = [1, 0].map(|op| made(&mut session, op, 5.0));
    let settlement = land(&mut session, sent);
    let two = |value: f32| vec![value + 1.0; 4];
    assert_eq!(
        values(&settlement),
        [(first[0], two(1.0)), (first[2], two(1.0))]
    );

    // Calls that do not need bezier do not wait for it.
    session.flush();
    let sent = session.launch(NOW).expect("lerp is ready");
    let settlement = land(&mut session, sent);
    assert_eq!(values(&settlement), [(later[1], two(5.0))]);
    assert!(
        session.compiles().is_empty(),
        "both wait for one compilation"
    );

    compile(&mut session, &mut works, None);
    // The later batch has joined the first.
    let sent = session.launch(NOW).expect("bezier is ready");
    let settlement = land(&mut session, sent);
    assert_eq!(
        values(&settlement),
        [(first[1], two(1.0)), (later[0], two(5.0))]
    );
    assert_eq!((session.pending(), loads(&session)), (0, 1));
    // Whether calls left them or not, those were two batches.
    assert_eq!(session.stats().batches, 2);
}

#[test]
fn frames_that_wait_for_a_kernel_share_their_memory() {
    let (mut session, mut works) = (compiling(), Vec::new());
    for frame in 0..200_u16 {
        for op in [0, 1, 0, 2] {
            made(&mut session, op, frame.into());
        }
        session.flush();
        if frame == 0 {
            assert!(session.launch(NOW).is_none());
            compile(&mut session, &mut works, None);
        }
        let sent = session.launch(NOW).expect("lerp is ready");
        assert_eq!(land(&mut session, sent).answers.len(), 2);
    }
    assert_eq!((session.pending(), loads(&session)), (400, 2));
    assert!(held(&session) <= 5 * Arena::GROWTH);

    for (op, spread) in [(1, 1.0), (2, 1.0)] {
        compile(&mut session, &mut works, None);
        let mut frames = 0..200_u16;
        while let Some(sent) = session.launch(NOW) {
            for (_, floats) in values(&land(&mut session, sent)) {
                let frame = f32::from(frames.next().expect("one call a frame"));
                assert_eq!(floats, [frame + spread; 4], "op {op} of frame {frame}");
            }
        }
        assert!(frames.is_empty(), "{frames:?} of op {op} wait");
    }
    assert_eq!((session.pending(), loads(&session)), (0, 1));
}

#[test]
fn a_batch_that_waits_for_several_kernels_is_held_once() {
    const CALLS: usize = 90_000;
    let roomy = BatchConfig {
        queue_capacity: Capacity {
            calls: CALLS,
            bytes: 1 << 26,
        },
        ..config()
    };
    let mut session = Session::new(Frail::new(1 << 26).compiling(), roomy).unwrap();
    let mut works = Vec::new();
    for call in 0..CALLS {
        made(&mut session, call % OPS, 1.0);
    }
    let before = held(&session);
    assert!(before > 3 * Arena::GROWTH, "the test needs a large batch");
    session.flush();
    assert!(session.launch(NOW).is_none());
    let mut sent = Vec::new();
    for _ in 0..OPS {
        compile(&mut session, &mut works, None);
        sent.push(session.launch(NOW).expect("one more is ready"));
        // Segment tables are gone as soon as they are sent; a next batch may be open.
        assert!(held(&session) <= before + Arena::GROWTH);
    }
    let answers = sent.into_iter().map(|sent| {
        let settlement = land(&mut session, sent);
        let all = values(&settlement);
        assert!(all.iter().all(|(_, floats)| *floats == [2.0; 4]));
        all.len()
    });
    assert_eq!(answers.collect::<Vec<_>>(), [CALLS / OPS; OPS]);
    assert!(held(&session) <= 2 * Arena::GROWTH);
}

#[test]
fn a_kernel_that_does_not_compile_fails_its_own_calls() {
    let (mut session, mut works) = (compiling(), Vec::new());
    let [good, bad, other] = [0, 1, 2].map(|op| made(&mut session, op, 1.0));
    session.flush();
    assert!(session.launch(NOW).is_none());
    compile(&mut session, &mut works, None);
    compile(&mut session, &mut works, Some(Error::Shader("no".into())));
    compile(&mut session, &mut works, None);
    let mut answers = BTreeMap::new();
    while let Some(sent) = session.launch(NOW) {
        let settlement = land(&mut session, sent);
        let code = settlement.outcome.as_ref().err().map(Error::code);
        answers.extend(
            settlement
                .answers
                .iter()
                .map(|answer| (answer.ticket, code)),
        );
    }
    let shader = Some(Code::Shader);
    assert_eq!(
        answers,
        BTreeMap::from([(good, None), (bad, shader), (other, None)])
    );
    // The kernel is tried anew for the next call.
    made(&mut session, 1, 1.0);
    session.flush();
    assert!(session.launch(NOW).is_none());
    compile(&mut session, &mut works, None);
    let sent = session.launch(NOW).expect("it compiles now");
    assert!(land(&mut session, sent).outcome.is_ok());
}

/// Compiles the kernels of the batch that is due, and answers it.
fn warm(session: &mut Session<Frail>, works: &mut Vec<Compile>) {
    session.flush();
    assert!(session.launch(NOW).is_none());
    works.extend(session.compiles());
    while !works.is_empty() {
        compile(session, works, None);
    }
    let sent = session.launch(NOW).expect("it is ready");
    land(session, sent);
}

#[test]
fn what_reads_a_tensor_waits_for_older_batches_that_write_it() {
    let (mut session, mut works) = (compiling(), Vec::new());
    let pose = pose(&mut session);
    read(&mut session, pose, (None, None)).expect("taken");
    made(&mut session, 0, 1.0);
    warm(&mut session, &mut works);

    let writer = write(&mut session, pose, 7.0, (None, None)).expect("taken");
    session.flush();
    assert!(session.launch(NOW).is_none(), "its kernel compiles");
    let mut readers = Vec::new();
    for frame in 0..2_u8 {
        let reader = read(&mut session, pose, (None, None)).expect("taken");
        readers.push((reader.ticket, vec![7.0; 4]));
        let other = made(&mut session, 0, frame.into());
        session.flush();
        let sent = session.launch(NOW).expect("the other is ready");
        let settlement = land(&mut session, sent);
        assert_eq!(settlement.answers[0].ticket, other);
        assert_eq!(settlement.answers.len(), 1);
        assert!(session.launch(NOW).is_none());
    }
    compile(&mut session, &mut works, None);
    let sent = session.launch(NOW).expect("it is compiled");
    assert_eq!(told(&mut session), [(writer.ticket, Ok(()))]);
    assert!(land(&mut session, sent).answers.is_empty());
    let sent = session.launch(NOW).expect("what waited for it");
    assert_eq!(values(&land(&mut session, sent)), readers);
    assert_eq!((session.pending(), loads(&session)), (0, 1));
}

#[test]
fn what_reads_a_tensor_does_not_wait_for_a_write_that_was_given_up() {
    let (mut session, mut works) = (compiling(), Vec::new());
    let pose = pose(&mut session);
    read(&mut session, pose, (None, None)).expect("taken");
    warm(&mut session, &mut works);

    let writer = write(&mut session, pose, 7.0, (None, None)).expect("taken");
    // The other call waits as well, so that its batch stays.
    made(&mut session, 1, 1.0);
    session.flush();
    assert!(session.launch(NOW).is_none());
    assert!(session.abort(writer.ticket));
    let reader = read(&mut session, pose, (None, None)).expect("taken");
    session.flush();
    let sent = session.launch(NOW).expect("nobody writes");
    let expected = [(reader.ticket, vec![0.0; 4])];
    assert_eq!(values(&land(&mut session, sent)), expected);

    let writer = write(&mut session, pose, 7.0, (None, None)).expect("taken");
    session.flush();
    assert!(session.launch(NOW).is_none());
    let reader = read(&mut session, pose, (None, None)).expect("taken");
    session.flush();
    assert!(session.launch(NOW).is_none(), "somebody does");
    assert!(session.abort(writer.ticket));
    assert_eq!(session.due(NOW), Due::Now);
    let sent = session.launch(NOW).expect("nobody does any more");
    let expected = [(reader.ticket, vec![0.0; 4])];
    assert_eq!(values(&land(&mut session, sent)), expected);
}

#[test]
fn a_call_that_fails_does_not_wait_for_what_it_reads() {
    let (mut session, mut works) = (compiling(), Vec::new());
    let pose = pose(&mut session);
    let reader = read(&mut session, pose, (None, None)).expect("taken");
    let writer = write(&mut session, pose, 7.0, (None, None)).expect("taken");
    session.flush();
    assert!(session.launch(NOW).is_none());
    compile(&mut session, &mut works, Some(Error::Shader("no".into())));
    compile(&mut session, &mut works, None);
    let sent = session.launch(NOW).expect("it fails");
    let settlement = land(&mut session, sent);
    assert_eq!(settlement.outcome.unwrap_err().code(), Code::Shader);
    assert_eq!(settlement.answers[0].ticket, reader.ticket);
    let sent = session.launch(NOW).expect("it is ready");
    assert_eq!(told(&mut session), [(writer.ticket, Ok(()))]);
    assert!(land(&mut session, sent).outcome.is_ok());
    assert_eq!((session.pending(), loads(&session)), (0, 1));
}

#[test]
fn what_brings_devices_down_while_it_compiles_is_refused() {
    let mut session = compiling();
    let ticket = made(&mut session, 1, 1.0);
    session.flush();
    for _ in 1..ATTEMPTS {
        assert!(session.launch(NOW).is_none(), "it compiles first");
        assert_eq!(session.compiles().len(), 1);
        session.lose(session.generation());
        session.replace_device(Frail::new(1 << 20).compiling(), NOW);
    }
    session.devices.primary_mut().fault = Some(Error::DeviceLost("test".into()));
    let sent = session.launch(NOW).expect("whatever comes");
    let settlement = land(&mut session, sent);
    assert_eq!(settlement.answers[0].ticket, ticket);
    assert_eq!(settlement.outcome.unwrap_err().code(), Code::DeviceLost);
    assert_eq!(session.pending(), 0);
}

#[test]
fn a_warm_up_is_answered_when_its_kernels_are_compiled() {
    let (mut session, mut works) = (compiling(), Vec::new());
    session.begin_explain();
    for op in [0, 1, 0] {
        made(&mut session, op, 1.0);
    }
    let kernels = session.end_kernels();
    let ticket = session.warm_up(kernels);
    assert_eq!(session.due(NOW), Due::Now, "somebody is to begin");
    assert!(session.warmed(NOW).is_none() && session.launch(NOW).is_none());
    assert_eq!(session.due(NOW), Due::Idle);
    compile(&mut session, &mut works, None);
    assert!(session.warmed(NOW).is_none(), "bezier is not ready");

    // The next device begins anew.
    session.lose(session.generation());
    assert!(session.warmed(NOW).is_none());
    session.replace_device(Frail::new(1 << 20).compiling(), NOW);
    works.clear();
    assert!(session.warmed(NOW).is_none());
    works.extend(session.compiles());
    assert_eq!(works.len(), 2);
    // Calls wait for the same compilations.
    let lerp = made(&mut session, 0, 1.0);
    session.flush();
    assert!(session.launch(NOW).is_none() && session.compiles().is_empty());
    compile(&mut session, &mut works, None);
    compile(&mut session, &mut works, Some(Error::Shader("no".into())));
    let (answered, outcome) = session.warmed(NOW).expect("it is over");
    assert_eq!(
        (answered, outcome.unwrap_err().code()),
        (ticket, Code::Shader)
    );
    assert!(session.warmed(NOW).is_none(), "answered once");
    let sent = session.launch(NOW).expect("lerp is ready");
    assert_eq!(land(&mut session, sent).answers[0].ticket, lerp);
    // A warm-up counts nowhere, and ends with the session.
    let stats = session.stats();
    assert_eq!((stats.calls, stats.settled, stats.rejected), (1, 1, 0));
    let last = session.warm_up(Kernels::default());
    assert_eq!(session.dispose(), [last]);
    assert_eq!(session.stats().rejected, 0);
}
