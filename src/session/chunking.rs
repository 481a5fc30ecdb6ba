//! Chunking: what of a batch goes in one submission.
//!
//! How many chunks are in flight is the business of `launch`, and where rows may be cut is
//! the planner's.

use super::payload::Batch;
use crate::plan::{self, Chunk, ChunkLimits, ChunkSizes, Plan, PlanSource, Recipe, ShardedTensor};

/// What decides how a batch is cut.
pub(super) struct Chunker<'a> {
    /// The structures of the session.
    pub(super) recipes: &'a [Recipe],
    /// The shards of tensors that no buffer holds.
    pub(super) sharded: &'a [ShardedTensor],
    /// How large chunks should be.
    pub(super) sizes: ChunkSizes,
    /// What a chunk may need at most.
    pub(super) limits: ChunkLimits,
}

impl Chunker<'_> {
    /// All chunks of a batch, the first one last.
    pub(super) fn chunks(&self, batch: &Batch) -> Vec<Chunk> {
        let (recipes, sizes) = (self.recipes, self.sizes);
        let (leading, others) = batch.ahead().split_at(batch.front());
        let mut chunks = match batch.front() {
            0 => Vec::new(),
            _ => plan::chunks(recipes, leading, sizes),
        };
        if chunks.is_empty() || !others.is_empty() {
            let behind = plan::chunks(recipes, others, sizes).into_iter();
            chunks.extend(behind.map(|chunk| Chunk {
                first: chunk.first + leading.len(),
                end: chunk.end + leading.len(),
                ..chunk
            }));
        }
        chunks.reverse();
        chunks
    }

    /// Takes the next chunk of a batch from the `rest`, and plans it. A batch that is cut
    /// before a call which writes to a tensor is cut anew, with all such calls in front:
    /// the whole batch finds what is written, however the batch is cut.
    pub(super) fn next(&self, batch: &mut Batch, rest: &mut Vec<Chunk>) -> Option<(Chunk, Plan)> {
        loop {
            let source = PlanSource {
                recipes: self.recipes,
                calls: batch.ahead(),
                sets: &batch.payload.sets,
                sharded: self.sharded,
            };
            let (chunk, plan) = plan::assemble_next(source, rest, &self.limits)?;
            let is_first = batch.front() == 0 && chunk.first == 0 && chunk.skipped == 0;
            if !is_first || !batch.move_writers_to_front(self.recipes, chunk.end) {
                return Some((chunk, plan));
            }
            *rest = self.chunks(batch);
        }
    }
}
