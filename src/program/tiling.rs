//! Chooses the size of tiles, the parts of a matrix product that one workgroup computes.
//!
//! Tiles of every size sum an element in the same order, so that no bit depends on the choice.
//! The choice is made for a whole dispatch, when all calls are known.

use super::{Body, LANES, Layout, Stage, Width};

/// The size of the tiles of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tiles {
    /// [`TILE`] rows and as many columns.
    Large,
    /// The rows and columns of [`SMALL_TILE`].
    Small,
}

/// Rows and columns of a large tile.
pub const TILE: u32 = 64;

/// Rows and columns of a small tile. Where there are few tiles, small ones give more workgroups,
/// each of which loads more of the summed dimension at once.
pub const SMALL_TILE: [u32; 2] = [16, 32];

/// The most large tiles of a dispatch that gets small tiles instead. On an H200 both sizes take
/// equally long for about 100 large tiles; a smaller GPU is busy with fewer.
/// (benches/record/2026-11-22-nvidia-h200-tiles.txt)
const FEW: u64 = 48;

/// How many small tiles take as long as a large one, where there are many of either. (The same
/// record.)
const WORTH: u64 = 3;

/// Large tiles of a matrix of so many rows and columns.
pub fn tiles(rows: u32, columns: u32) -> u32 {
    count([TILE; 2], [rows, columns])
}

fn count([height, width]: [u32; 2], [rows, columns]: [u32; 2]) -> u32 {
    rows.div_ceil(height)
        .saturating_mul(columns.div_ceil(width))
}

/// Where the entries of a stage of products hold the sizes of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Products {
    /// The word of an entry, behind the address of the result, with the rows. The next word has
    /// the columns.
    rows: usize,
}

impl Products {
    /// `None` for a stage that computes no product.
    pub fn of(stage: &Stage) -> Option<Products> {
        match &stage.body {
            Body::Rows(rows) if matches!(rows.width, Width::Tile(_)) => Some(Products {
                rows: Layout::of(stage).matrix(rows.outer) as usize,
            }),
            _ => None,
        }
    }

    /// Threads of a call in small tiles, if the call takes `threads` in large tiles.
    pub fn small_threads(self, threads: u32, words: &[u32]) -> u32 {
        let size = [words[self.rows], words[self.rows + 1]];
        let for_matrix = threads / count([TILE; 2], size).max(1);
        for_matrix.saturating_mul(count(SMALL_TILE, size))
    }

    /// Whether a dispatch gets small tiles. `threads` are the threads of each call in large tiles,
    /// and `entries` the words of the calls' entries, as many for each.
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
