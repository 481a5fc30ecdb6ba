//! The program cache, without a session.

use super::*;
use crate::graph::Timing;
use crate::ops;
use crate::program::RowOp;

fn op(width: u32) -> RowOp {
    ops::lerp(width, Timing::Call).expect("a width")
}

/// The number of a structure, known or new.
fn ask<S: Structure>(cache: &mut ProgramCache, structure: S) -> RecipeId {
    let known = cache.hold(&structure);
    known.unwrap_or_else(|| {
        let recipe = structure.lower(cache.recipes());
        cache.add(Box::new(structure), recipe)
    })
}

/// A kind of work that the planner does not know.
#[derive(PartialEq)]
struct Foreign(RowOp);

impl Structure for Foreign {
    fn lower(&self, known: &[Recipe]) -> Recipe {
        self.0.lower(known)
    }
}

#[test]
fn equal_structures_of_one_kind_have_one_number() {
    let mut cache = ProgramCache::default();
    let numbers = [4, 5, 4].map(|width| ask(&mut cache, op(width)));
    assert_eq!(numbers, [0, 1, 0].map(RecipeId));
    let foreign = [4, 5, 4].map(|width| ask(&mut cache, Foreign(op(width))));
    assert_eq!(foreign, [2, 3, 2].map(RecipeId), "another kind");
}

#[test]
fn a_number_is_free_without_holders_and_calls() {
    let mut cache = ProgramCache::default();
    let [first, second, third] = [1, 2, 3].map(|width| ask(&mut cache, op(width)));
    ask(&mut cache, op(2));
    cache.release(first);
    cache.release(second);
    assert!(cache.get(first).is_none() && cache.get(second).is_some());
    assert!(cache.has_abandoned());
    cache.sweep([first].into_iter());
    assert!(cache.has_abandoned(), "a call is pending");
    assert_eq!(cache.hold(&op(1)), Some(first), "it is held again in time");
    cache.release(first);
    cache.release(third);
    cache.sweep([].into_iter());
    assert!(!cache.has_abandoned());
    assert_eq!(ask(&mut cache, op(9)), first, "the lowest that is free");
    assert_eq!(ask(&mut cache, op(8)), third);
    assert_eq!(cache.recipes().len(), 3);
    cache.release(RecipeId(77)); // Nobody has this number.
}

#[test]
fn what_calls_took_is_forgotten_with_the_structure_and_the_device() {
    let mut cache = ProgramCache::default();
    let id = ask(&mut cache, op(4));
    let took = Footprint {
        rows: 3,
        words: 40,
        bytes: 160,
    };
    *cache.footprint_mut(id) = took;
    cache.release(id);
    cache.sweep([].into_iter());
    assert_eq!(ask(&mut cache, op(5)), id);
    assert_eq!(cache.footprint_mut(id).rows, 0);
    *cache.footprint_mut(id) = took;
    cache.forget_footprints();
    assert_eq!(cache.footprint_mut(id).rows, 0);
}
