//! Queries against the vectors of an index: the twin of `top_k_scan.wgsl` and
//! `top_k_merge.wgsl`, band after band.
//!
//! A score is four sums, each of every fourth product, so that its bits depend on
//! the two vectors alone.

#[cfg(not(target_feature = "simd128"))]
#[path = "scores_scalar.rs"]
mod scores;
#[cfg(target_feature = "simd128")]
#[path = "scores_vectors.rs"]
mod scores;

use self::scores::compare;
use super::launch_memory::Memory;
use super::parallel::{Size, Task, Work, share};
use super::program::Output;
use crate::kernel::searching::{BLOCK, BLOCK_HEADER, Mask, NOBODY, Scan, elements};
use crate::plan::{Dispatch, Operand, Slot};
use crate::tensor::Packing;

/// Vectors of a block.
const VECTORS: usize = BLOCK as usize;

/// Words of an entry in front of the words of its queries.
const QUERY: usize = 6;

/// A key and an id as one number: the lower is better.
type Item = u64;

/// Compares the queries of every group with a page.
pub(super) fn scan(work: &Dispatch, scan: &Scan, memory: &Memory<'_>, slots: &mut [Vec<u32>]) {
    let mut output = take_output(work, memory, slots);
    let inputs = memory.words(Slot::INPUTS, slots);
    let page = match work.operands.get(1) {
        Some(Operand::Rows { slot, .. }) => memory.words(*slot, slots),
        Some(Operand::Scalar) | None => &[],
    };
    let behind = work.entries.len() / work.segments.len();
    let group = |call: usize| Group {
        scan: *scan,
        inputs,
        page,
        entry: &work.entries[call * behind..][..behind],
    };
    let run = |task: Task, output: Output<'_>| {
        for call in task.calls {
            let group = group(call);
            let bands = task.lines.clone().unwrap_or(0..group.bands());
            let result = work.segments[call].result as usize;
            // Where a group is cut, this part of the output begins behind its first band.
            for band in bands {
                let words = group.line();
                group.scan(
                    band,
                    &mut output.words[result + band * words - output.start..][..words],
                );
            }
        }
    };
    let size = |call: usize| {
        let group = group(call);
        let [quads, _, _, _, band, queries] = group.sizes();
        Some(Size {
            start: work.segments[call].result as usize,
            lines: group.bands(),
            words: group.line(),
            work: 4 * quads * band * VECTORS * queries,
        })
    };
    let all = Work {
        calls: work.segments.len(),
        size: &size,
        run: &run,
    };
    share(&all, &mut output);
    slots[work.output.0 as usize] = output;
}

/// Merges the nearest vectors that the bands kept, for every query.
pub(super) fn merge(work: &Dispatch, memory: &Memory<'_>, slots: &mut [Vec<u32>]) {
    let mut output = take_output(work, memory, slots);
    let kept = match work.operands.first() {
        Some(Operand::Rows { slot, .. }) => memory.words(*slot, slots),
        Some(Operand::Scalar) | None => &[],
    };
    for (segment, entry) in work.segments.iter().zip(work.entries.chunks_exact(4)) {
        let [from, line, bands, count] = [0, 1, 2, 3].map(|k| entry[k] as usize);
        let mut best = vec![Item::MAX; count];
        for band in 0..bands {
            let items = &kept[from + band * line..][..2 * count];
            for item in items.chunks_exact(2) {
                offer(&mut best, Item::from(item[0]) << 32 | Item::from(item[1]));
            }
        }
        let (ids, scores) = output[segment.result as usize..][..2 * count].split_at_mut(count);
        for ((id, score), item) in ids.iter_mut().zip(scores).zip(best) {
            let [low, high] = halves(item);
            (*id, *score) = (low, score_of(high));
        }
    }
    slots[work.output.0 as usize] = output;
}

/// Takes the output out of its slot, so that other slots can be read while it is written.
fn take_output(work: &Dispatch, memory: &Memory<'_>, slots: &mut [Vec<u32>]) -> Vec<u32> {
    let mut output = std::mem::take(&mut slots[work.output.0 as usize]);
    output.resize(memory.plan.words(work.output) as usize, 0);
    output
}

/// Some queries against a page.
struct Group<'a> {
    scan: Scan,
    inputs: &'a [u32],
    page: &'a [u32],
    entry: &'a [u32],
}

impl Group<'_> {
    /// How many quads a vector has and results a query; the code of the mask's form; how many
    /// blocks there are, blocks of a band, and queries.
    fn sizes(&self) -> [usize; QUERY] {
        std::array::from_fn(|k| self.entry[k] as usize)
    }

    fn bands(&self) -> usize {
        let [_, _, _, blocks, band, _] = self.sizes();
        blocks.div_ceil(band)
    }

    /// Words that a band keeps.
    fn line(&self) -> usize {
        let [_, count, .., queries] = self.sizes();
        2 * count * queries
    }

    fn scan(&self, band: usize, output: &mut [u32]) {
        let [quads, count, _, blocks, blocks_of_band, queries] = self.sizes();
        let mask = Mask::decode(self.entry[2]);
        let block_words = BLOCK_HEADER as usize + 4 * VECTORS * quads;
        let floats = quads * elements(self.scan.packing) as usize;
        let mut best = vec![Item::MAX; count * queries];
        let mut unpacked = Vec::new();
        let first = band * blocks_of_band;
        for block in first..blocks.min(first + blocks_of_band) {
            let words = &self.page[block * block_words..][..block_words];
            let (header, packed) = words.split_at(BLOCK_HEADER as usize);
            let (scales, ids) = header.split_at(VECTORS);
            if ids.iter().all(|id| *id == 0) {
                continue;
            }
            let vectors = match self.scan.packing {
                None => bytemuck::cast_slice(packed),
                Some(packing) => {
                    unpack(packing, packed, &mut unpacked);
                    if packing == Packing::Int8 {
                        scale(scales, &mut unpacked);
                    }
                    &unpacked[..]
                }
            };
            for (query, best) in best.chunks_exact_mut(count).enumerate() {
                let [at, allowed] = [0, 1].map(|k| self.entry[QUERY + 2 * query + k] as usize);
                let query = bytemuck::cast_slice(&self.inputs[at..at + floats]);
                let allowed = &self.inputs[allowed..][..mask.words as usize];
                let scores = compare(&self.scan, vectors, query);
                for (id, score) in ids.iter().zip(scores) {
                    // The page holds the id + 1, so that 0 stands for nobody.
                    let id = id.wrapping_sub(1);
                    if id != NOBODY && is_allowed(mask, allowed, id) {
                        offer(best, Item::from(key_of(score)) << 32 | Item::from(id));
                    }
                }
            }
        }
        for (to, item) in output.chunks_exact_mut(2).zip(best) {
            let [low, high] = halves(item);
            to.copy_from_slice(&[high, low]);
        }
    }
}

/// Unpacks a block. Four floats of a vector lie beside four of the next vector.
fn unpack(packing: Packing, packed: &[u32], floats: &mut Vec<f32>) {
    floats.clear();
    let words = 4 / (elements(Some(packing)) as usize / 4);
    for row in packed.chunks_exact(4 * VECTORS) {
        for first in (0..4).step_by(words) {
            for quad in row.chunks_exact(4) {
                for word in &quad[first..first + words] {
                    match packing {
                        Packing::Int8 | Packing::Int4 => {
                            let bytes = word.to_le_bytes();
                            floats.extend(bytes.map(|byte| f32::from(byte.cast_signed())));
                        }
                        Packing::F16 | Packing::Bf16 => {
                            let halves = [word & 0xffff, word >> 16];
                            floats.extend(halves.map(|half| packing.float(half)));
                        }
                    }
                }
            }
        }
    }
}

/// Multiplies each vector of a block by its scale.
fn scale(scales: &[u32], floats: &mut [f32]) {
    for row in floats.chunks_exact_mut(4 * VECTORS) {
        for (quad, scale) in row.chunks_exact_mut(4).zip(scales) {
            for float in quad {
                *float *= f32::from_bits(*scale);
            }
        }
    }
}

fn is_allowed(mask: Mask, words: &[u32], id: u32) -> bool {
    if mask.is_listed {
        return words.binary_search(&id).is_ok();
    }
    let word = words.get(id as usize / 32);
    words.is_empty() || word.is_some_and(|word| word >> (id % 32) & 1 != 0)
}

/// Puts an item in its place among the best items, if it is better than the last of them.
fn offer(best: &mut [Item], item: Item) {
    let last = best.len() - 1;
    if item < best[last] {
        let at = best.partition_point(|better| *better < item);
        best.copy_within(at..last, at + 1);
        best[at] = item;
    }
}

/// The key of a score: the higher the score, the lower the key. Both zeros have one key.
fn key_of(score: f32) -> u32 {
    let bits = if score == 0.0 { 0 } else { score.to_bits() };
    if bits >> 31 == 0 {
        !bits & 0x7fff_ffff
    } else {
        bits
    }
}

fn score_of(key: u32) -> u32 {
    if key >> 31 == 0 {
        !key & 0x7fff_ffff
    } else {
        key
    }
}

#[expect(clippy::cast_possible_truncation, reason = "these are the halves")]
fn halves(item: Item) -> [u32; 2] {
    [item as u32, (item >> 32) as u32]
}
