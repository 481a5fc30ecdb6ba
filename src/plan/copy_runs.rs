//! Where a chunk's operands lie in the arena, and where they go.
//!
//! Whole calls keep the order and the distances that they have in the arena,
//! so that many of them are one run. A cut call is packed: it lies in the slot
//! like a call of fewer rows.

use super::{Call, Part, Recipe, Run};
use crate::tensor::aligned;

/// Words between two calls that are copied along: calls that were given up
/// leave holes, and a run costs more than a small hole.
const BRIDGE: u32 = 1024;

/// The runs of one chunk.
#[derive(Default)]
pub(super) struct Gather {
    pub(super) runs: Vec<Run>,
    /// Words of the slot that are filled.
    pub(super) words: u32,
}

impl Gather {
    /// Adds the operands of a part of a call. Returns the word of the slot
    /// where they begin.
    pub(super) fn place(&mut self, recipe: &Recipe, call: &Call, part: Part) -> u32 {
        if part.rows == call.rows {
            return self.add(call.inputs.at, aligned(call.inputs.words), BRIDGE);
        }
        let start = self.words;
        let addresses = recipe.addresses(call.inputs.at, call.rows);
        for (operand, from) in recipe.operands.iter().zip(addresses) {
            let from = from + part.first * operand.per_row;
            self.add(from, aligned(operand.words(part.rows)), 0);
        }
        start
    }

    fn add(&mut self, from: u32, words: u32, bridge: u32) -> u32 {
        if let Some(last) = self.runs.last_mut() {
            let gap = from.wrapping_sub(last.from + last.words);
            if gap <= bridge {
                let to = self.words + gap;
                self.words = to + words;
                last.words += gap + words;
                return to;
            }
        }
        let to = self.words;
        self.runs.push(Run { from, to, words });
        self.words = to + words;
        to
    }
}
