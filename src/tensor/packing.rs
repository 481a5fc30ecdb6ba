//! How the floats of a resident tensor are packed into fewer words. A kernel unpacks floats
//! where it reads them.

use super::blocks::{BLOCK, Bits};
use super::half_floats::{from_f16, to_bf16, to_f16};
use crate::error::Error;

/// A format that takes fewer bits than a 32-bit float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Two 16-bit IEEE floats in a word, the first in the low half. Off by at most
    /// 2⁻¹¹ of magnitudes from 2⁻¹⁴ to 65,504 and 2⁻²⁵ below, where a device may
    /// also give 0; infinite from 65,520 on.
    F16,
    /// The rounded upper halves of two 32-bit floats in a word: off by at most 2⁻⁸
    /// of the magnitude, in the whole range.
    Bf16,
    /// Groups of 32 neighbors in row-major order, whole numbers q from −127 to 127
    /// times a scale s that the group shares: off by at most 1/253 of the largest
    /// magnitude in the group, or 2⁻²². A block of 17 words holds two groups: four
    /// q in a word, the first in the lowest byte, and behind all q both s as 16-bit
    /// floats, times 128. NaN and magnitudes from 65,009 on are refused.
    Int8,
    /// Groups as [`Packing::Int8`] has them, of whole numbers q from −8 to 7 times a scale s that
    /// may be negative: off by at most 1/5 of the largest magnitude in the group, or 2⁻²². The
    /// scale is the one, of seven, whose squared errors have the least sum. A block of 9 words
    /// holds two groups: eight q + 8 in a word, the first in the lowest bits, and behind all of
    /// them both s as 16-bit floats, times 128. NaN and magnitudes from 4,095 on are refused.
    Int4,
}

impl Packing {
    /// Every packing, in the order of their numbers on the wire.
    pub const ALL: [Packing; 4] = [Packing::F16, Packing::Bf16, Packing::Int8, Packing::Int4];

    /// The packings of vectors in indexes, in the order of their numbers in files.
    pub const OF_VECTORS: [Packing; 3] = [Packing::F16, Packing::Bf16, Packing::Int8];

    /// The name in messages and plans.
    pub const fn name(self) -> &'static str {
        match self {
            Packing::F16 => "f16",
            Packing::Bf16 => "bf16",
            Packing::Int8 => "int8",
            Packing::Int4 => "int4",
        }
    }

    /// Words that so many elements take.
    pub const fn words(self, count: u32) -> u32 {
        match self {
            Packing::F16 | Packing::Bf16 => count.div_ceil(2),
            Packing::Int8 => count.div_ceil(BLOCK) * Bits::Eight.block_words(),
            Packing::Int4 => count.div_ceil(BLOCK) * Bits::Four.block_words(),
        }
    }

    /// Floats that so many words hold.
    pub const fn floats(self, words: u32) -> u32 {
        match self {
            Packing::F16 | Packing::Bf16 => words * 2,
            Packing::Int8 => words / Bits::Eight.block_words() * BLOCK,
            Packing::Int4 => words / Bits::Four.block_words() * BLOCK,
        }
    }

    /// Packs the bits of floats. Parts of a multiple of 64 elements can be packed one after the
    /// other.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] where the format cannot hold a float.
    pub fn pack(self, floats: &[u32]) -> Result<Vec<u32>, Error> {
        match self {
            Packing::F16 => Ok(pack_halves(floats, to_f16)),
            Packing::Bf16 => Ok(pack_halves(floats, to_bf16)),
            Packing::Int8 => Bits::Eight.pack(floats),
            Packing::Int4 => Bits::Four.pack(floats),
        }
    }

    /// The float that 16 bits stand for, in a format of 16-bit floats; NaN in any other.
    pub fn float(self, half: u32) -> f32 {
        f32::from_bits(match self {
            Packing::F16 => from_f16(half),
            Packing::Bf16 => half << 16,
            Packing::Int8 | Packing::Int4 => f32::NAN.to_bits(),
        })
    }

    /// The bits of the floats that words stand for, those that only fill the last word included.
    pub fn unpack(self, words: &[u32]) -> Vec<u32> {
        match self {
            Packing::F16 => unpack_halves(words, from_f16),
            Packing::Bf16 => unpack_halves(words, |half| half << 16),
            Packing::Int8 => Bits::Eight.unpack(words),
            Packing::Int4 => Bits::Four.unpack(words),
        }
    }
}

fn pack_halves(floats: &[u32], half: impl Fn(u32) -> u32) -> Vec<u32> {
    let pairs = floats.chunks(2);
    let word = |pair: &[u32]| half(pair[0]) | pair.get(1).map_or(0, |float| half(*float)) << 16;
    pairs.map(word).collect()
}

fn unpack_halves(words: &[u32], float: impl Fn(u32) -> u32) -> Vec<u32> {
    let mut floats = Vec::with_capacity(2 * words.len());
    for word in words {
        floats.extend([float(word & 0xffff), float(word >> 16)]);
    }
    floats
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "packing_tests.rs"]
mod tests;
