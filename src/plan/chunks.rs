//! Cuts a batch into chunks, each planned, sent and answered by itself, so that copies, the
//! link and the device work at the same time.
//!
//! A small batch is one chunk. Calls are cut between rows only. A batch of networks, of whose
//! time copies are the smaller part, stays whole up to a larger size. What a device cannot
//! hold is not decided here; a chunk that is too large is halved ([`Chunk::halve`]).

use std::borrow::Borrow;

use super::slicing::GRAIN;
use super::{Call, Recipe, RowSlice};
use crate::tensor::WORD;

/// How large chunks should be, in bytes of operands or of results, whichever are more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize {
    /// A batch no larger than this stays whole.
    pub whole: u64,
    /// About the size of each chunk of a larger batch.
    pub target: u64,
}

/// How large chunks should be, by what their time is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSizes {
    /// Where all calls are computed row by row: the time is in copies.
    pub by_row: ChunkSize,
    /// Where other calls are among these: the time may be in arithmetic.
    pub others: ChunkSize,
}

/// Consecutive calls of a batch, the first and the last of which may be cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the first call.
    pub first: usize,
    /// Number behind the last call.
    pub end: usize,
    /// Rows of the first call that are in earlier chunks.
    pub skipped: u32,
    /// Rows of the last call that are left to later chunks.
    pub left: u32,
}

/// Row counts that are tried for a cut.
const TRIES: usize = 4;

/// A call of a network is cut only where it weighs so many chunks: products of few rows keep a
/// GPU less busy.
const COARSE: u64 = 8;

impl ChunkSize {
    /// The same bytes for whole batches as for chunks.
    pub const fn of(bytes: u64) -> ChunkSize {
        ChunkSize {
            whole: bytes,
            target: bytes,
        }
    }

    /// Half the size, so many times over.
    fn halved(self, times: u32) -> ChunkSize {
        ChunkSize {
            whole: self.whole >> times,
            target: self.target >> times,
        }
    }
}

impl ChunkSizes {
    /// Every batch stays whole.
    pub const WHOLE: ChunkSizes = ChunkSizes::equal(ChunkSize::of(u64::MAX));

    /// One size, whatever the calls compute.
    pub const fn equal(size: ChunkSize) -> ChunkSizes {
        ChunkSizes {
            by_row: size,
            others: size,
        }
    }

    /// Half the sizes, so many times over.
    pub fn halved(self, times: u32) -> ChunkSizes {
        ChunkSizes {
            by_row: self.by_row.halved(times),
            others: self.others.halved(times),
        }
    }
}

impl Chunk {
    /// The chunk of all calls.
    pub fn all<C>(calls: &[C]) -> Chunk {
        Chunk {
            end: calls.len(),
            ..Chunk::default()
        }
    }

    /// Two chunks of about half of the words each; `None` where the chunk cannot be cut.
    pub fn halve<C: Borrow<Call>>(&self, recipes: &[Recipe], calls: &[C]) -> Option<[Chunk; 2]> {
        let recipe = |index: usize| &recipes[calls[index].borrow().recipe.0 as usize];
        if self.end - self.first == 1 {
            let RowSlice { rows, .. } = self.rows_of(calls, self.first);
            let fit = recipe(self.first).cut(rows, rows / 2)?;
            return Some(self.cut_after(rows, fit));
        }
        let words = |index: usize| {
            let RowSlice { rows, .. } = self.rows_of(calls, index);
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

    /// The two sides of a cut of the only call, after the first `fit` of its `rows`.
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

    /// The rows of one of the calls that are in the chunk.
    pub fn rows_of<C: Borrow<Call>>(&self, calls: &[C], index: usize) -> RowSlice {
        let first = if index == self.first { self.skipped } else { 0 };
        let left = if index + 1 == self.end { self.left } else { 0 };
        RowSlice {
            first,
            rows: calls[index].borrow().rows - first - left,
        }
    }
}

impl Recipe {
    /// Where a call's last `rows` rows are cut if the first side should have `about` so many: a
    /// multiple of [`GRAIN`], which keeps operands of any width at multiples of 16 bytes.
    /// `None` where these rows cannot be cut.
    pub(super) fn cut(&self, rows: u32, about: u32) -> Option<u32> {
        let first = (about / GRAIN * GRAIN).max(GRAIN);
        if self.is_by_row() {
            return (first < rows).then_some(first);
        }
        self.rows?;
        let suits = |rows| self.computes(rows);
        // The rows on either side need the program of the whole call, and a lone row may have another.
        let near = (first..rows.saturating_sub(GRAIN - 1)).step_by(GRAIN as usize);
        near.take(TRIES)
            .find(|first| suits(*first) && (rows - first > *first || suits(rows - first)))
    }
}

/// Cuts the calls of a batch. There is at least one chunk, and the chunks cover each row once,
/// in order.
pub fn chunks<C: Borrow<Call>>(recipes: &[Recipe], calls: &[C], sizes: ChunkSizes) -> Vec<Chunk> {
    let (mut up, mut down, mut all) = (0, 0, 0);
    let mut size = sizes.by_row;
    for call in calls.iter().map(Borrow::borrow) {
        let recipe = &recipes[call.recipe.0 as usize];
        let (sent, asked) = match recipe.is_by_row() {
            true => (call.inputs.words.into(), recipe.result_words(call.rows)),
            false => {
                size = sizes.others;
                [recipe.weight(call.rows); 2].into()
            }
        };
        up += sent;
        down += asked;
        all += sent.max(asked);
    }
    if up.max(down) * u64::from(WORD) <= size.whole {
        return vec![Chunk::all(calls)];
    }
    let target = size.target / u64::from(WORD);
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
            // The chunk is full, and ends within this call or in front of it.
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

/// The space of the chunk that is being filled, in words.
struct Space {
    /// The size that the chunk should have.
    size: u64,
    /// The part of `size` that is still free.
    room: u64,
    /// Words of the batch that are in no chunk yet.
    remaining: u64,
}

impl Space {
    /// The space of an even share of what remains. A share a little above the target is better
    /// than one more chunk.
    fn of(remaining: u64, target: u64) -> Space {
        let most = target.saturating_add(target / 8);
        let size = remaining.div_ceil(remaining.div_ceil(most).max(1));
        Space {
            size,
            room: size,
            remaining,
        }
    }

    /// Takes as many of a call's last `rows` rows as fit, and returns how many.
    fn take(&mut self, recipe: &Recipe, rows: u32) -> u32 {
        let heavy = recipe.weight(rows);
        let (fit, taken) = if heavy <= self.room {
            (rows, heavy)
        } else {
            let fit = self.fitting(recipe, rows, heavy);
            // Without a row in the chunk, the call's fixed words are not in the chunk either.
            (fit, if fit > 0 { recipe.weight(fit) } else { 0 })
        };
        self.room = self.room.saturating_sub(taken);
        self.remaining = self.remaining.saturating_sub(taken);
        fit
    }

    /// How many rows of a call that is too heavy the chunk takes: some or none of a call that
    /// can be cut, all of another one if the chunk is empty.
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
