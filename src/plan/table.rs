//! The segment table: a dispatch's calls as the words by which threads find their call.
//!
//! There is an entry for each block of threads, so that calls of any lengths share a dispatch.
//! `shaders/lib/segments.wgsl` reads the table; where the table lies is not decided here.

use super::Dispatch;
use crate::graph::Timing;
use crate::kernel::{Kernel, WORKGROUP};
use crate::program::Tiles;

/// The largest block, as a power of two: large blocks keep the table of one huge call short.
const LARGEST_SHIFT: u32 = 16;

/// The most threads of a dispatch on any device: kernels count threads in 32 bits, and a grid
/// of two dimensions has up to 2²² more threads than are needed.
pub const MOST_THREADS: u64 = (1 << 32) - (1 << 23);

/// The words of an entry in front of the operands: the block's first thread, the length, the
/// address of the result.
pub const OPERANDS: usize = 3;

/// How many idle threads cost about as much as one more entry.
const ENTRY_COST: u64 = 8;

/// The uniform that every kernel reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Params {
    /// Word of the arena where the table begins.
    pub table: u32,
    /// A block is `1 << shift` threads.
    pub shift: u32,
    /// Entries in the table.
    pub blocks: u32,
    /// Elements in a row.
    pub width: u32,
    /// 1 where every row has a t of its own, otherwise 0.
    pub each: u32,
    /// A variant of the kernel.
    pub mode: u32,
}

impl Params {
    /// The fields' names, in order.
    pub const FIELDS: [&'static str; 6] = ["table", "shift", "blocks", "width", "each", "mode"];
}

/// How a dispatch is laid out for a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The uniform, in which `table` is still 0.
    pub params: Params,
    /// Words of the entries.
    pub words: u64,
    /// Threads to start.
    pub threads: u64,
}

impl Table {
    /// The layout of a dispatch.
    pub fn of(dispatch: &Dispatch) -> Table {
        let settings = &dispatch.settings;
        let counts = (0..dispatch.segments.len()).map(|call| threads(dispatch, call));
        let (shift, blocks) = choose_shift(counts, dispatch.kernel.cooperating_threads());
        let params = Params {
            table: 0,
            shift,
            // More blocks than 32 bits count are more than any device starts.
            blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
            width: settings.width,
            each: u32::from(settings.timing == Timing::Row),
            mode: settings.mode,
        };
        Table {
            params,
            words: blocks * u64::from(entry_words(dispatch)),
            threads: blocks << shift,
        }
    }

    /// Writes the entries to `target`, one after the other.
    pub fn write(&self, dispatch: &Dispatch, target: &mut [u32]) {
        let behind = entry_words(dispatch) as usize - OPERANDS;
        let block = 1 << self.params.shift;
        let mut entries = target.chunks_exact_mut(OPERANDS + behind);
        for (call, segment) in dispatch.segments.iter().enumerate() {
            let words = &dispatch.entries[call * behind..][..behind];
            let count = threads(dispatch, call);
            // A flat map has a thread for four elements, and needs the count of elements.
            let length = match &dispatch.kernel {
                Kernel::Fused(stage) if stage.is_flat_map() => segment.rows,
                _ => count,
            };
            let mut first = 0;
            while first < count {
                let entry = entries.next().expect("room for every block");
                entry[0] = first;
                entry[1] = length;
                entry[2] = segment.result;
                entry[OPERANDS..].copy_from_slice(words);
                first += block;
            }
        }
    }
}

/// Threads of one segment of a dispatch.
fn threads(dispatch: &Dispatch, call: usize) -> u32 {
    let rows = dispatch.segments[call].rows;
    let Kernel::Product(_, products, Tiles::Small) = &dispatch.kernel else {
        return dispatch.kernel.threads(rows, &dispatch.settings);
    };
    let words = dispatch.entries.len() / dispatch.segments.len();
    products.small_threads(rows, &dispatch.entries[call * words..][..words])
}

fn entry_words(dispatch: &Dispatch) -> u32 {
    let behind = dispatch.entries.len() / dispatch.segments.len();
    u32::try_from(OPERANDS + behind).expect("few operands")
}

/// The most threads of one dispatch on a device that allows `limit` workgroups in a dimension
/// of a grid. Kernels count threads in 32 bits, and threads that idle behind the end of the
/// last row count too: these are fewer than half as many as the others.
pub fn most_threads(limit: u32) -> u64 {
    let groups = u64::from(limit);
    let square = groups.saturating_mul(groups);
    square.saturating_mul(WORKGROUP.into()).min(1 << 31)
}

/// Workgroups in x and y for this many threads, if a dimension holds at most `limit`; `None`
/// where even the square is too small.
pub fn grid(threads: u64, limit: u32) -> Option<(u32, u32)> {
    let groups = threads.div_ceil(u64::from(WORKGROUP));
    let x = groups.min(u64::from(limit));
    let y = if x == 0 { 0 } else { groups.div_ceil(x) };
    let (x, y) = (u32::try_from(x).ok()?, u32::try_from(y).ok()?);
    (y <= limit).then_some((x, y))
}

/// The block size with the least waste, as a power of two, and how many blocks of that size
/// there are. Small blocks need more entries; large blocks leave more threads idle behind the
/// end of each call.
fn choose_shift(counts: impl Iterator<Item = u32> + Clone, group: u32) -> (u32, u64) {
    let (calls, threads) = counts.clone().fold((0_u64, 0_u64), |(n, sum), count| {
        (n + 1, sum + u64::from(count))
    });
    let mean = threads.checked_div(calls).unwrap_or(0).max(1);
    // The threads of a workgroup that computes together have one entry.
    let least = group.ilog2();
    let highest = (mean.ilog2() + 1).clamp(least, LARGEST_SHIFT);
    let lowest = highest.saturating_sub(3).max(least);
    let mut blocks = [0_u64; 4];
    for count in counts {
        for (shift, blocks) in (lowest..=highest).zip(&mut blocks) {
            *blocks += u64::from(count.div_ceil(1 << shift));
        }
    }
    let waste = |(shift, blocks): &(u32, u64)| *blocks * ((1 << shift) + ENTRY_COST);
    let choices = (lowest..=highest).zip(blocks);
    choices.min_by_key(waste).unwrap_or((0, 0))
}
