//! Whether a device can hold a plan. A chunk whose plan is too large is halved until it is not.

use std::borrow::Borrow;

use super::{Call, Chunk, MOST_THREADS, Plan, PlanSource, Slot, Table};
use crate::tensor::WORD;

/// What a chunk may need at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Bytes in one slot.
    pub slot_bytes: u64,
    /// Bytes in all slots, operands and results counted as often as `copies` says.
    pub bytes: u64,
    /// How often operands and results are in memory at once. Intermediates are there once,
    /// because consecutive chunks use the same slots.
    pub copies: u64,
    /// Threads of one dispatch.
    pub threads: u64,
}

/// Takes the last chunk of `rest` and plans it. A chunk that is too large is halved first, as
/// often as that is possible, and the other halves stay in `rest`. A chunk that reads shards
/// of a tensor is cut so that it reads one shard.
pub fn assemble_next<C: Borrow<Call> + Copy>(
    source: PlanSource<'_, C>,
    rest: &mut Vec<Chunk>,
    limits: &ChunkLimits,
) -> Option<(Chunk, Plan)> {
    loop {
        let chunk = rest.pop()?;
        if let Some([front, back]) = source.cut_between_shards(&chunk) {
            rest.extend([back, front]);
            continue;
        }
        let plan = source.assemble(&chunk);
        if plan.fits(limits) {
            return Some((chunk, plan));
        }
        match chunk.halve(source.recipes, source.calls) {
            Some([front, back]) => rest.extend([back, front]),
            None => return Some((chunk, plan)),
        }
    }
}

/// More than the blocks of threads that a segment has on average, and more than the words of
/// an entry in front of the segment's own.
const MOST_BLOCKS: u64 = 8;

impl Plan {
    /// Bytes in all slots, without segment tables.
    pub fn bytes(&self) -> u64 {
        let words = self.slots.iter().map(|words| u64::from(*words));
        words.sum::<u64>() * u64::from(WORD)
    }

    /// Bytes of operands and results.
    pub fn traveling_bytes(&self) -> u64 {
        let words = [Slot::INPUTS, Slot::RESULTS].map(|slot| u64::from(self.words(slot)));
        words.iter().sum::<u64>() * u64::from(WORD)
    }

    /// Whether a device of these limits can hold the plan, segment tables included.
    pub fn fits(&self, limits: &ChunkLimits) -> bool {
        let bytes = self.bytes() + self.traveling_bytes() * (limits.copies - 1);
        let entries = self.dispatches().map(|work| {
            let words = work.entries.len() as u64 + work.segments.len() as u64 * MOST_BLOCKS;
            words * MOST_BLOCKS * u64::from(WORD)
        });
        let all = bytes + entries.sum::<u64>();
        let threads = limits.threads.min(MOST_THREADS);
        let least = limits.slot_bytes.min(limits.bytes).min(threads / 16);
        if all <= least / 2 {
            return true; // A bound of the tables suffices: they need not be laid out.
        }
        let mut tables = 0;
        for work in self.dispatches() {
            let table = Table::of(work);
            if table.threads > threads {
                return false;
            }
            // The entries, and the params at their alignment.
            tables += table.words * u64::from(WORD) + 256;
        }
        // The tables lie behind the operands, in the first slot.
        let room = |slot| {
            limits
                .slot_bytes
                .saturating_sub(if slot == 0 { tables } else { 0 })
        };
        let mut slots = self.slots.iter().enumerate();
        bytes + tables <= limits.bytes
            && slots.all(|(slot, words)| u64::from(*words) * u64::from(WORD) <= room(slot))
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "fit_tests.rs"]
mod tests;
