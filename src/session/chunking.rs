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
            chunks = chunks
                .iter()
                .flat_map(|chunk| self.apart(batch.ahead(), chunk))
                .collect();
        }
        chunks.reverse();
        chunks
    }

    /// The parts of a chunk for the CPU. A call that applies a function of a caller's is a part of
    /// its own, because the function may fail, and fails the whole part.
    fn apart(&self, calls: &[Call], chunk: &Chunk) -> Vec<Chunk> {
        let is_apart = |call: &Call| {
            let recipe = &self.recipes[call.work.planned.recipe.0 as usize];
            recipe.has_caller_fns()
        };
        let mut parts = vec![*chunk];
        for at in chunk.first + 1..chunk.end {
            if is_apart(&calls[at - 1]) || is_apart(&calls[at]) {
                let last = parts.last_mut().expect("there is one");
                let rest = Chunk {
                    first: at,
                    skipped: 0,
                    ..*last
                };
                *last = Chunk {
                    end: at,
                    left: 0,
                    ..*last
                };
                parts.push(rest);
            }
        }
        parts
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
