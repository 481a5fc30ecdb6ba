//! Calls that write to a tensor, those that read it, and the processor's copy of it.

use std::collections::VecDeque;

use super::*;
use crate::Code;
use crate::batch::{Capacity, Overflow};
use crate::graph::UnaryFn;
use crate::graph::chain::{Chain, Home};
use crate::graph::sampling::Sampling;
use crate::graph::shape::Shape;
use crate::ops::clips;
use crate::tensor::DType;

/// Seconds of the clip, whose value is the time.
const LAST: f32 = 65_536.0;

/// Where clips lie, and what is written: four floats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pose {
    pub(super) store: u32,
    pub(super) target: u32,
}

/// A clip and a tensor of zeros.
pub(super) fn pose(session: &mut Session<Frail>) -> Pose {
    let [store, target] = std::array::from_fn(|_| session.hold());
    let pose = Pose { store, target };
    fill(session, pose);
    pose
}

/// The data of both, which a device loses.
pub(super) fn fill(session: &mut Session<Frail>, pose: Pose) {
    let track = clips::Track {
        times: &[0.0, LAST],
        values: &[0.0, 0.0, 0.0, 0.0, LAST, LAST, LAST, LAST],
        kind: Default::default(),
        interpolation: Default::default(),
        easing: Default::default(),
    };
    let clip = clips::encode(&[track], None).expect("a clip");
    session.fill(pose.store, &clip.words).expect("held");
    session.fill(pose.target, &[0; 4]).expect("held");
}

/// Writes a value.
pub(super) fn write(
    session: &mut Session<Frail>,
    pose: Pose,
    value: f32,
    (key, engine): (Option<u32>, Option<Engine>),
) -> Result<Accepted, Error> {
    let recipe = session.sampling(Sampling {
        layers: 1,
        lanes: 1,
        width: 4,
        row: 1,
        is_stored: true,
    });
    let (time, weight) = (value.to_bits(), 1.0_f32.to_bits());
    let operands = [time, 0, 0, 0, 1, 1, 0, 4, 0, 0, 0, weight];
    let room = session.room(14)?;
    room[..12].copy_from_slice(&operands);
    room[12..14].copy_from_slice(&[pose.store, pose.target]);
    let submission = Submission {
        recipe,
        rows: 1,
        scalar: 0,
        key,
    };
    session.submit_to(engine, &submission, NOW)
}

/// Reads what is there.
pub(super) fn read(
    session: &mut Session<Frail>,
    pose: Pose,
    (key, engine): (Option<u32>, Option<Engine>),
) -> Result<Accepted, Error> {
    let shape = Shape::new(&[4]).expect("a small shape");
    let mut chain = Chain::default();
    let x = chain.input(shape, DType::F32, Home::Resident);
    let y = chain.unary(UnaryFn::Relu, x.expect("room"));
    chain.output(y.expect("one tensor")).expect("a node of it");
    let recipe = session.chain(chain);
    session.room(4)?[0] = pose.target;
    let submission = Submission {
        recipe,
        rows: 0,
        scalar: 0,
        key,
    };
    session.submit_to(engine, &submission, NOW)
}

fn written(session: &mut Session<Frail>, pose: Pose, value: f32) -> Ticket {
    let accepted = write(session, pose, value, (None, None));
    accepted.expect("taken").ticket
}

fn asked(session: &mut Session<Frail>, pose: Pose, engine: Option<Engine>) -> Ticket {
    let accepted = read(session, pose, (None, engine));
    accepted.expect("taken").ticket
}

/// A GPU and the processor beside it, which calls ask for.
fn both(gpu: Frail) -> Session<Frail> {
    let session = Session::new(gpu.gpu(), config()).expect("valid settings");
    session.beside(Frail::new(1 << 20), None)
}

/// What a call came to.
fn result_of(settlements: &[Settlement], ticket: Ticket) -> Vec<f32> {
    let mut found = Vec::new();
    for settlement in settlements {
        let own = |answer: &&Answer| answer.ticket == ticket;
        found.extend(
            settlement
                .answers
                .iter()
                .filter(own)
                .map(|answer| floats(settlement, answer)),
        );
    }
    assert_eq!(found.len(), 1, "answered once");
    found.remove(0)
}

#[test]
fn all_pieces_of_a_batch_read_what_it_writes() {
    // Cut for the sake of overlap, for want of memory, or not at all.
    let cases = [
        (Frail::in_pieces(1 << 20, 20_000), None, true),
        (Frail::new(1 << 20).gpu(), Some(1 << 20), true),
        (Frail::new(1 << 20).gpu(), None, false),
    ];
    for (device, memory_budget, is_cut) in cases {
        let limits = BatchConfig {
            memory_budget,
            ..config()
        };
        let mut session = Session::new(device, limits).expect("valid settings");
        let pose = pose(&mut session);
        let before = asked(&mut session, pose, None);
        let first = written(&mut session, pose, 3.0);
        const ROWS: [u32; 2] = [12_000, 7];
        let others = ROWS.map(|rows| put(&mut session, 1.0, rows));
        let second = written(&mut session, pose, 5.0);
        let behind = asked(&mut session, pose, None);

        let sent = launch(&mut session);
        let mut flights = VecDeque::from(sent.flights);
        let mut settlements = Vec::new();
        while let Some(flight) = flights.pop_front() {
            let outcome = pollster::block_on(flight);
            let settlement = session.settle(sent.batch, sent.generation, outcome);
            let mut settlement = settlement.expect("on its way");
            flights.extend(settlement.next.drain(..));
            settlements.push(settlement);
        }
        assert_eq!(session.stats().batches, 1, "the test needs one batch");
        assert_eq!(settlements.len() > 1, is_cut);
        for reader in [before, behind] {
            assert_eq!(result_of(&settlements, reader), [5.0; 4]);
        }
        for writer in [first, second] {
            assert_eq!(result_of(&settlements, writer), [0.0; 0]);
        }
        for (other, rows) in others.into_iter().zip(ROWS) {
            let mine = |settlement: &Settlement| {
                let own = settlement.answers.iter().filter(|a| a.ticket == other);
                own.map(|answer| answer.span.words).sum::<u32>()
            };
            let words: u32 = settlements.iter().map(mine).sum();
            assert_eq!(words, rows);
        }
        assert_eq!((session.pending(), loads(&session)), (0, 1));
    }
}

#[test]
fn a_loss_between_pieces_puts_the_calls_back_in_their_order() {
    for landed in 0..4 {
        let in_pieces = || Frail::in_pieces(1 << 20, 256);
        let mut session = Session::new(in_pieces(), config()).expect("valid settings");
        let pose = pose(&mut session);
        let mut calls = vec![
            put(&mut session, 1.0, 100),
            written(&mut session, pose, 3.0),
        ];
        calls.extend([asked(&mut session, pose, None), put(&mut session, 2.0, 8)]);
        calls.push(written(&mut session, pose, 5.0));
        let reader = calls[2];
        let sent = launch(&mut session);
        assert!(sent.flights.len() > landed, "the test needs more pieces");
        let mut answered = Vec::new();
        for (at, flight) in sent.flights.into_iter().enumerate() {
            let outcome = match at < landed {
                true => pollster::block_on(flight),
                false => Err(Error::DeviceLost("test".into())),
            };
            let settlement = session.settle(sent.batch, sent.generation, outcome);
            let answers = settlement.iter().flat_map(|settled| &settled.answers);
            let done = answers.filter(|answer| answer.is_last());
            answered.extend(done.map(|answer| answer.ticket));
            if session.is_lost() {
                break;
            }
        }
        session.replace_device(in_pieces());
        fill(&mut session, pose);
        let again = session.launch(NOW).expect("sent again");
        let left = calls.iter().filter(|call| !answered.contains(call));
        let left: Vec<Ticket> = left.copied().collect();
        let mut tickets = session.in_flight[0].load.tickets.clone();
        tickets.sort();
        assert_eq!(tickets, left, "{landed} pieces");
        let settlements = land_all(&mut session, again);
        // What was written is written again if nobody was told that it is.
        let is_written = !answered.contains(&calls[4]);
        if left.contains(&reader) {
            let value = if is_written { 5.0 } else { 0.0 };
            assert_eq!(result_of(&settlements, reader), [value; 4]);
        }
        let stats = session.stats();
        assert_eq!((stats.settled, stats.rejected), (5, 0), "{landed} pieces");
        assert_eq!((session.pending(), loads(&session)), (0, 1));
    }
}

#[test]
fn a_plan_shows_what_is_written_first() {
    let mut session =
        Session::new(Frail::in_pieces(1 << 20, 256), config()).expect("valid settings");
    let pose = pose(&mut session);
    session.begin_explain();
    put(&mut session, 1.0, 100);
    asked(&mut session, pose, None);
    written(&mut session, pose, 5.0);
    let text = session.end_explain();
    let pieces: Vec<&str> = text.split("piece ").collect();
    assert!(pieces.len() > 3, "{text}");
    let writes = |piece: &&str| piece.contains("clip");
    assert!(writes(&pieces[1]), "{text}");
    assert!(!pieces[2..].iter().any(writes), "{text}");
}

#[test]
fn only_results_of_the_gpu_prove_that_it_works() {
    let mut session = both(Frail::new(1 << 20));
    let pose = pose(&mut session);
    let proves = |session: &mut Session<Frail>, now: f64| {
        session.flush();
        let sent = session.launch(Millis(now)).expect("a batch to send");
        let settled = land_all(session, sent);
        settled
            .iter()
            .map(|part| part.proves)
            .collect::<Vec<bool>>()
    };
    // What the processor computes, and what is never read back.
    asked(&mut session, pose, Some(Engine::Cpu));
    assert_eq!(proves(&mut session, 0.0), [false]);
    written(&mut session, pose, 1.0);
    assert_eq!(proves(&mut session, 1000.0), [false]);
    put(&mut session, 1.0, 3);
    session.device.fault = Some(Error::Fatal("planned".into()));
    assert_eq!(proves(&mut session, 2000.0), [false]);
    asked(&mut session, pose, None);
    written(&mut session, pose, 2.0);
    assert_eq!(proves(&mut session, 3000.0), [true]);
    put(&mut session, 1.0, 3);
    put_on_both(&mut session);
    assert_eq!(proves(&mut session, 4000.0), [false, true]);
    // A page that only draws would give up its GPU after some losses, days apart.
    written(&mut session, pose, 1.0);
    assert_eq!(proves(&mut session, 60_000.0), [false]);
    written(&mut session, pose, 1.0);
    assert_eq!(proves(&mut session, 62_000.0), [true]);
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20).gpu());
    fill(&mut session, pose);
    written(&mut session, pose, 1.0);
    assert_eq!(proves(&mut session, 70_000.0), [false]);
}

fn put_on_both(session: &mut Session<Frail>) {
    ask_of(session, (1.0, 3), None, Some(Engine::Cpu)).expect("taken");
}

#[test]
fn the_processor_keeps_what_its_calls_still_read() {
    let mut session = both(Frail::new(1 << 24));
    let pose = pose(&mut session);
    let target = pose.target;
    let kept = |session: &Session<Frail>| {
        let beside = session.beside.as_ref().expect("there is one");
        beside.tensor_bytes(target)
    };
    let large = vec![2.0_f32.to_bits(); (1 << 18) + 1];
    session.fill(target, &[1.0_f32.to_bits(); 4]).expect("held");
    let call = asked(&mut session, pose, Some(Engine::Cpu));
    session.fill(target, &large).expect("held");
    let refused = read(&mut session, pose, (None, Some(Engine::Cpu)));
    assert_eq!(refused.unwrap_err().code(), Code::InvalidInput);
    let newer = asked(&mut session, pose, None);
    let sent = launch(&mut session);
    let settlements = land_all(&mut session, sent);
    assert_eq!(result_of(&settlements, call), [1.0; 4]);
    assert_eq!(result_of(&settlements, newer), [2.0; 4]);
    // Nobody reads it any more.
    session.fill(target, &large).expect("held");
    assert_eq!(kept(&session), 0);

    session.fill(target, &[1.0_f32.to_bits(); 4]).expect("held");
    asked(&mut session, pose, Some(Engine::Cpu));
    session.fill(target, &large).expect("held");
    session.release(target);
    assert!(kept(&session) > 0);
    let sent = launch(&mut session);
    assert!(land(&mut session, sent).outcome.is_ok());
    assert_eq!(kept(&session), 0);
}

/// Whether a call that reads the tensor may ask for the processor.
fn may_leave(session: &mut Session<Frail>, pose: Pose) -> bool {
    session.begin_explain();
    let asked = read(session, pose, (None, Some(Engine::Cpu)));
    session.end_explain();
    asked.is_ok()
}

#[test]
fn the_processors_copy_is_old_once_a_write_is_taken() {
    let one = BatchConfig {
        overflow: Overflow::Reject,
        queue_capacity: Capacity {
            calls: 1,
            bytes: 1 << 20,
        },
        ..config()
    };
    let session = Session::new(Frail::new(1 << 20).gpu(), one).expect("valid settings");
    let mut session = session.beside(Frail::new(1 << 20), None);
    let pose = pose(&mut session);
    // Neither a plan, nor what is refused.
    session.begin_explain();
    written(&mut session, pose, 1.0);
    session.end_explain();
    assert!(may_leave(&mut session, pose));
    put(&mut session, 1.0, 3);
    let refused = write(&mut session, pose, 1.0, (None, None)).unwrap_err();
    assert_eq!(refused.code(), Code::QueueFull);
    assert!(may_leave(&mut session, pose));
    let sent = launch(&mut session);
    land(&mut session, sent);
    let refused = write(&mut session, pose, 1.0, (None, Some(Engine::Cpu))).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidInput);
    assert!(may_leave(&mut session, pose));

    written(&mut session, pose, 1.0);
    assert!(!may_leave(&mut session, pose));
    // Nor is what the next device is filled with what the write makes of it.
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20).gpu());
    fill(&mut session, pose);
    let sent = launch(&mut session);
    land(&mut session, sent);
    assert!(!may_leave(&mut session, pose));
}

#[test]
fn a_plan_sends_what_reads_a_write_to_the_gpu() {
    let session = Session::new(Frail::new(1 << 20).gpu(), config()).expect("valid settings");
    let model = (Model([0.0; FACTS.len()]), f64::INFINITY);
    let mut session = session.beside(Frail::new(1 << 20), Some(model));
    let pose = pose(&mut session);
    session.begin_explain();
    asked(&mut session, pose, None);
    assert!(session.end_explain().starts_with("on the cpu\n"));
    session.begin_explain();
    written(&mut session, pose, 1.0);
    asked(&mut session, pose, None);
    let text = session.end_explain();
    assert!(!text.contains("on the cpu"), "{text}");
}

#[test]
fn what_waited_whole_goes_to_the_processor_that_takes_over() {
    let mut session = both(Frail::new(1 << 20).compiling());
    let pose = pose(&mut session);
    let before = asked(&mut session, pose, Some(Engine::Cpu));
    written(&mut session, pose, 1.0);
    session.flush();
    assert!(session.launch(NOW).is_none(), "both wait for a kernel");
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20));
    fill(&mut session, pose);
    let sent = session.launch(NOW).expect("sent again");
    let settlement = land(&mut session, sent);
    assert_eq!(result_of(&[settlement], before), [1.0; 4]);
    assert_eq!(session.pending(), 0);
}
