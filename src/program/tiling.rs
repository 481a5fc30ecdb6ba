//! How large the tiles are that workgroups compute of products of matrices.
//!
//! Every size sums an element in one order, so no bit depends on the choice. It
//! is made for a whole dispatch, when all its calls are known.

use super::{Body, LANES, Layout, Stage, Width};

/// How large the tiles of a product are that workgroups compute.
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
        let size = [words[self.rows], words[self.rows + 1]];
        let for_matrix = threads / count([TILE; 2], size).max(1);
        for_matrix.saturating_mul(count(SMALL_TILE, size))
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
