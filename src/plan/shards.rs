//! Reads tensors that are larger than a buffer, and so lie on the device in shards: a chunk
//! reads of each tensor the shard that has the chunk's rows.
//!
//! The session makes and frees shards.

use std::borrow::Borrow;

use super::merging::ChunkSource;
use super::slicing::GRAIN;
use super::{Call, Chunk, NamedTensors, Plan, Recipe, RowSlice, SetId};

/// A shard of many rows has a multiple of so many.
const COARSE: u32 = 256;

/// A tensor in shards, each a tensor of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardedTensor {
    /// The number of the tensor, which calls name; no buffer has this number.
    pub tensor: u32,
    /// Words of each shard but the last, which has the rest.
    pub words: u32,
    /// The numbers of the shards, in order.
    pub shards: Vec<u32>,
}

impl ShardedTensor {
    /// Words of each shard of a tensor of `words` words in rows of `row` words, if a shard has
    /// at most `most` words: the shards are about equal. `None` where not even a few rows
    /// fit.
    pub fn words_each(words: u32, row: u32, most: u64) -> Option<u32> {
        let most = u32::try_from(most.min(words.into())).unwrap_or(words);
        let fit = most.checked_div(row)?;
        // Chunks are cut between shards, also chunks of calls that coalesce rows.
        let grain = if fit < 4 * COARSE { GRAIN } else { COARSE };
        let fit = fit / grain * grain;
        let rows = words / row;
        let shards = rows.div_ceil(fit.max(1));
        let each = rows.div_ceil(shards.max(1)).next_multiple_of(grain);
        // The last shard has more than one row: one row might be computed by another program.
        let each = match each > grain && rows % each == 1 {
            true => each - grain,
            false => each,
        };
        (fit > 0).then_some(each * row)
    }
}

/// What the chunks of a batch are planned from.
#[derive(Clone, Copy)]
pub struct PlanSource<'a, C> {
    /// The structures of the session.
    pub recipes: &'a [Recipe],
    /// The calls of the batch, or values that hold the calls.
    pub calls: &'a [C],
    /// The resident tensors that calls name.
    pub tensors: NamedTensors<'a>,
    /// The tensors that lie on the device in shards.
    pub sharded: &'a [ShardedTensor],
}

impl Recipe {
    /// Whether calls can read a tensor in shards of so many words: calls that read one row of
    /// the tensor for each of their own rows can. `tensor` counts the tensors that a call
    /// names.
    pub fn reads_shards(&self, tensor: usize, words: u32) -> bool {
        let (Some(rows), each) = (self.rows(), self.rows_each(tensor, words)) else {
            return false;
        };
        if each == 0 {
            return !self.reads(tensor);
        }
        let last = rows % each;
        self.computes(each.min(rows)) && (last == 0 || self.computes(last))
    }

    /// Rows of a call that read one shard of a tensor; 0 where a shard does not begin with a
    /// row.
    fn rows_each(&self, tensor: usize, words: u32) -> u32 {
        let row = self.tensors.get(tensor).copied().unwrap_or(0);
        match row > 0 && words.is_multiple_of(row * GRAIN) {
            true => words / row,
            false => 0,
        }
    }
}

impl<C: Borrow<Call>> PlanSource<'_, C> {
    /// Shows `visit` each tensor that a call reads in shards: its number among the tensors
    /// that the call names, and the rows that read one shard.
    fn visit_sharded(&self, call: &Call, visit: &mut dyn FnMut(usize, &ShardedTensor, u32)) {
        let recipe = &self.recipes[call.recipe.0 as usize];
        for (place, tensor) in self.tensors.set(call).iter().enumerate() {
            for sharded in self.sharded {
                let rows = recipe.rows_each(place, sharded.words);
                if sharded.tensor == *tensor && rows > 0 {
                    visit(place, sharded, rows);
                }
            }
        }
    }

    /// The two chunks that a chunk is cut into if it reads several shards of a tensor, or has
    /// other calls beside one that reads shards.
    pub(super) fn cut_between_shards(&self, chunk: &Chunk) -> Option<[Chunk; 2]> {
        if self.sharded.is_empty() || chunk.first == chunk.end {
            return None;
        }
        let RowSlice { first, rows } = chunk.rows_of(self.calls, chunk.first);
        let mut fit = u32::MAX;
        for call in self.calls[chunk.first..chunk.end]
            .iter()
            .map(Borrow::borrow)
        {
            self.visit_sharded(call, &mut |_, _, each| fit = fit.min(each - first % each));
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

    /// Plans a chunk that reads no more than one shard of each tensor.
    pub(super) fn assemble(&self, chunk: &Chunk) -> Plan {
        let mut own = Vec::new();
        if chunk.end - chunk.first == 1 {
            let call = self.calls[chunk.first].borrow();
            let RowSlice { first, rows } = chunk.rows_of(self.calls, chunk.first);
            self.visit_sharded(call, &mut |place, sharded, each| {
                let shard = first / each;
                if first % each + rows <= each {
                    own.push((place, sharded.shards[shard as usize], shard * sharded.words));
                }
            });
        }
        if own.is_empty() {
            return super::assemble(self.recipes, self.calls, self.tensors, chunk);
        }
        let call = self.calls[chunk.first].borrow();
        let mut set: Box<[u32]> = self.tensors.set(call).into();
        let mut before = vec![0; set.len()];
        for (place, shard, words) in own {
            (set[place], before[place]) = (shard, words);
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
        let source = ChunkSource {
            recipes: self.recipes,
            calls: &[call],
            tensors: NamedTensors {
                sets: &[set],
                ..self.tensors
            },
            before: &before,
        };
        source.plan(&chunk)
    }
}
