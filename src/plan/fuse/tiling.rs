//! How large the tiles are that workgroups compute of products of matrices.
//!
//! Every size sums an element in one order, so no bit depends on the choice. It
//! is made for a whole dispatch, when all its calls are known.

use super::Layout;
use super::program::{Body, LANES, SHARERS, Stage, Width};
use crate::kernel::Target;

/// How large the tiles of a product are that workgroups of a GPU compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tiles {
    /// [`TILE`] rows and columns.
    Large,
    /// [`SMALL_TILE`].
    Small,
}

/// Rows and columns of a tile.
pub const TILE: u32 = 64;

/// The same where there are few: more workgroups share the work, and each brings
/// more steps at once.
pub const SMALL_TILE: [u32; 2] = [16, 32];

/// Rows and columns that a thread of a processor computes by itself: no memory is shared
/// there, and what is left of a workgroup's tile at the end of each call costs as much.
const BLOCK: u32 = 8;

/// The same of [`SHARERS`] threads, two by two.
const SHARED_BLOCK: u32 = 2 * BLOCK;

/// Dispatches of at most so many tiles have small ones instead. On an H200 both take as
/// long for about 100, and a smaller GPU has enough to do with fewer.
/// (benches/record/2026-11-22-nvidia-h200-tiles.txt)
const FEW: u64 = 48;

/// So many small tiles take as long as a large one, where there are many (there too).
const WORTH: u64 = 3;

/// Workgroups for a matrix of so many rows and columns.
pub fn tiles(rows: u32, columns: u32) -> u32 {
    count([TILE; 2], [rows, columns])
}

fn count([height, width]: [u32; 2], [rows, columns]: [u32; 2]) -> u32 {
    rows.div_ceil(height)
        .saturating_mul(columns.div_ceil(width))
}

/// Where a stage of products has their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Products {
    /// Of a call's words behind the result's address the one with its rows. The
    /// columns are the next.
    rows: usize,
}

impl Products {
    /// `None` of a stage of anything else.
    pub fn of(stage: &Stage) -> Option<Products> {
        match &stage.body {
            Body::Rows(rows) if matches!(rows.width, Width::Tile(_)) => Some(Products {
                rows: Layout::of(stage).matrix(rows.outer) as usize,
            }),
            _ => None,
        }
    }

    /// Threads of a call in small tiles that takes so many in large ones.
    pub fn small_threads(self, threads: u32, words: &[u32]) -> u32 {
        self.shared(threads, words, SMALL_TILE)
    }

    /// Threads of it on a processor, where they compute blocks by themselves or four
    /// together.
    pub fn lone_threads(self, threads: u32, words: &[u32], target: Target) -> u32 {
        let (side, sharers) = match target {
            Target::Quads => (SHARED_BLOCK, SHARERS),
            _ => (BLOCK, 1),
        };
        let blocks = self.shared(threads / LANES, words, [side; 2]);
        blocks.saturating_mul(sharers)
    }

    // As many for each part of this size as there were for each large tile.
    fn shared(self, all: u32, words: &[u32], part: [u32; 2]) -> u32 {
        let size = [words[self.rows], words[self.rows + 1]];
        let for_matrix = all / count([TILE; 2], size).max(1);
        for_matrix.saturating_mul(count(part, size))
    }

    /// Whether a dispatch of calls that take so many threads has small tiles; `entries`
    /// are their words, as many for each.
    pub fn are_small(self, threads: impl ExactSizeIterator<Item = u32>, entries: &[u32]) -> bool {
        let words = entries.len() / threads.len().max(1);
        let (mut large, mut small) = (0, 0);
        for (threads, words) in threads.zip(entries.chunks_exact(words.max(1))) {
            large += u64::from(threads / LANES);
            small += u64::from(self.small_threads(threads, words) / LANES);
        }
        large <= FEW || small < WORTH * large
    }
}
