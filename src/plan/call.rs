//! Calls as the planner sees them: numbers and addresses.

use super::Segment;
use crate::tensor::Span;

/// A structure's number in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecipeId(pub u32);

/// A call as the planner sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its structure.
    pub recipe: RecipeId,
    /// Its rows.
    pub rows: u32,
    /// Where the call's operands lie in the arena.
    pub inputs: Span,
    /// Its scalar, encoded; 0 where the structure has none.
    pub scalar: u32,
    /// Which of the batch's sets of tensors it reads.
    pub set: SetId,
    /// Which numbers came with it.
    pub numbers: NumbersId,
}

/// Calls in a row of one batch that name the same have the same numbers, bit for
/// bit, and may read one copy of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumbersId(pub u32);

/// Tensors on the device that calls read together, counted over the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetId(pub u32);

/// A run of rows of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of its first row in the call.
    pub first: u32,
    /// Its rows.
    pub rows: u32,
}

/// The shares that calls have of one dispatch.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    pub(super) segments: Vec<Segment>,
    /// What follows the result's word in their entries, as many words for each.
    pub(super) entries: Vec<u32>,
}
