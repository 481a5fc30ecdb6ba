//! Scatter: pairs the calls of a chunk with their results.
//!
//! A call that was given up gets no answer. A call that is cut has an answer in each of its
//! chunks, and is done with the last one.

use std::ops::Range;

use super::payload::{Batch, Call};
use crate::batch::Ticket;
use crate::device::{Engine, Readback};
use crate::error::Error;
use crate::plan::{Chunk, KernelCounts, Recipe, RecipeId, WATCH};
use crate::tensor::Span;

/// What a chunk has for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The call.
    pub ticket: Ticket,
    /// Where the words lie in the readback.
    pub span: Span,
    /// Where the words belong in the call's result.
    pub at: u32,
    /// Words of the whole result.
    pub total: u32,
}

impl Answer {
    /// Whether the answer is the call's whole result.
    pub fn is_whole(&self) -> bool {
        self.span.words == self.total
    }

    /// Whether the result is complete with this answer.
    pub fn is_last(&self) -> bool {
        self.at + self.span.words == self.total
    }
}

/// A chunk in flight.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) chunk: Chunk,
    /// Where the results of each call will lie.
    pub(super) results: Vec<Span>,
    /// The device that computes the chunk.
    pub(super) engine: Engine,
    /// Whether the chunk is the CPU share of the batch, beside a GPU.
    pub(super) is_cpu_share: bool,
    /// Bytes of operands and results.
    pub(super) bytes: u64,
    pub(super) acceptance: Acceptance,
}

/// Whether a device has accepted a chunk, so that its writes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acceptance {
    /// The chunk was not submitted, and nothing of it runs.
    Failed,
    /// The chunk was submitted. The device may still refuse it as a whole, over a buffer of the
    /// program's.
    InDoubt,
    /// The chunk was submitted.
    Sure,
}

impl Sent {
    /// The answers to the calls of the chunk that are still waited for: one for each whole
    /// call, and one for each result of which a part came. A chunk that failed answers each
    /// of its calls whole.
    pub(super) fn answers<T, E>(
        &self,
        batch: &Batch,
        recipes: &[Recipe],
        outcome: &Result<T, E>,
    ) -> Vec<Answer> {
        let Chunk { first, end, .. } = self.chunk;
        let calls = self.calls(batch);
        let mut answers = Vec::with_capacity(end - first);
        for (index, span) in (first..end).zip(&self.results) {
            let Call {
                ticket,
                is_live,
                work,
                ..
            } = calls[index];
            if !is_live {
                continue;
            }
            let recipe = &recipes[work.planned.recipe.0 as usize];
            if outcome.is_err() || !self.is_cut(index) {
                let behind = if recipe.is_watched() { WATCH } else { 0 };
                let words = span.words - behind;
                answers.push(Answer {
                    ticket,
                    span: Span { at: span.at, words },
                    at: 0,
                    total: words,
                });
                continue;
            }
            let rows = work.planned.rows;
            let total = recipe.words_of(rows);
            let runs = recipe.result_runs(self.chunk.rows_of(calls, index), rows);
            answers.extend(runs.map(|run| Answer {
                ticket,
                span: Span {
                    at: span.at + run.from,
                    words: run.words,
                },
                at: run.to,
                total,
            }));
        }
        answers
    }

    /// The calls of the chunk that are still waited for and of which loops of a caller's function
    /// were stopped, each with the functions that have loops.
    pub(super) fn stopped(
        &self,
        batch: &Batch,
        recipes: &[Recipe],
        results: &Readback,
    ) -> Vec<(Ticket, Error)> {
        let Chunk { first, end, .. } = self.chunk;
        let calls = self.calls(batch)[first..end].iter().zip(&self.results);
        let stopped = calls.filter_map(|(call, span)| {
            let recipe = &recipes[call.work.planned.recipe.0 as usize];
            let is_stopped = call.is_live
                && recipe.is_watched()
                && results.word(span.at + span.words - WATCH) != 0;
            is_stopped.then(|| (call.ticket, Error::Endless(recipe.looping())))
        });
        stopped.collect()
    }

    /// What the kernels of the chunk do.
    pub(super) fn kernel_counts(&self, batch: &Batch, recipes: &[Recipe]) -> KernelCounts {
        let calls = self.calls(batch);
        let mut counts = KernelCounts::default();
        // Neighbors are often alike, and are counted once.
        let mut last: Option<((RecipeId, u32), KernelCounts)> = None;
        for index in self.chunk.first..self.chunk.end {
            let id = calls[index].work.planned.recipe;
            let kind = (id, self.chunk.rows_of(calls, index).rows);
            let own = match last {
                Some((known, own)) if known == kind => own,
                _ => recipes[id.0 as usize].kernel_counts(kind.1),
            };
            counts.add(own, 1.0);
            last = Some((kind, own));
        }
        counts
    }

    /// Whether a call of the chunk has a result to be read.
    pub(super) fn has_words(&self) -> bool {
        self.results.iter().any(|span| span.words > 0)
    }

    /// The places in the batch of the calls that are over with this chunk: with the last
    /// part of a result, or with any part that failed.
    pub(super) fn done<T, E>(&self, batch: &Batch, outcome: &Result<T, E>) -> Range<usize> {
        let open = usize::from(outcome.is_ok() && self.chunk.left > 0);
        let before = match self.is_cpu_share {
            true => batch.ahead().len(),
            false => 0,
        };
        before + self.chunk.first..before + self.chunk.end - open
    }

    /// The calls of the batch that the chunk is a part of.
    fn calls<'a>(&self, batch: &'a Batch) -> &'a [Call] {
        match self.is_cpu_share {
            true => batch.behind(),
            false => batch.ahead(),
        }
    }

    fn is_cut(&self, index: usize) -> bool {
        index == self.chunk.first && self.chunk.skipped > 0
            || index + 1 == self.chunk.end && self.chunk.left > 0
    }
}
