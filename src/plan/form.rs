//! The forms of a recipe whose results are stored, and what its calls write.

use std::sync::Arc;

use super::schedule::Schedule;
use crate::graph::chain::{Chain, StoreExtent};
use crate::program::Sizes;

/// What calls of a recipe write of tensors.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// What a call computes where a target shares its buffer with another tensor that the writing
    /// stage reads; `None` where the recipe's own form is right for that too.
    pub(super) by_scratch: Option<Form>,
    /// The elements of a part; `None` where calls write whole tensors.
    pub(super) part: Option<Part>,
}

/// A part of a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Elements that a call writes.
    pub(super) elements: u32,
    /// Elements of the target.
    pub(super) target: u32,
}

/// A program, and the sizes of a call of it.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) schedule: Arc<Schedule>,
    pub(super) sizes: Sizes,
}

/// The part of its target that a call of the chain writes, if the call does not write all.
pub(super) fn part_of(chain: &Chain) -> Option<Part> {
    let [store] = chain.stores() else {
        return None;
    };
    let count = |id| chain.node(id).shape.count();
    match store.extent {
        StoreExtent::Whole => None,
        StoreExtent::Part => Some(Part {
            elements: count(chain.outputs()[0]),
            target: count(store.target),
        }),
    }
}
