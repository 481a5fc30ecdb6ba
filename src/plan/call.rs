//! Calls as the planner sees them: numbers and addresses, no values and no tickets.

use super::Segment;
use crate::tensor::Span;

/// A structure's number in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecipeId(pub u32);

/// What the planner knows of a call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The call's structure.
    pub recipe: RecipeId,
    /// How many rows the call has.
    pub rows: u32,
    /// Where the call's operands lie in the arena.
    pub inputs: Span,
    /// The scalar, encoded; 0 where the structure has none.
    pub scalar: u32,
    /// The buffers that the resident tensors which the call names lie in, among the batch's
    /// sets.
    pub set: SetId,
    /// The resident tensors that the call names, among all that calls of the batch name.
    pub tensors: Span,
    /// The words that the call writes of a tensor, where it writes one.
    pub stored: Span,
    /// The numbers that came with the call: calls with equal ids have equal numbers.
    pub numbers: NumbersId,
}

/// Names the numbers of a call. Neighboring calls of a batch that have one id have the same
/// numbers, bit for bit, so that all of these calls may read one copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumbersId(pub u32);

/// The number of a set of buffers among the sets that a batch's calls bind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetId(pub u32);

/// The resident tensors that the calls of a batch name, and where these lie. Calls merge when
/// they bind the same buffers; the words where their tensors begin are data of the calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamedTensors<'a> {
    /// Sets of buffers: for each tensor that a call names the number of its buffer.
    pub sets: &'a [Box<[u32]>],
    /// The numbers of tensors, call after call.
    pub numbers: &'a [u32],
    /// For each of these the word of its buffer where the tensor begins.
    pub places: &'a [u32],
}

impl<'a> NamedTensors<'a> {
    /// The buffers of the tensors that a call names.
    pub(super) fn set(&self, call: &Call) -> &'a [u32] {
        let set = self.sets.get(call.set.0 as usize);
        set.map_or(&[], |set| set)
    }

    /// The numbers of the tensors that a call names.
    pub(super) fn numbers_of(&self, call: &Call) -> &'a [u32] {
        &self.numbers[call.tensors.range()]
    }

    /// The words where the tensors that a call names begin.
    pub(super) fn places_of(&self, call: &Call) -> &'a [u32] {
        &self.places[call.tensors.range()]
    }
}

/// Neighboring rows of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSlice {
    /// Number of the first row in the call.
    pub first: u32,
    /// How many rows the slice has.
    pub rows: u32,
}

/// The calls of one dispatch as segments, while a chunk is laid out.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentList {
    pub(super) segments: Vec<Segment>,
    /// The words of all entries, as in [`Dispatch::entries`](super::Dispatch::entries).
    pub(super) entries: Vec<u32>,
}
