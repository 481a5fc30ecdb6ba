//! Cuts a batch into chunks, each planned, sent and answered by itself, so
//! that copies, the link and the device work at once.
//!
//! A small batch is one chunk, and costs nothing more for it. Only rows are
//! cut, never what an op reads together; a batch of networks, where copies are the
//! smaller part, is small for longer. What is still too large for a device is
//! halved until it is not ([`Chunk::halve`]).

use std::borrow::Borrow;

use super::slicing::GRAIN;
use super::{Call, Part, Recipe};
use crate::tensor::WORD;

/// How large chunks should be, in bytes of operands or of results, whichever
/// are more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSizes {
    /// A batch no larger than this stays whole.
    pub whole: u64,
    /// About the size of the chunks of a larger one.
    pub target: u64,
}

/// Consecutive calls of a batch. The first and the last may be cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Number of its first call.
    pub first: usize,
    /// Number behind its last call.
    pub end: usize,
    /// Rows of the first call that are in the chunks before.
    pub skipped: u32,
    /// Rows of the last call that are left to the chunks behind.
    pub left: u32,
}

/// Places that are looked at for a cut.
const TRIES: usize = 4;

/// A network is cut for the sake of overlap where it weighs so many chunks: what
/// is multiplied in small parts keeps a GPU less busy.
const COARSE: u64 = 8;

impl ChunkSizes {
    /// Every batch stays whole.
    pub const WHOLE: ChunkSizes = ChunkSizes {
        whole: u64::MAX,
        target: u64::MAX,
    };
}

impl Chunk {
    /// All calls.
    pub fn all<C>(calls: &[C]) -> Chunk {
        Chunk {
            end: calls.len(),
            ..Chunk::default()
        }
    }

    /// Two chunks of about half of its words each; `None` where it cannot be cut.
    pub fn halve<C: Borrow<Call>>(&self, recipes: &[Recipe], calls: &[C]) -> Option<[Chunk; 2]> {
        let recipe = |index: usize| &recipes[calls[index].borrow().recipe.0 as usize];
        if self.end - self.first == 1 {
            let Part { rows, .. } = self.part(calls, self.first);
            let fit = recipe(self.first).cut(rows, rows / 2)?;
            return Some(self.cut_after(rows, fit));
        }
        let words = |index: usize| {
            let Part { rows, .. } = self.part(calls, index);
            recipe(index).input_words(rows) + recipe(index).result_words(rows)
        };
        let half = (self.first..self.end).map(words).sum::<u64>() / 2;
        let (mut middle, mut sum) = (self.first + 1, words(self.first));
        while middle + 1 < self.end && sum + words(middle) <= half {
            sum += words(middle);
            middle += 1;
        }
        let front = Chunk {
            end: middle,
            left: 0,
            ..*self
        };
        let back = Chunk {
            first: middle,
            skipped: 0,
            ..*self
        };
        Some([front, back])
    }

    /// The two sides of a cut after the first `fit` of its only call's `rows`.
    pub(super) fn cut_after(&self, rows: u32, fit: u32) -> [Chunk; 2] {
        let front = Chunk {
            left: self.left + rows - fit,
            ..*self
        };
        let back = Chunk {
            skipped: self.skipped + fit,
            ..*self
        };
        [front, back]
    }

    /// The rows that it has of a call of its range.
    pub fn part<C: Borrow<Call>>(&self, calls: &[C], index: usize) -> Part {
        let first = if index == self.first { self.skipped } else { 0 };
        let left = if index + 1 == self.end { self.left } else { 0 };
        Part {
            first,
            rows: calls[index].borrow().rows - first - left,
        }
    }
}

impl Recipe {
    /// How many of a call's last `rows` rows go first if these are cut after
    /// about so many: a multiple of [`GRAIN`], which keeps all operands at
    /// multiples of 16 bytes whatever their width. `None` where they cannot be cut.
    pub(super) fn cut(&self, rows: u32, about: u32) -> Option<u32> {
        let first = (about / GRAIN * GRAIN).max(GRAIN);
        if self.is_by_row() {
            return (first < rows).then_some(first);
        }
        self.rows?;
        let suits = |rows| self.computes(rows);
        // Where both sides are computed by the same program; one row need not be.
        let near = (first..rows.saturating_sub(GRAIN - 1)).step_by(GRAIN as usize);
        near.take(TRIES)
            .find(|first| suits(*first) && (rows - first > *first || suits(rows - first)))
    }
}

/// Cuts the calls of a batch. The chunks cover each row once, in order, and
/// there is at least one.
pub fn chunks<C: Borrow<Call>>(recipes: &[Recipe], calls: &[C], sizes: ChunkSizes) -> Vec<Chunk> {
    let (mut up, mut down, mut all) = (0, 0, 0);
    for call in calls.iter().map(Borrow::borrow) {
        let recipe = &recipes[call.recipe.0 as usize];
        let (sent, asked) = match recipe.is_by_row() {
            true => (call.inputs.words.into(), recipe.result_words(call.rows)),
            false => [recipe.weight(call.rows); 2].into(),
        };
        up += sent;
        down += asked;
        all += sent.max(asked);
    }
    if up.max(down) * u64::from(WORD) <= sizes.whole {
        return vec![Chunk::all(calls)];
    }
    let target = sizes.target / u64::from(WORD);
    let mut space = Space::of(all, target);
    let mut open = Chunk::default();
    let mut chunks = Vec::new();
    for (index, call) in calls.iter().map(Borrow::borrow).enumerate() {
        let recipe = &recipes[call.recipe.0 as usize];
        let mut rows = call.rows;
        loop {
            let fit = space.take(recipe, rows);
            rows -= fit;
            if rows == 0 {
                break;
            }
            // The chunk is full, and ends inside of this call or before it.
            let is_cut = fit > 0;
            open.end = index + usize::from(is_cut);
            open.left = if is_cut { rows } else { 0 };
            chunks.push(open);
            open = Chunk {
                first: index,
                skipped: call.rows - rows,
                ..Chunk::default()
            };
            space = Space::of(space.remaining, target);
        }
    }
    open.end = calls.len();
    chunks.push(open);
    chunks
}

/// The space of one chunk, in words.
struct Space {
    /// What it should take.
    size: u64,
    /// What it can still take.
    room: u64,
    /// What is in no chunk yet, in this one or behind it.
    remaining: u64,
}

impl Space {
    /// An even share of what remains. A little above the target is better than
    /// one more chunk.
    fn of(remaining: u64, target: u64) -> Space {
        let most = target.saturating_add(target / 8);
        let size = remaining.div_ceil(remaining.div_ceil(most).max(1));
        Space {
            size,
            room: size,
            remaining,
        }
    }

    /// Takes of a call's last `rows` rows as many as fit.
    fn take(&mut self, recipe: &Recipe, rows: u32) -> u32 {
        let heavy = recipe.weight(rows);
        let (fit, taken) = if heavy <= self.room {
            (rows, heavy)
        } else {
            let fit = self.fitting(recipe, rows, heavy);
            // What carries its words whatever its rows has none of them here.
            (fit, if fit > 0 { recipe.weight(fit) } else { 0 })
        };
        self.room = self.room.saturating_sub(taken);
        self.remaining = self.remaining.saturating_sub(taken);
        fit
    }

    /// Of a call that is too heavy: a part of it or none of it; of what cannot
    /// be cut, all where the chunk would stay empty.
    fn fitting(&self, recipe: &Recipe, rows: u32, heavy: u64) -> u32 {
        let is_empty = self.room == self.size;
        if !recipe.is_by_row() {
            if !is_empty {
                return 0;
            }
            if heavy / COARSE <= self.size {
                return rows;
            }
            let share = u64::from(rows) * self.size * COARSE / heavy;
            let share = u32::try_from(share).unwrap_or(rows);
            return recipe.cut(rows, share).unwrap_or(rows);
        }
        // A cut costs the host a little, and a small part is not worth it.
        if !is_empty && (heavy <= self.size / 2 || self.room <= self.size / 4) {
            return 0;
        }
        let share = u64::from(rows) * self.room / heavy;
        let fit = u32::try_from(share).unwrap_or(rows) / GRAIN * GRAIN;
        if is_empty {
            fit.max(GRAIN).min(rows)
        } else {
            fit
        }
    }
}
