//! The pieces of a batch: what of it goes in one submission.
//!
//! How many are on their way is the business of `launch`, and where rows may be cut
//! the planner's.

use super::payload::Batch;
use crate::plan::{self, Asked, Parted, Piece, PieceLimits, PieceSizes, Plan, Recipe};

/// What decides how a batch is cut.
pub(super) struct Chunker<'a> {
    /// The structures of the session.
    pub(super) recipes: &'a [Recipe],
    /// Tensors that lie on the device in parts.
    pub(super) parted: &'a [Parted],
    /// How large pieces should be.
    pub(super) sizes: PieceSizes,
    /// What a piece may need at most.
    pub(super) limits: PieceLimits,
}

impl Chunker<'_> {
    /// The pieces of a batch of which none was sent, the first one last.
    pub(super) fn pieces(&self, batch: &Batch) -> Vec<Piece> {
        let (recipes, sizes) = (self.recipes, self.sizes);
        let (leading, others) = batch.ahead().split_at(batch.front());
        let mut pieces = match batch.front() {
            0 => Vec::new(),
            _ => plan::pieces(recipes, leading, sizes),
        };
        if pieces.is_empty() || !others.is_empty() {
            let behind = plan::pieces(recipes, others, sizes).into_iter();
            pieces.extend(behind.map(|piece| Piece {
                first: piece.first + leading.len(),
                end: piece.end + leading.len(),
                ..piece
            }));
        }
        pieces.reverse();
        pieces
    }

    /// The next piece of a batch, taken from the `rest` of them, and its plan. A batch
    /// that is cut before a call which writes to a tensor is cut anew, with all such
    /// calls in front: what is written is found by the whole batch, however it is cut.
    pub(super) fn next(&self, batch: &mut Batch, rest: &mut Vec<Piece>) -> Option<(Piece, Plan)> {
        loop {
            let asked = Asked {
                recipes: self.recipes,
                calls: batch.ahead(),
                sets: &batch.payload.sets,
                parted: self.parted,
            };
            let (piece, plan) = plan::assemble_next(asked, rest, &self.limits)?;
            let is_first = batch.front() == 0 && piece.first == 0 && piece.skipped == 0;
            if !is_first || !batch.lead(self.recipes, piece.end) {
                return Some((piece, plan));
            }
            *rest = self.pieces(batch);
        }
    }
}
