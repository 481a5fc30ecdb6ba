//! Tensors that are more than a buffer holds: they lie on the device in parts, and
//! a chunk reads of each the one that has its rows.
//!
//! Which parts there are is not decided here.

use std::borrow::Borrow;

use super::groups::Batch;
use super::slicing::GRAIN;
use super::{Call, Chunk, Part, Plan, Recipe, SetId};

/// Parts of many rows have multiples of so many.
const COARSE: u32 = 256;

/// A tensor in parts, each a tensor of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parted {
    /// The tensor that calls name; there is nothing under its number.
    pub tensor: u32,
    /// Words of each part but the last, which has the rest.
    pub words: u32,
    /// The parts, in order.
    pub parts: Vec<u32>,
}

impl Parted {
    /// Words of each part of a tensor of `words` words, in rows of `row` words of
    /// which `most` words fit a part: about equal ones. `None` where a few rows do not
    /// fit.
    pub fn words_each(words: u32, row: u32, most: u64) -> Option<u32> {
        let most = u32::try_from(most.min(words.into())).unwrap_or(words);
        let fit = most.checked_div(row)?;
        // Chunks are cut there, also those of calls that take some rows as one.
        let grain = if fit < 4 * COARSE { GRAIN } else { COARSE };
        let fit = fit / grain * grain;
        let rows = words / row;
        let parts = rows.div_ceil(fit.max(1));
        let each = rows.div_ceil(parts.max(1)).next_multiple_of(grain);
        // One row might be computed in another way than many.
        let each = match each > grain && rows % each == 1 {
            true => each - grain,
            false => each,
        };
        (fit > 0).then_some(each * row)
    }
}

/// What a batch is planned from.
#[derive(Clone, Copy)]
pub struct Asked<'a, C> {
    /// The structures of the session.
    pub recipes: &'a [Recipe],
    /// The calls of the batch, or what holds them.
    pub calls: &'a [C],
    /// The sets of tensors that they read.
    pub sets: &'a [Box<[u32]>],
    /// Those of them that lie on the device in parts.
    pub parted: &'a [Parted],
}

impl Recipe {
    /// Whether calls can read a tensor, the one of this place among those that they
    /// name, in parts of so many words: those that read a row of it for each of theirs.
    pub fn reads_parts(&self, place: usize, words: u32) -> bool {
        let (Some(rows), each) = (self.rows(), self.rows_each(place, words)) else {
            return false;
        };
        if each == 0 {
            return !self.reads(place);
        }
        let last = rows % each;
        self.computes(each.min(rows)) && (last == 0 || self.computes(last))
    }

    /// Rows of a call that a part of a tensor is for; 0 where parts and rows do not
    /// begin together.
    fn rows_each(&self, place: usize, words: u32) -> u32 {
        let row = self.resident_row(place);
        match row > 0 && words.is_multiple_of(row * GRAIN) {
            true => words / row,
            false => 0,
        }
    }
}

impl<C: Borrow<Call>> Asked<'_, C> {
    /// Shows `each` the tensors that a call reads in parts: their places among those
    /// that it names, and the rows that a part is for.
    fn look(&self, call: &Call, each: &mut dyn FnMut(usize, &Parted, u32)) {
        let Some(set) = self.sets.get(call.set.0 as usize) else {
            return;
        };
        let recipe = &self.recipes[call.recipe.0 as usize];
        for (place, tensor) in set.iter().enumerate() {
            for parted in self.parted {
                let rows = recipe.rows_each(place, parted.words);
                if parted.tensor == *tensor && rows > 0 {
                    each(place, parted, rows);
                }
            }
        }
    }

    /// Two chunks where a chunk reads several parts of a tensor, or has other calls
    /// beside one that reads parts.
    pub(super) fn cut_between_parts(&self, chunk: &Chunk) -> Option<[Chunk; 2]> {
        if self.parted.is_empty() || chunk.first == chunk.end {
            return None;
        }
        let Part { first, rows } = chunk.part(self.calls, chunk.first);
        let mut fit = u32::MAX;
        for call in self.calls[chunk.first..chunk.end]
            .iter()
            .map(Borrow::borrow)
        {
            self.look(call, &mut |_, _, each| fit = fit.min(each - first % each));
        }
        if fit == u32::MAX {
            return None;
        }
        if chunk.end - chunk.first > 1 {
            return chunk.halve(self.recipes, self.calls);
        }
        let recipe = &self.recipes[self.calls[chunk.first].borrow().recipe.0 as usize];
        let is_cut = fit < rows && recipe.computes(fit) && recipe.computes(rows - fit);
        is_cut.then(|| chunk.cut_after(rows, fit))
    }

    /// Plans a chunk that reads no more than one part of each tensor.
    pub(super) fn assemble(&self, chunk: &Chunk) -> Plan {
        let mut own = Vec::new();
        if chunk.end - chunk.first == 1 {
            let call = self.calls[chunk.first].borrow();
            let Part { first, rows } = chunk.part(self.calls, chunk.first);
            self.look(call, &mut |place, parted, each| {
                let part = first / each;
                if first % each + rows <= each {
                    own.push((place, parted.parts[part as usize], part * parted.words));
                }
            });
        }
        if own.is_empty() {
            let batch = Batch {
                recipes: self.recipes,
                calls: self.calls,
                sets: self.sets,
                before: &[],
            };
            return batch.plan(chunk);
        }
        let call = self.calls[chunk.first].borrow();
        let mut set = self.sets[call.set.0 as usize].clone();
        let mut before = vec![0; set.len()];
        for (place, part, words) in own {
            (set[place], before[place]) = (part, words);
        }
        let call = Call {
            set: SetId(0),
            ..*call
        };
        let chunk = Chunk {
            first: 0,
            end: 1,
            ..*chunk
        };
        let batch = Batch {
            recipes: self.recipes,
            calls: &[call],
            sets: &[set],
            before: &before,
        };
        batch.plan(&chunk)
    }
}
