//! What values look like in memory: element types, row formats, packings, and the host arena
//! that holds operands. No meaning, no policy, no device.

mod arena;
mod blocks;
mod dtype;
#[cfg(feature = "engine")]
mod free_list;
mod half_floats;
mod packing;
mod vector;

pub use arena::{Arena, Span};
pub use dtype::{DType, Format};
#[cfg(feature = "engine")]
pub(crate) use free_list::Places;
pub use packing::Packing;
pub use vector::{pack_vector, unit_vector, vector_scale};

/// Bytes in a word. All offsets and lengths inside the core count words.
pub const WORD: u32 = 4;

/// Operands and results start at multiples of this many words (16 bytes).
pub const ALIGN: u32 = 4;

/// The next multiple of [`ALIGN`] at or after `words`. Where 32 bits hold none, the last multiple
/// before.
pub const fn aligned(words: u32) -> u32 {
    words.saturating_add(ALIGN - 1) / ALIGN * ALIGN
}
