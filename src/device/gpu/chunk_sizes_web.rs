//! Sizes of chunks that overlap copies, link and GPU best in a browser, measured on an H200 and
//! on SwiftShader: a page copies each result twice, on one thread, beside the next chunk.

use crate::plan::{ChunkSize, ChunkSizes};

/// The sizes. Below them, cutting a batch gains nothing.
pub(super) const CHUNKS: ChunkSizes = ChunkSizes::equal(ChunkSize::of(1 << 20));
