//! Sizes of chunks that overlap copies, link and GPU best natively, measured on an H200: all
//! cores copy results, and waking the cores costs as much as a smaller copy.

use crate::plan::{ChunkSize, ChunkSizes};

/// The sizes. Below them, cutting a batch gains nothing.
pub(super) const CHUNKS: ChunkSizes = ChunkSizes {
    by_row: ChunkSize::of(16 << 20),
    others: ChunkSize::of(1 << 20),
};
