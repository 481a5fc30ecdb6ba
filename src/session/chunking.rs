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
    /// All chunks of a batch, the first one last. Calls keep their order, so that each finds what
    /// those before it wrote, however the batch is cut.
    pub(super) fn chunks(&self, batch: &Batch) -> Vec<Chunk> {
        let mut chunks = plan::chunks(self.recipes, batch.ahead(), self.sizes);
        chunks.reverse();
        chunks
    }

    /// Takes the next chunk of a batch from the `rest`, and plans it.
    pub(super) fn next(&self, batch: &Batch, rest: &mut Vec<Chunk>) -> Option<(Chunk, Plan)> {
        let source = PlanSource {
            recipes: self.recipes,
            calls: batch.ahead(),
            tensors: batch.payload.named(),
            sharded: self.sharded,
        };
        plan::assemble_next(source, rest, &self.limits)
    }
}
