//! Calls that write to a tensor, and calls that read it.

use std::collections::VecDeque;

use super::*;
use crate::graph::UnaryFn;
use crate::graph::chain::{Chain, Home};
use crate::graph::sampling::Sampling;
use crate::graph::shape::Shape;
use crate::ops::clips;
use crate::tensor::DType;

/// Seconds of the clip, whose value is the time.
const LAST: f32 = 65_536.0;

/// The tensor that clips lie in, and the one that is written: four floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pose {
    pub(crate) store: u32,
    pub(crate) target: u32,
}

/// A clip and a tensor of zeros.
pub(crate) fn pose(session: &mut Session<Frail>) -> Pose {
    let [store, target] = std::array::from_fn(|_| session.hold());
    let pose = Pose { store, target };
    fill(session, pose);
    pose
}

/// Fills both tensors, whose words a lost device takes along.
pub(crate) fn fill(session: &mut Session<Frail>, pose: Pose) {
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

/// Asks for a call that writes a value to the target.
pub(crate) fn write(
    session: &mut Session<Frail>,
    pose: Pose,
    value: f32,
    (key, engine): (Option<u32>, Option<Engine>),
) -> Result<Accepted, Error> {
    let recipe = session.recipe(Sampling {
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
    session.submit_with(ASKED.get(), engine, &submission, NOW)
}

/// Asks for a call that reads the target.
pub(crate) fn read(
    session: &mut Session<Frail>,
    pose: Pose,
    (key, engine): (Option<u32>, Option<Engine>),
) -> Result<Accepted, Error> {
    let shape = Shape::new(&[4]).expect("a small shape");
    let mut chain = Chain::default();
    let x = chain.input(shape, DType::F32, Home::Resident);
    let y = chain.unary(UnaryFn::Relu, x.expect("room"));
    chain.output(y.expect("one tensor")).expect("a node of it");
    let recipe = session.recipe(chain);
    session.room(4)?[0] = pose.target;
    let submission = Submission {
        recipe,
        rows: 0,
        scalar: 0,
        key,
    };
    session.submit_with(ASKED.get(), engine, &submission, NOW)
}

pub(super) fn written(session: &mut Session<Frail>, pose: Pose, value: f32) -> Ticket {
    let accepted = write(session, pose, value, (None, None));
    accepted.expect("taken").ticket
}

pub(super) fn asked(session: &mut Session<Frail>, pose: Pose, engine: Option<Engine>) -> Ticket {
    let accepted = read(session, pose, (None, engine));
    accepted.expect("taken").ticket
}

/// The result of a call.
pub(super) fn result_of(settlements: &[Settlement], ticket: Ticket) -> Vec<f32> {
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
fn calls_find_what_was_written_before_them_however_their_batch_is_cut() {
    // A batch is cut for the sake of overlap, for want of memory, or not at all.
    let cases = [
        (Frail::in_chunks(1 << 20, 20_000), None, true),
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
        let between = asked(&mut session, pose, None);
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
        for (reader, value) in [(before, 0.0), (between, 3.0), (behind, 5.0)] {
            assert_eq!(result_of(&settlements, reader), [value; 4]);
        }
        assert_eq!(told(&mut session), [(first, Ok(())), (second, Ok(()))]);
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
fn writes_on_their_way_hold_no_operands() {
    let limits = BatchConfig {
        max_in_flight: 20,
        ..config()
    };
    let mut session = Session::new(Frail::new(1 << 20), limits).expect("valid settings");
    let pose = pose(&mut session);
    let mut on_the_way = Vec::new();
    let mut most = 0;
    for k in 0..10 {
        written(&mut session, pose, k as f32);
        on_the_way.push(launch(&mut session));
        most = most.max(session.host_bytes());
    }
    assert_eq!(told(&mut session).len(), 10, "acknowledged");
    // One arena for the batch that is being written, one for the next, and what tensors take.
    let arena = u64::from(Arena::GROWTH) * u64::from(WORD);
    assert!(most < 3 * arena, "{most} bytes");
    // A batch that is read from keeps its operands, with which it may go again.
    let behind = asked(&mut session, pose, None);
    on_the_way.push(launch(&mut session));
    session.lose(session.generation());
    session.replace_device(Frail::new(1 << 20), NOW);
    fill(&mut session, pose);
    session.give_up_unreadable();
    assert_eq!(session.in_flight(), 0, "those that were answered are over");
    assert!(session.launch(NOW).is_none(), "the reader's tensor is lost");
    assert!(
        told(&mut session)
            .iter()
            .any(|(ticket, _)| *ticket == behind)
    );
}

#[test]
fn a_loss_between_chunks_sends_again_what_wrote_nothing() {
    for landed in 0..4 {
        let in_chunks = || Frail::in_chunks(1 << 20, 256);
        let mut session = Session::new(in_chunks(), config()).expect("valid settings");
        let pose = pose(&mut session);
        let first = put(&mut session, 1.0, 100);
        let writer = written(&mut session, pose, 3.0);
        let reader = asked(&mut session, pose, None);
        let other = put(&mut session, 2.0, 8);
        let last = written(&mut session, pose, 5.0);
        let sent = launch(&mut session);
        assert_eq!(told(&mut session), [(writer, Ok(())), (last, Ok(()))]);
        assert!(!session.abort(writer), "it is answered");
        assert!(sent.flights.len() > landed, "the test needs more chunks");
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
        let lost = Err(Code::DeviceLost);
        let is_read = answered.contains(&reader);
        let refused: &[_] = if is_read { &[] } else { &[(reader, lost)] };
        assert_eq!(told(&mut session), refused, "{landed} chunks");
        session.replace_device(in_chunks(), NOW);
        fill(&mut session, pose);
        assert_eq!(session.give_up_unreadable(), []);
        let again = session.launch(NOW).expect("sent again");
        let left = [first, other].into_iter();
        let left: Vec<Ticket> = left.filter(|call| !answered.contains(call)).collect();
        assert_eq!(tickets(last_sent(&session)), left, "{landed} chunks");
        land_all(&mut session, again);
        let stats = session.stats();
        let rejected = u64::from(!is_read);
        assert_eq!((stats.settled, stats.rejected), (5 - rejected, rejected));
        assert_eq!((session.pending(), loads(&session)), (0, 1));

        // The data that the tensor was filled with is older than what calls wrote.
        let early = asked(&mut session, pose, None);
        let writer = written(&mut session, pose, 7.0);
        let reader = asked(&mut session, pose, None);
        let sent = launch(&mut session);
        assert_eq!(told(&mut session), [(early, lost), (writer, Ok(()))]);
        let settlements = land_all(&mut session, sent);
        assert_eq!(result_of(&settlements, reader), [7.0; 4]);
    }
}

#[test]
fn a_plan_shows_writes_in_their_place() {
    let mut session =
        Session::new(Frail::in_chunks(1 << 20, 256), config()).expect("valid settings");
    let pose = pose(&mut session);
    session.begin_explain();
    put(&mut session, 1.0, 100);
    asked(&mut session, pose, None);
    put(&mut session, 1.0, 100);
    written(&mut session, pose, 5.0);
    let text = session.end_explain();
    let chunks: Vec<&str> = text.split("piece ").collect();
    assert!(chunks.len() > 3, "{text}");
    let writes = |chunk: &&str| chunk.contains("clip");
    let (last, others) = chunks.split_last().expect("several");
    assert!(writes(last) && !others.iter().any(writes), "{text}");
}
