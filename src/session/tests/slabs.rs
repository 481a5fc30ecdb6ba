use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Takes a place, of a new slab if none has room. Returns the place.
fn take(slabs: &mut Slabs, next: &mut u32, words: u32, size: u32) -> Place {
    slabs.take(words, |_| true).unwrap_or_else(|| {
        slabs.add(*next, size);
        *next += 1;
        slabs.take(words, |_| true).expect("an empty slab has room")
    })
}

#[test]
fn places_are_used_again_and_slabs_that_are_not_wanted_are_left_out() {
    let mut slabs = Slabs::default();
    assert_eq!(slabs.take(1, |_| true), None);
    slabs.add(7, 4 * GRAIN);
    slabs.add(9, 4 * GRAIN);
    let at = |slab: u32, grain: u32| {
        let at = grain * GRAIN;
        Some(Place::Slab { slab, at })
    };
    assert_eq!(slabs.take(0, |_| true), at(7, 0), "a tensor of no words");
    assert_eq!(slabs.take(GRAIN + 1, |_| true), at(7, 1));
    assert_eq!(slabs.take(2 * GRAIN, |_| true), at(9, 0), "7 has one left");
    assert_eq!(slabs.take(1, |slab| slab != 7), at(9, 2));
    assert_eq!(slabs.take(GRAIN, |_| true), at(7, 3));
    assert_eq!(slabs.take(2 * GRAIN, |_| true), None, "9 has one left");
    assert_eq!(slabs.give(at(7, 1).expect("a place"), GRAIN + 1), None);
    assert_eq!(slabs.take(2 * GRAIN, |_| true), at(7, 1));
}

#[test]
fn one_empty_slab_is_kept() {
    let mut slabs = Slabs::default();
    let places = [1, 2].map(|number| {
        slabs.add(number, SLAB);
        let place = slabs.take(5, |slab| slab == number).expect("room");
        assert!(!slabs.is_empty(number));
        place
    });
    assert_eq!(slabs.give(places[0], 5), None);
    assert!(slabs.is_empty(1));
    assert_eq!(slabs.give(places[1], 5), Some(2));
    assert_eq!(slabs.remove_empty(), Some(1));
    assert_eq!(slabs.remove_empty(), None);
}

proptest! {
    #[test]
    fn places_are_aligned_and_never_overlap_and_slabs_end_with_their_tensors(
        asked in prop::collection::vec((0_u32..3000, any::<prop::sample::Index>(), any::<bool>()), 1..200),
    ) {
        const SIZE: u32 = 64 * GRAIN;
        let (mut slabs, mut next) = (Slabs::default(), 0);
        let mut taken: Vec<(Place, u32)> = Vec::new();
        let mut alive: BTreeMap<u32, ()> = BTreeMap::new();
        for (words, which, gives) in asked {
            if gives && !taken.is_empty() {
                let (place, words) = taken.swap_remove(which.index(taken.len()));
                if let Some(gone) = slabs.give(place, words) {
                    prop_assert!(alive.remove(&gone).is_some());
                    prop_assert!(taken.iter().all(|(place, _)| place.home() != gone));
                }
            } else {
                let before = next;
                let place = take(&mut slabs, &mut next, words, SIZE);
                if next > before {
                    alive.insert(before, ());
                }
                prop_assert!(alive.contains_key(&place.home()));
                prop_assert_eq!(place.at() % GRAIN, 0);
                let end = place.at() + words;
                prop_assert!(end <= SIZE);
                for (other, length) in &taken {
                    let (from, behind) = (other.at(), other.at() + padded(*length));
                    let is_apart = place.at() + padded(words) <= from || behind <= place.at();
                    prop_assert!(other.home() != place.home() || is_apart);
                }
                taken.push((place, words));
            }
            let empty = alive.keys().filter(|slab| slabs.is_empty(**slab)).count();
            prop_assert!(empty <= 1, "{} empty slabs", empty);
        }
        for (place, words) in taken {
            slabs.give(place, words);
        }
        let last = slabs.remove_empty();
        prop_assert!(last.is_some() || alive.is_empty());
        prop_assert_eq!(slabs.remove_empty(), None);
        prop_assert!(slabs.all.is_empty());
    }
}
