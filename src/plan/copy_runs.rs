//! The runs of the arena that are copied to the slot of operands, and where each goes.
//!
//! Whole calls keep the order and the distances that they have in the arena, so that many
//! calls are one run. A sliced call is packed: it lies in the slot like a call of fewer rows.

use super::{Call, CopyRun, Recipe, RowSlice};
use crate::tensor::aligned;

/// The largest hole, in words, that is copied along with the calls around it. Canceled calls
/// leave holes, and one more run costs more than a small hole.
const HOLE: u32 = 1024;

/// The copy runs of one chunk.
#[derive(Default)]
pub(super) struct CopyRuns {
    pub(super) runs: Vec<CopyRun>,
    /// Words of the slot that are filled.
    pub(super) words: u32,
}

impl CopyRuns {
    /// Adds the operands of a slice of a call, and returns the word of the slot where these
    /// begin.
    pub(super) fn add(&mut self, recipe: &Recipe, call: &Call, slice: RowSlice) -> u32 {
        if slice.rows == call.rows {
            return self.append(call.inputs.at, aligned(call.inputs.words), HOLE);
        }
        let start = self.words;
        let addresses = recipe.addresses(call.inputs.at, call.rows);
        for (operand, from) in recipe.operands.iter().zip(addresses) {
            let from = from + slice.first * operand.per_row;
            self.append(from, aligned(operand.words(slice.rows)), 0);
        }
        start
    }

    /// Appends words of the arena, to the last run where no more than `hole` words lie between.
    fn append(&mut self, from: u32, words: u32, hole: u32) -> u32 {
        if let Some(last) = self.runs.last_mut() {
            let gap = from.wrapping_sub(last.from + last.words);
            if gap <= hole {
                let to = self.words + gap;
                self.words = to + words;
                last.words += gap + words;
                return to;
            }
        }
        let to = self.words;
        self.runs.push(CopyRun { from, to, words });
        self.words = to + words;
        to
    }
}
