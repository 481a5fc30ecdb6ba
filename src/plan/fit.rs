//! Whether a device can hold a plan, and plans that it can.

use std::borrow::Borrow;

use super::{Asked, Call, Chunk, MOST_THREADS, Plan, Slot, Table};
use crate::tensor::WORD;

/// What a chunk may need at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Bytes in one slot.
    pub slot_bytes: u64,
    /// Bytes in all slots, with what travels so often.
    pub bytes: u64,
    /// How often operands and results are in memory at once; what is in between is
    /// there once, since consecutive chunks use the same slots.
    pub copies: u64,
    /// Threads of one dispatch.
    pub threads: u64,
}

/// Plans the chunk that is the last of these, and takes it from them: halved,
/// with the other half left there, as often as it is too large and can be cut. One
/// that reads parts of a tensor reads one of them.
pub fn assemble_next<C: Borrow<Call> + Copy>(
    asked: Asked<'_, C>,
    rest: &mut Vec<Chunk>,
    limits: &ChunkLimits,
) -> Option<(Chunk, Plan)> {
    loop {
        let chunk = rest.pop()?;
        if let Some([front, back]) = asked.cut_between_parts(&chunk) {
            rest.extend([back, front]);
            continue;
        }
        let plan = asked.assemble(&chunk);
        if plan.fits(limits) {
            return Some((chunk, plan));
        }
        match chunk.halve(asked.recipes, asked.calls) {
            Some([front, back]) => rest.extend([back, front]),
            None => return Some((chunk, plan)),
        }
    }
}

/// More blocks than calls have, and words that an entry has besides its own.
const BLOCKS: u64 = 8;

impl Plan {
    /// Bytes in all slots, without tables.
    pub fn bytes(&self) -> u64 {
        let words = self.slots.iter().map(|words| u64::from(*words));
        words.sum::<u64>() * u64::from(WORD)
    }

    /// Bytes of operands and results.
    pub fn traveling_bytes(&self) -> u64 {
        let words = [Slot::INPUTS, Slot::RESULTS].map(|slot| u64::from(self.words(slot)));
        words.iter().sum::<u64>() * u64::from(WORD)
    }

    /// Whether a device of these limits can hold it, tables included.
    pub fn fits(&self, limits: &ChunkLimits) -> bool {
        let bytes = self.bytes() + self.traveling_bytes() * (limits.copies - 1);
        let entries = self.dispatches().map(|work| {
            let words = work.entries.len() as u64 + work.segments.len() as u64 * BLOCKS;
            words * BLOCKS * u64::from(WORD)
        });
        let all = bytes + entries.sum::<u64>();
        let threads = limits.threads.min(MOST_THREADS);
        let least = limits.slot_bytes.min(limits.bytes).min(threads / 16);
        if all <= least / 2 {
            return true; // Whatever the tables are.
        }
        let mut tables = 0;
        for work in self.dispatches() {
            let table = Table::of(work);
            if table.threads > threads {
                return false;
            }
            // Its entries, and its params at their alignment.
            tables += table.words * u64::from(WORD) + 256;
        }
        // They lie behind the operands, in the first slot.
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
