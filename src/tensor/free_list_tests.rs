//! Places in memory, compared with a model that marks every word in use.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::Places;

#[test]
fn places_of_growing_length_take_little_more_than_the_largest() {
    // How many there are at a time, and how many times the largest they may take.
    for (alive, most) in [(1, 1), (2, 4)] {
        let mut places = Places::default();
        let mut taken = VecDeque::new();
        for words in 1..5000 {
            while taken.len() >= alive {
                let (at, words) = taken.pop_front().expect("as many as that");
                places.give(at, words);
            }
            taken.push_back((places.take(words, u32::MAX).expect("room"), words));
            assert!(places.end() <= most * words, "{alive} alive: {places:?}");
        }
    }
}

#[test]
fn whatever_is_given_back_last_everything_is_free_again() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut places = Places::default();
        let taken = [3, 5, 7].map(|words| (places.take(words, u32::MAX).expect("room"), words));
        assert_eq!((taken, places.end()), ([(0, 3), (3, 5), (8, 7)], 15));
        for index in order {
            let (at, words) = taken[index];
            places.give(at, words);
        }
        assert_eq!(places.end(), 0, "{order:?}");
        assert_eq!(places.take(15, 15), Some(0), "{order:?}");
    }
}

proptest! {
    #[test]
    fn no_word_is_in_two_places_and_no_free_one_is_forgotten(
        asked in prop::collection::vec((1_u32..40, any::<prop::sample::Index>(), any::<bool>()), 1..200),
    ) {
        let mut places = Places::default();
        let mut taken: Vec<(u32, u32)> = Vec::new();
        let mut used: Vec<bool> = Vec::new();
        for (words, which, gives) in asked {
            if gives && !taken.is_empty() {
                let (at, words) = taken.swap_remove(which.index(taken.len()));
                places.give(at, words);
                used[at as usize..][..words as usize].fill(false);
            } else {
                // The first gap that is long enough, or the end.
                let first = used.windows(words as usize).position(|gap| !gap.contains(&true));
                let end = used.iter().rposition(|used| *used).map_or(0, |last| last + 1);
                let expected = first.map_or(end, |first| first.min(end));
                let at = places.take(words, u32::MAX).expect("room") as usize;
                prop_assert_eq!(at, expected);
                let end = at + words as usize;
                used.resize(used.len().max(end), false);
                used[at..end].fill(true);
                taken.push((u32::try_from(at).expect("few"), words));
            }
            let end = used.iter().rposition(|used| *used).map_or(0, |last| last + 1);
            prop_assert_eq!(places.end() as usize, end);
        }
    }
}
