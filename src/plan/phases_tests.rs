use proptest::prelude::*;

use super::*;

/// A call: the tensors that it reads, and what it writes of one.
type Call = (Vec<u32>, Option<(u32, Span)>);

fn reads(tensors: &[u32]) -> Call {
    (tensors.to_vec(), None)
}

fn writes(read: &[u32], tensor: u32, at: u32, words: u32) -> Call {
    (read.to_vec(), Some((tensor, Span { at, words })))
}

/// The phase of each call, one taken after the other.
fn phases_of(calls: &[Call]) -> Vec<u32> {
    let mut phases = Phases::default();
    let phase = |(read, stored): &Call| {
        let written = stored.map(|(tensor, _)| tensor);
        let named: Vec<u32> = read.iter().copied().chain(written).collect();
        let words = stored.map_or(Span::default(), |(_, words)| words);
        phases.add(&named, &|tensor| written == Some(tensor), words)
    };
    let all: Vec<u32> = calls.iter().map(phase).collect();
    let last = all.iter().max().map_or(0, |last| last + 1);
    assert_eq!(phases.count, last);
    all
}

#[test]
fn calls_are_in_the_first_phase_that_keeps_their_order() {
    for (calls, expected) in [
        (vec![], vec![]),
        (vec![reads(&[]), reads(&[3]), reads(&[3, 1])], vec![0, 0, 0]),
        // Found by who reads later, not by who read before.
        (
            vec![reads(&[0]), writes(&[], 0, 0, 4), reads(&[0]), reads(&[1])],
            vec![0, 1, 2, 0],
        ),
        // Places of their own are written together, in any order.
        (
            vec![
                writes(&[7], 0, 8, 4),
                writes(&[7], 0, 0, 8),
                writes(&[7], 0, 12, 4),
                writes(&[7], 0, 20, 4),
            ],
            vec![0, 0, 0, 0],
        ),
        // One place twice: the later call wins.
        (
            vec![
                writes(&[], 0, 0, 4),
                writes(&[], 0, 4, 4),
                writes(&[], 0, 7, 2),
                writes(&[], 0, 0, 4),
                writes(&[], 0, 3, 1),
            ],
            vec![0, 0, 1, 1, 2],
        ),
        // A chain of tensors.
        (
            vec![
                writes(&[0], 1, 0, 4),
                writes(&[1], 2, 0, 4),
                reads(&[2]),
                writes(&[], 0, 0, 4),
            ],
            vec![0, 1, 2, 1],
        ),
        // Words behind the last address are in no tensor.
        (
            vec![writes(&[], 0, u32::MAX - 1, 4), writes(&[], 0, 0, u32::MAX)],
            vec![0, 1],
        ),
    ] {
        assert_eq!(phases_of(&calls), expected, "{calls:?}");
    }
}

/// Whether one of two calls writes what the other reads or writes.
fn conflict(one: &Call, other: &Call) -> bool {
    let meets = |a: Span, b: Span| a.at < b.at + b.words && b.at < a.at + a.words;
    let finds = |(read, _): &Call, (_, stored): &Call| {
        stored.is_some_and(|(tensor, _)| read.contains(&tensor))
    };
    let same = match (one.1, other.1) {
        (Some((a, first)), Some((b, second))) => a == b && meets(first, second),
        _ => false,
    };
    same || finds(one, other) || finds(other, one)
}

fn call() -> impl Strategy<Value = Call> {
    let span = (0_u32..24, 1_u32..6).prop_map(|(at, words)| Span { at, words });
    let stored = prop::option::of((0_u32..4, span));
    // A tensor that is written is not read by the same call.
    (prop::collection::vec(0_u32..4, 0..3), stored).prop_map(|(mut read, stored)| {
        read.retain(|tensor| stored.is_none_or(|(written, _)| written != *tensor));
        (read, stored)
    })
}

proptest! {
    #[test]
    fn calls_in_conflict_keep_their_order(calls in prop::collection::vec(call(), 0..40)) {
        let phases = phases_of(&calls);
        for (later, call) in calls.iter().enumerate() {
            for earlier in (0..later).filter(|earlier| conflict(&calls[*earlier], call)) {
                prop_assert!(phases[earlier] < phases[later], "{earlier} and {later}: {phases:?}");
            }
        }
    }
}
