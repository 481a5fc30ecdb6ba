//! Small tensors, which share slabs: calls on different tensors merge, and each finds its own.

use super::computing::{floats_of, read, step, write};
use super::recovery::Remedy;
use super::slabs::{GRAIN, LARGE, SLAB};
use super::writing::{self, Pose};
use super::*;
use crate::graph::chain::Norm;
use crate::graph::{BinaryFn, UnaryFn};
use crate::plan::KINDS;

/// Bytes of a buffer that any slab fits.
const ROOMY: u64 = 1 << 26;

/// A session that holds tensors of nine floats.
fn roomy() -> Session<Frail> {
    session(ROOMY)
}

/// Nine floats from a number on.
fn nine(from: f32) -> [f32; 9] {
    std::array::from_fn(|i| from + i as f32)
}

fn fill(session: &mut Session<Frail>, tensor: u32, floats: &[f32]) {
    session
        .fill(tensor, bytemuck::cast_slice(floats))
        .expect("room");
}

/// A tensor in a slab, of nine floats from a number on.
fn small(session: &mut Session<Frail>, from: f32) -> u32 {
    let number = session.hold_shared(9, &[]);
    fill(session, number, &nine(from));
    number
}

fn home(session: &Session<Frail>, tensor: u32) -> u32 {
    session.place(tensor).expect("held").home()
}

/// Sends what was asked for, and returns what came back.
fn settled(session: &mut Session<Frail>) -> Vec<Settlement> {
    let sent = launch(session);
    land_all(session, sent)
}

/// How many dispatches the calls that `ask` makes take.
fn dispatches(session: &mut Session<Frail>, ask: impl FnOnce(&mut Session<Frail>)) -> usize {
    session.begin_explain();
    ask(session);
    let plan = session.end_explain();
    plan.lines()
        .filter(|line| line.starts_with("dispatch") || line.starts_with("copy"))
        .count()
}

#[test]
fn a_thousand_calls_on_a_thousand_tensors_are_one_dispatch() {
    let mut session = roomy();
    let tensors: Vec<u32> = (0..1000)
        .map(|number| small(&mut session, number as f32))
        .collect();
    assert!(tensors.iter().all(|tensor| {
        let place = session.place(*tensor).expect("held");
        place.home() == home(&session, tensors[0]) && place.at().is_multiple_of(GRAIN)
    }));
    let negate: computing::Record = |g, x| Ok(vec![(g.unary(UnaryFn::Neg, x[0])?, 0)]);
    let steps = |session: &mut Session<Frail>| {
        for tensor in &tensors {
            step(session, &[*tensor], negate);
        }
    };
    let reads = |session: &mut Session<Frail>| -> Vec<Ticket> {
        let tensors = tensors.iter();
        tensors.map(|tensor| read(session, *tensor)).collect()
    };
    assert_eq!(dispatches(&mut session, steps), 1);
    assert_eq!(dispatches(&mut session, |session| drop(reads(session))), 1);
    steps(&mut session);
    let after = reads(&mut session);
    assert_eq!(
        open(&session).payload.named().sets.len(),
        2,
        "one, and none"
    );
    let settlements = settled(&mut session);
    for (number, ticket) in after.into_iter().enumerate() {
        let expected = nine(number as f32).map(|x| -x);
        assert_eq!(floats_of(&settlements, ticket), expected, "{number}");
    }
    let bytes = session.stats().tensors;
    assert_eq!((bytes.f32, bytes.f16), (u64::from(SLAB * WORD), 0));
    for tensor in tensors {
        session.release(tensor);
    }
    assert_eq!(session.stats().tensors.sum(), 0);
    session.trim();
    assert_eq!(session.tensors.resident_bytes, 0);
}

#[test]
fn calls_are_ordered_by_their_tensors_and_not_by_slabs() {
    let mut session = roomy();
    let [a, b, c] = [10.0, 20.0, 30.0].map(|from| small(&mut session, from));
    let negate: computing::Record = |g, x| Ok(vec![(g.unary(UnaryFn::Neg, x[0])?, 0)]);
    let count = dispatches(&mut session, |session| {
        read(session, a);
        step(session, &[b], negate);
        read(session, c);
        step(session, &[b], negate);
        read(session, a);
    });
    assert_eq!(count, 3, "the reads, and the two steps");
    let add: computing::Record = |g, x| Ok(vec![(g.binary(BinaryFn::Add, x[0], x[1])?, 0)]);
    step(&mut session, &[a, b], add);
    step(&mut session, &[b, a], add);
    let found = [a, b, c].map(|tensor| read(&mut session, tensor));
    let settlements = settled(&mut session);
    let sums = [0, 1].map(|turn| {
        let own = nine(0.0).map(|x| 30.0 + 2.0 * x);
        std::array::from_fn::<f32, 9, _>(|i| own[i] + turn as f32 * nine(20.0)[i])
    });
    for (ticket, expected) in found.into_iter().zip([sums[0], sums[1], nine(30.0)]) {
        assert_eq!(floats_of(&settlements, ticket), expected);
    }
}

#[test]
fn what_is_computed_lies_apart_from_its_operands_where_that_is_asked_for() {
    let mut session = roomy();
    let x = small(&mut session, 1.0);
    let softmax: computing::Record = |g, x| Ok(vec![(g.norm(Norm::Softmax, x[0], -1, None)?, 1)]);
    let mut results = Vec::new();
    for (apart, stages) in [(vec![], 2), (vec![x], 1)] {
        let y = session.hold_shared(9, &apart);
        assert_eq!(home(&session, x) == home(&session, y), apart.is_empty());
        session.allocate(y, 9).expect("room");
        let asked = |session: &mut Session<Frail>| {
            step(session, &[x, y], softmax);
        };
        assert_eq!(dispatches(&mut session, asked), stages, "{apart:?}");
        asked(&mut session);
        let [own, other] = [y, x].map(|tensor| read(&mut session, tensor));
        let settlements = settled(&mut session);
        results.push(floats_of(&settlements, own));
        assert_eq!(floats_of(&settlements, other), nine(1.0));
    }
    assert_eq!(results[0], results[1]);
    assert!((results[0][2] - 0.665_240_94).abs() < 1e-6);
}

#[test]
fn parts_are_written_within_their_tensor() {
    let mut session = roomy();
    let [a, b] = [0.0, 100.0].map(|from| small(&mut session, from));
    session
        .patch(b, 7, &[5.0_f32.to_bits(), 6.0_f32.to_bits()])
        .expect("within");
    write(&mut session, b, &[1.0, 2.0, 3.0], 2).expect("within");
    for refused in [
        session.patch(a, 8, &[0; 2]),
        session.patch(a, u32::MAX, &[0]),
        session.fill(a, &[0; 10]),
        session.allocate(a, 10),
    ] {
        assert!(
            matches!(refused, Err(Error::InvalidInput(_))),
            "{refused:?}"
        );
    }
    let found = [a, b].map(|tensor| read(&mut session, tensor));
    let settlements = settled(&mut session);
    assert_eq!(floats_of(&settlements, found[0]), nine(0.0));
    let expected = [100.0, 101.0, 1.0, 2.0, 3.0, 105.0, 106.0, 5.0, 6.0];
    assert_eq!(floats_of(&settlements, found[1]), expected);
}

#[test]
fn samplings_are_stored_within_their_target() {
    let mut session = roomy();
    let before = small(&mut session, 1.0);
    let store = session.hold();
    let targets = [(); 2].map(|()| session.hold_shared(4, &[]));
    let behind = small(&mut session, 2.0);
    for (number, target) in targets.into_iter().enumerate() {
        let pose = Pose { store, target };
        writing::fill(&mut session, pose);
        writing::written(&mut session, pose, 3.0 + number as f32);
    }
    let poses = targets.map(|target| Pose { store, target });
    let found = poses.map(|pose| writing::asked(&mut session, pose, None));
    let others = [before, behind].map(|tensor| read(&mut session, tensor));
    let settlements = settled(&mut session);
    assert_eq!(floats_of(&settlements, found[0]), [3.0; 4]);
    assert_eq!(floats_of(&settlements, found[1]), [4.0; 4]);
    assert_eq!(floats_of(&settlements, others[0]), nine(1.0));
    assert_eq!(floats_of(&settlements, others[1]), nine(2.0));
    // A target of one float has no room for four.
    let target = session.hold_shared(1, &[]);
    session.fill(target, &[0]).expect("room");
    let refused = writing::write(&mut session, Pose { store, target }, 1.0, (None, None));
    assert!(matches!(refused, Err(Error::InvalidInput(_))));
}

#[test]
fn a_tensor_keeps_its_place_and_never_shows_what_another_one_held() {
    let mut session = roomy();
    let [a, b] = [1.0, 2.0].map(|from| small(&mut session, from));
    let places = [a, b].map(|tensor| session.place(tensor).expect("held"));
    let pending = [a, b].map(|tensor| read(&mut session, tensor));
    session.lose(session.generation());
    assert_eq!(session.remedy(NOW), Some(Remedy::Reopen));
    session.replace_device(Frail::new(ROOMY), NOW);
    assert_eq!(session.tensors.resident_bytes, 0);
    fill(&mut session, b, &nine(2.0));
    assert_eq!(session.tensors.resident_bytes, u64::from(SLAB * WORD));
    // The slab is on the next device, but not the words of every tensor in it.
    assert_eq!(session.give_up_unreadable(), [pending[0]]);
    let settlements = settled(&mut session);
    assert_eq!(floats_of(&settlements, pending[1]), nine(2.0));
    read(&mut session, a);
    let outcome = settled(&mut session).remove(0).outcome;
    assert!(
        matches!(outcome, Err(Error::InvalidInput(_))),
        "{outcome:?}"
    );
    fill(&mut session, a, &nine(1.0));
    let found = read(&mut session, a);
    assert_eq!(floats_of(&settled(&mut session), found), nine(1.0));
    let after = [a, b].map(|tensor| session.place(tensor).expect("held"));
    assert_eq!(after, places);
    // The place of a tensor that is gone is for the next one, which has no words before it is
    // filled.
    session.release(a);
    let next = session.hold_shared(9, &[]);
    assert_eq!(session.place(next), Ok(places[0]));
    read(&mut session, next);
    let outcome = settled(&mut session).remove(0).outcome;
    assert!(
        matches!(outcome, Err(Error::InvalidInput(_))),
        "{outcome:?}"
    );
}

#[test]
fn a_tensor_that_is_read_keeps_its_place_until_that_is_answered() {
    let mut session = roomy();
    let a = small(&mut session, 1.0);
    let place = session.place(a).expect("held");
    let pending = read(&mut session, a);
    session.release(a);
    let b = small(&mut session, 2.0);
    assert_ne!(session.place(b), Ok(place));
    assert_eq!(floats_of(&settled(&mut session), pending), nine(1.0));
    let c = session.hold_shared(9, &[]);
    assert_eq!(session.place(c), Ok(place));
}

#[test]
fn slabs_that_are_gone_count_no_bytes() {
    let mut session = roomy();
    let mut apart = Vec::new();
    for _ in 0..3 {
        let tensor = session.hold_shared(9, &apart);
        fill(&mut session, tensor, &nine(1.0));
        apart.push(tensor);
    }
    let slab = u64::from(SLAB) * 4;
    assert_eq!(session.tensor_bytes().f32, 3 * slab);
    for tensor in apart {
        session.release(tensor);
    }
    assert_eq!(session.tensor_bytes().f32, 0, "one is kept, and empty");
    session.trim();
    assert_eq!(session.tensor_bytes().f32, 0);
    small(&mut session, 1.0);
    assert_eq!(session.tensor_bytes().f32, slab);
}

#[test]
fn large_tensors_and_those_of_small_budgets_have_buffers_of_their_own() {
    let mut session = roomy();
    for (words, is_shared) in [(1, true), (LARGE - 1, true), (LARGE, false), (SLAB, false)] {
        let tensor = session.hold_shared(words, &[]);
        assert_eq!(home(&session, tensor) != tensor, is_shared, "{words}");
    }
    let alone = session.hold();
    assert_eq!(home(&session, alone), alone);
    let config = BatchConfig {
        memory_budget: Some(1 << 20),
        ..config()
    };
    let mut session = Session::new(Frail::new(ROOMY), config).expect("valid settings");
    let tensor = session.hold_shared(1, &[]);
    assert_eq!(home(&session, tensor), tensor);
}

/// A GPU with a CPU beside it. A flush of the GPU takes so many milliseconds.
fn both(flush: f64) -> Session<Frail> {
    let mut model = Model([0.0; FACTS.len()]);
    model.0[0] = flush;
    model.0[FACTS.len() - KINDS + 1] = 1e3;
    let session = Session::new(Frail::new(ROOMY).gpu(), config()).expect("valid settings");
    session.with_companion(Frail::new(ROOMY), Some(model.into()))
}

/// The floats of tensors, read by one batch.
fn floats_in(session: &mut Session<Frail>, tensors: &[u32]) -> Vec<Vec<f32>> {
    let calls: Vec<Ticket> = tensors
        .iter()
        .map(|tensor| read(session, *tensor))
        .collect();
    let settlements = settled(session);
    let calls = calls.into_iter();
    calls.map(|call| floats_of(&settlements, call)).collect()
}

#[test]
fn both_devices_have_a_slab_and_either_answers() {
    let mut session = both(10.0);
    let tensors = [1.0, 2.0].map(|from| small(&mut session, from));
    let slab = home(&session, tensors[0]);
    let expected = [nine(1.0), nine(2.0)];
    assert_eq!(floats_in(&mut session, &tensors), expected);
    assert_eq!(session.devices.primary().launches, 0, "the CPU is sooner");
    // What comes while the GPU rests goes to the CPU alone, until the GPU needs it.
    let third = small(&mut session, 3.0);
    assert!(session.tensors.deferred(third).is_some());
    session.patch(third, 0, &[9.0_f32.to_bits()]).expect("room");
    let negate: computing::Record = |g, x| Ok(vec![(g.unary(UnaryFn::Neg, x[0])?, 0)]);
    step(&mut session, &[tensors[0]], negate);
    step(&mut session, &[third], negate);
    let mut last = nine(3.0).map(|x| -x);
    last[0] = -9.0;
    let all = [tensors[0], tensors[1], third];
    let found = floats_in(&mut session, &all);
    assert_eq!(found, [nine(1.0).map(|x| -x), nine(2.0), last]);
    assert_eq!(session.tensors.deferred(third), None);
    assert!(session.devices.primary().tensor_bytes(slab) > 0);
    let copies = all.map(|tensor| session.tensors.has_copy(tensor));
    assert_eq!(copies, [false, true, false]);
    for tensor in all {
        session.release(tensor);
    }
    session.trim();
    let cpu = session.devices.companion().expect("there is one");
    assert_eq!(cpu.tensor_bytes(slab), 0);
    assert_eq!(session.devices.primary().tensor_bytes(slab), 0);
}

#[test]
fn a_gpu_takes_over_with_the_tensors_that_it_needs() {
    let mut session = both(0.0);
    let tensors = [1.0, 2.0, 3.0].map(|from| small(&mut session, from));
    session.lose(session.generation());
    assert_eq!(session.remedy(NOW), Some(Remedy::Reopen));
    session.replace_device(Frail::new(ROOMY), NOW);
    let [a, b, unfilled] = tensors;
    fill(&mut session, a, &nine(1.0));
    fill(&mut session, b, &nine(2.0));
    let negate: computing::Record = |g, x| Ok(vec![(g.unary(UnaryFn::Neg, x[0])?, 0)]);
    step(&mut session, &[b], negate);
    let expected = [nine(1.0), nine(2.0).map(|x| -x)];
    assert_eq!(floats_in(&mut session, &[a, b]), expected);
    session.remedy(Millis(60_000.0));
    session.welcome(Frail::new(ROOMY).gpu(), Millis(60_000.0));
    assert!(session.take_over(Millis(60_000.0)));
    assert_eq!(session.info().engine, Engine::Gpu);
    assert_eq!(session.tensors.resident_bytes, 0, "nothing was needed yet");
    assert!(!session.tensors.is_filled(unfilled));
    // The GPU stores what it computes of the one, and finds the other as the CPU left it.
    let add: computing::Record = |g, x| Ok(vec![(g.binary(BinaryFn::Add, x[0], x[1])?, 0)]);
    step(&mut session, &[a, b], add);
    let sums = std::array::from_fn(|i| expected[0][i] + expected[1][i]);
    assert_eq!(floats_in(&mut session, &[a, b]), [sums, expected[1]]);
    assert!(session.devices.primary().launches > 0);
    assert_eq!(session.tensors.resident_bytes, u64::from(SLAB * WORD));
}
