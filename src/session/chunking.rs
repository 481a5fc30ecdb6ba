//! Chunking: what of a batch goes in one submission.
//!
//! How many chunks are in flight is the business of `launch`, and where rows may be cut is
//! the planner's.

use super::payload::{Batch, Call};
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
        if self.sizes == ChunkSizes::WHOLE {
            self.part(batch.ahead(), &mut chunks);
        }
        chunks.reverse();
        chunks
    }

    /// Parts the one chunk for the CPU. A call that applies a function of a caller's is a chunk of its
    /// own, because the function may fail, and fails the whole chunk.
    fn part(&self, calls: &[Call], chunks: &mut Vec<Chunk>) {
        let is_apart = |call: &Call| {
            let recipe = &self.recipes[call.work.planned.recipe.0 as usize];
            recipe.has_caller_fns()
        };
        for at in 1..calls.len() {
            if is_apart(&calls[at - 1]) || is_apart(&calls[at]) {
                let last = chunks.last_mut().expect("there is one");
                let first = std::mem::replace(&mut last.first, at);
                let part = Chunk {
                    first,
                    end: at,
                    ..*last
                };
                chunks.insert(chunks.len() - 1, part);
            }
        }
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
