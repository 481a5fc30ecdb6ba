//! The pieces of a batch: what of it goes in one submission.
//!
//! How many are on their way is the business of `flights`, and where rows may be cut
//! the planner's.

use super::Session;
use super::load::Load;
use crate::device::Device;
use crate::plan::{self, Asked, Piece, PieceLimits, Plan};

impl<D: Device> Session<D> {
    /// The pieces of a batch of which none was sent, the first one last.
    pub(super) fn pieces(&self, load: &Load) -> Vec<Piece> {
        let sizes = self.piece_sizes(load.shortages);
        let recipes = self.structures.recipes();
        let (leading, others) = load.calls.split_at(load.leading);
        let mut pieces = match load.leading {
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
    pub(super) fn next_piece(
        &self,
        load: &mut Load,
        rest: &mut Vec<Piece>,
        limits: &PieceLimits,
    ) -> Option<(Piece, Plan)> {
        let recipes = self.structures.recipes();
        loop {
            let asked = Asked {
                recipes,
                calls: &load.calls,
                sets: &load.sets,
                parted: self.tensors.parted(),
            };
            let (piece, plan) = plan::assemble_next(asked, rest, limits)?;
            let is_first = load.leading == 0 && piece.first == 0 && piece.skipped == 0;
            if !is_first || !load.lead(recipes, piece.end) {
                return Some((piece, plan));
            }
            *rest = self.pieces(load);
        }
    }
}
