//! The structure of an insertion: what a call that writes vectors of a tensor to an index page
//! reads, without its values.
//!
//! The *place* of a vector in its page is 64 times the number of a block, and the vector's number
//! in the block. `ops::search` says how vectors lie there. Which vectors go where is data of
//! the call, so that calls of one page merge whatever they insert.

use super::searching::{BLOCK, block_words, elements};
use crate::tensor::{Packing, Span};

/// Words of a row: the vector's row in the source, its place in the page, and its id + 1.
pub const ROW: u32 = 3;

/// In place of a vector's row in the source: nothing but the third word is written, which is 0
/// where a vector is removed.
pub const NOTHING: u32 = u32::MAX;

/// The largest magnitude of a float of a vector, so that no sum of products overflows.
pub const MAX_FLOAT: f32 = 1e17;

/// The largest magnitude of a 16-bit float.
pub const MAX_F16: f32 = 65_504.0;

/// The structure of an insertion.
///
/// A call's operands are its rows. The call names the source and the page as resident tensors, or
/// the page alone. A vector with a float that is no number, or of too large a magnitude, is stored
/// with no id, so that no search finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Insertion {
    /// How the page's vectors are packed; `None` for floats.
    pub packing: Option<Packing>,
    /// Whether vectors are scaled to length 1.
    pub is_scaled: bool,
    /// Floats of a vector, which is a row of the source.
    pub dim: u32,
    /// Whether calls have a source. Calls without one only remove vectors.
    pub has_source: bool,
}

impl Insertion {
    const SCALED: u32 = 4;

    /// The packing and the scaling in one word, as the kernel has them.
    pub const fn mode(&self) -> u32 {
        let packing = match self.packing {
            None => 0,
            Some(packing) => 1 + packing as u32,
        };
        packing | if self.is_scaled { Insertion::SCALED } else { 0 }
    }

    /// The structure with this mode, for vectors of so many floats.
    pub fn decode(mode: u32, dim: u32) -> Insertion {
        let packing = (mode % Insertion::SCALED).wrapping_sub(1);
        Insertion {
            packing: Packing::OF_VECTORS.get(packing as usize).copied(),
            is_scaled: mode >= Insertion::SCALED,
            dim,
            has_source: true,
        }
    }

    /// Quads of a vector.
    pub const fn quads(&self) -> u32 {
        self.dim.div_ceil(elements(self.packing))
    }

    /// The largest magnitude of a float of a vector that searches find.
    pub const fn most(&self) -> f32 {
        match (self.packing, self.is_scaled) {
            (Some(Packing::F16), false) => MAX_F16,
            _ => MAX_FLOAT,
        }
    }

    /// The places that a call's rows write: from the lowest to the highest, as a span of places.
    pub fn places(rows: &[u32]) -> Span {
        let places = || rows.chunks_exact(ROW as usize).map(|row| row[1]);
        let (first, last) = (places().min().unwrap_or(0), places().max().unwrap_or(0));
        Span {
            at: first,
            words: (last - first).saturating_add(1),
        }
    }

    /// Words of the source up to the end of the last vector that a call's rows read.
    pub fn source_words(&self, rows: &[u32]) -> u64 {
        let rows = rows.chunks_exact(ROW as usize).map(|row| row[0]);
        let read = rows.filter(|row| *row != NOTHING);
        let last = read.map(|row| u64::from(row) + 1).max();
        last.unwrap_or(0) * u64::from(self.dim)
    }

    /// Words of the page up to the end of the block of the last place in a span.
    pub fn page_words(&self, places: Span) -> u64 {
        let end = u64::from(places.at) + u64::from(places.words);
        end.div_ceil(BLOCK.into()) * u64::from(block_words(self.quads()))
    }

    /// How many resident tensors a call names.
    pub const fn tensors(&self) -> u32 {
        1 + self.has_source as u32
    }
}
