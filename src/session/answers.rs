//! Pairs the calls of a piece with their results.
//!
//! Whoever gave its call up gets none. A call that is cut has an answer in each
//! of its pieces, and is done with the last one.

use super::load::Load;
use crate::batch::Ticket;
use crate::device::Engine;
use crate::error::Error;
use crate::plan::{Call, Piece, Recipe};
use crate::tensor::Span;

/// What a piece has for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The call.
    pub ticket: Ticket,
    /// Where the words lie in the readback.
    pub span: Span,
    /// Where they belong in the call's result.
    pub at: u32,
    /// Words of that result.
    pub total: u32,
}

impl Answer {
    /// Whether it is the call's whole result.
    pub fn is_whole(&self) -> bool {
        self.span.words == self.total
    }

    /// Whether the result is complete with it.
    pub fn is_last(&self) -> bool {
        self.at + self.span.words == self.total
    }
}

/// A piece on its way.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) piece: Piece,
    /// Where each of its calls' results will lie.
    pub(super) results: Vec<Span>,
    /// Where it is computed.
    pub(super) engine: Engine,
    /// Whether it is of the calls that the batch put aside.
    pub(super) is_aside: bool,
    /// Bytes of its operands and results.
    pub(super) bytes: u64,
}

impl Sent {
    /// The answers to its calls that are among the `live` ones, which come in
    /// the same order: one for each call, and where a part of one came, one for
    /// each of its results.
    pub(super) fn answers<T, E>(
        &self,
        load: &Load,
        live: impl Iterator<Item = Ticket>,
        (recipes, outcome): (&[Recipe], &Result<T, E>),
    ) -> Vec<Answer> {
        let Piece { first, end, .. } = self.piece;
        let (calls, tickets) = self.of(load);
        let mut live = live.peekable();
        let mut answers = Vec::with_capacity(end - first);
        for (index, span) in (first..end).zip(&self.results) {
            let ticket = tickets[index];
            while live.next_if(|other| other.is_before(ticket)).is_some() {}
            if live.next_if_eq(&ticket).is_none() {
                continue;
            }
            if outcome.is_err() || !self.is_cut(index) {
                answers.push(Answer {
                    ticket,
                    span: *span,
                    at: 0,
                    total: span.words,
                });
                continue;
            }
            let call = &calls[index];
            let recipe = &recipes[call.recipe.0 as usize];
            let total = recipe.words_of(call.rows);
            let parts = recipe.parts(self.piece.part(calls, index), call.rows);
            answers.extend(parts.map(|(from, at, words)| Answer {
                ticket,
                span: Span {
                    at: span.at + from,
                    words,
                },
                at,
                total,
            }));
        }
        answers
    }

    /// Whether a call of it has a result to be read.
    pub(super) fn has_words(&self) -> bool {
        self.results.iter().any(|span| span.words > 0)
    }

    /// Its calls that need nothing of later pieces. Where this piece failed, so
    /// has a call that goes on behind it.
    pub(super) fn done<'a, T>(&self, load: &'a Load, outcome: &Result<T, Error>) -> &'a [Ticket] {
        let open = usize::from(outcome.is_ok() && self.piece.left > 0);
        &self.of(load).1[self.piece.first..self.piece.end - open]
    }

    /// The calls that its piece is cut of, and their tickets.
    pub(super) fn of<'a>(&self, load: &'a Load) -> (&'a [Call], &'a [Ticket]) {
        match self.is_aside {
            true => (&load.aside.calls, &load.aside.tickets),
            false => (&load.calls, &load.tickets),
        }
    }

    fn is_cut(&self, index: usize) -> bool {
        index == self.piece.first && self.piece.skipped > 0
            || index + 1 == self.piece.end && self.piece.left > 0
    }
}
