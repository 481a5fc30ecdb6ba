//! What arenas share, refuse, hand over and hold on to.

use super::*;
use crate::tensor::ALIGN;

#[test]
fn addresses_stay_right_while_chunks_are_added() {
    let mut arena = Arena::default();
    let spans: Vec<(Span, u32)> = (0..9_u32)
        .map(|i| (arena.push(&vec![i; 40_001 * i as usize + 3]), i))
        .collect();
    assert!(arena.regions.len() > 1, "the test needs several regions");
    for (span, i) in spans {
        assert!(arena.read(span).iter().all(|word| *word == i), "call {i}");
        assert_eq!(span.at % ALIGN, 0, "call {i}");
    }
    let whole: u32 = arena.regions.iter().map(|region| region.used).sum();
    assert_eq!(whole, arena.len(), "the upload has no holes");
}

#[test]
fn truncated_arena_holds_what_lies_before() {
    let mut arena = Arena::default();
    let first = arena.push(&[1; 200_000]);
    let second = arena.push(&[2; 200_000]);
    arena.push(&[3; 600_000]);
    arena.truncate(second.at + second.words);
    assert_eq!(arena.len(), 400_000);
    assert!(arena.read(first).iter().all(|word| *word == 1));
    assert!(arena.read(second).iter().all(|word| *word == 2));
    assert_eq!(arena.push(&[4]).at, 400_000);
}

#[test]
fn shared_words_stay_and_are_held_once() {
    let mut arena = Arena::default();
    let first = arena.push(&[1; 200_000]);
    arena.push(&[2; 200_000]);
    let held = arena.capacity();
    let mut other = arena.share();
    assert_eq!(arena.capacity() + other.capacity(), held);
    // Each arena appends to a region of its own, at the same address.
    let [own, others] = [(&mut arena, 3), (&mut other, 4)].map(|(arena, value)| {
        assert!(arena.free().is_empty());
        arena.push(&[value; 8])
    });
    assert_eq!(own, others);
    assert_eq!((arena.read(own)[7], other.read(others)[7]), (3, 4));
    assert_eq!(other.read(first), arena.read(first));

    // The region that one arena forgets is the other's alone.
    arena.clear();
    assert_eq!(arena.capacity(), u64::from(Arena::GROWTH), "its own region");
    assert_eq!(arena.push(&[5; 8]).at, 0);
    assert_eq!(other.capacity(), held + u64::from(Arena::GROWTH));
    assert!(other.read(first).iter().all(|word| *word == 1));
    other.truncate(others.at);
    other.trim();
    assert_eq!(other.push(&[6; 8]).at, others.at);
    assert_eq!(other.capacity(), held, "it goes on where only it is");
}

#[test]
fn an_arena_shared_while_it_is_empty_reads_as_empty() {
    let mut arena = Arena::default();
    assert!(arena.reserve(8));
    let nothing = arena.take(0);
    for arena in [Arena::default(), arena.share()] {
        assert!(arena.tail(nothing.at).is_empty());
        assert!(arena.read(nothing).is_empty());
    }
}

#[test]
fn what_has_no_address_is_refused_and_changes_nothing() {
    let mut arena = Arena::default();
    arena.push(&[1; 8]);
    let room = arena.free().len();
    for words in [u32::MAX, u32::MAX - 3, u32::MAX - 7] {
        assert!(!arena.reserve(words));
        assert_eq!(arena.free().len(), room);
    }
    assert_eq!(arena.push(&[2; 8]).at, 8);
    assert_eq!(arena.capacity(), u64::from(Arena::GROWTH));
}

#[test]
fn the_last_words_that_have_addresses_are_taken_and_none_behind() {
    let end = u32::MAX - 3;
    let region = |base, words| Region {
        memory: allocate(words).expect("memory"),
        base,
        used: 0,
    };
    // The region at the end and the spare one both have memory behind the last address.
    for left in [8, Arena::GROWTH - 8, Arena::GROWTH + 8] {
        let mut arena = Arena {
            regions: vec![region(end - left, Arena::GROWTH)],
            spare: vec![region(0, 2 * Arena::GROWTH)],
            ..Arena::default()
        };
        assert!(!arena.reserve(left + 4), "{left} words are left");
        assert!(arena.reserve(left));
        let span = arena.take(left);
        assert_eq!((span.at, arena.len()), (end - left, end));
        assert!(!arena.reserve(4));
    }
    assert_eq!([end - 1, end, u32::MAX].map(super::aligned), [end; 3]);
}

#[test]
fn room_is_handed_over_with_what_was_written_there() {
    for before in [0, 4, Arena::GROWTH] {
        let (mut arena, mut next) = (Arena::default(), Arena::default());
        next.push(&[9; 100]);
        next.clear();
        arena.push(&vec![1; before as usize]);
        assert!(arena.reserve(8) && next.reserve(8));
        arena.free()[..8].fill(2);
        let is_apart = before != 4;
        assert_eq!(arena.is_free_apart(), is_apart);
        let held = arena.capacity() + next.capacity();
        arena.hand_over(8, &mut next);
        assert_eq!(arena.capacity() + next.capacity(), held);
        let own = u64::from(before.next_multiple_of(Arena::GROWTH));
        assert_eq!(arena.capacity(), own);
        let span = next.take(8);
        assert_eq!((span.at, next.read(span)), (0, &[2; 8][..]));
        assert_eq!(arena.push(&[3; 4]).at, before);
    }
}

/// The words that an arena holds on to after it was filled with so many words and cleared, again
/// and again.
fn capacity_after(counts: &[u32]) -> u64 {
    let mut arena = Arena::default();
    for count in counts {
        for _ in 0..count / 100_000 {
            arena.push(&[7; 100_000]);
        }
        arena.clear();
        assert!(arena.is_empty());
    }
    arena.capacity()
}

#[test]
fn memory_of_one_large_call_is_given_back() {
    let mut arena = Arena::default();
    arena.push(&vec![1; 10 * Arena::GROWTH as usize]);
    for held in [10 * Arena::GROWTH, 10 * Arena::GROWTH, 0, Arena::GROWTH] {
        arena.clear();
        assert_eq!(arena.capacity(), u64::from(held));
        arena.push(&[2; 4]);
    }
}

#[test]
fn cleared_arena_holds_what_it_needs_again_and_again() {
    const SMALL: u32 = 200_000;
    const LARGE: u32 = 3_000_000;
    let large = LARGE.next_multiple_of(Arena::GROWTH);
    let cases: [(&[u32], u32); 6] = [
        (&[SMALL, SMALL], Arena::GROWTH),
        (&[SMALL, LARGE], Arena::GROWTH),
        (&[SMALL, LARGE, LARGE], large),
        (&[LARGE, LARGE, SMALL, LARGE], large),
        (&[LARGE, LARGE, SMALL], large),
        (&[LARGE, LARGE, SMALL, SMALL], Arena::GROWTH),
    ];
    for (counts, expected) in cases {
        assert_eq!(capacity_after(counts), u64::from(expected), "{counts:?}");
    }
}
