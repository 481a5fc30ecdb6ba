//! How the floats of a resident tensor are packed into fewer words. A kernel unpacks floats
//! where it reads them.

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
}

/// Elements and words of a block of [`Packing::Int8`].
const BLOCK: usize = 64;
const BLOCK_WORDS: usize = 17;

/// Elements that share a scale.
const GROUP: usize = 32;

/// The smallest normal 16-bit float.
const SMALLEST_SCALE: u32 = 0x0400;

const REFUSED: &str =
    "int8 holds magnitudes below 65,009 and no NaN; keep such data as bf16 or f32";

impl Packing {
    /// Every packing, in the order of their numbers on the wire.
    pub const ALL: [Packing; 3] = [Packing::F16, Packing::Bf16, Packing::Int8];

    /// The name in messages and plans.
    pub const fn name(self) -> &'static str {
        match self {
            Packing::F16 => "f16",
            Packing::Bf16 => "bf16",
            Packing::Int8 => "int8",
        }
    }

    /// Words that so many elements take.
    pub const fn words(self, count: u32) -> u32 {
        match self {
            Packing::F16 | Packing::Bf16 => count.div_ceil(2),
            Packing::Int8 => count.div_ceil(64) * 17,
        }
    }

    /// Floats that so many words hold.
    pub const fn floats(self, words: u32) -> u32 {
        match self {
            Packing::F16 | Packing::Bf16 => words * 2,
            Packing::Int8 => words / 17 * 64,
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
            Packing::Int8 => {
                let mut words = Vec::with_capacity(floats.len().div_ceil(BLOCK) * BLOCK_WORDS);
                for block in floats.chunks(BLOCK) {
                    if !pack_block(block, &mut words) {
                        return Err(Error::InvalidInput(REFUSED.into()));
                    }
                }
                Ok(words)
            }
        }
    }

    /// The float that 16 bits stand for, in a format of 16-bit floats; NaN in any other.
    pub fn float(self, half: u32) -> f32 {
        f32::from_bits(match self {
            Packing::F16 => from_f16(half),
            Packing::Bf16 => half << 16,
            Packing::Int8 => f32::NAN.to_bits(),
        })
    }

    /// The bits of the floats that words stand for, those that only fill the last word included.
    pub fn unpack(self, words: &[u32]) -> Vec<u32> {
        match self {
            Packing::F16 => unpack_halves(words, from_f16),
            Packing::Bf16 => unpack_halves(words, |half| half << 16),
            Packing::Int8 => {
                let mut floats = Vec::with_capacity(words.len() / BLOCK_WORDS * BLOCK);
                for block in words.chunks_exact(BLOCK_WORDS) {
                    unpack_block(block, &mut floats);
                }
                floats
            }
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

/// Packs a block, and returns whether the format can hold all floats of the block.
fn pack_block(block: &[u32], words: &mut Vec<u32>) -> bool {
    let first = words.len();
    words.resize(first + BLOCK_WORDS, 0);
    let words = &mut words[first..];
    for (half, group) in block.chunks(GROUP).enumerate() {
        // The bits of magnitudes have the order of the magnitudes, and NaN is above all others.
        let magnitudes = group.iter().map(|bits| bits & 0x7fff_ffff);
        let largest = magnitudes.fold(0, u32::max);
        let stored = to_f16((f32::from_bits(largest) * 128.0 / 127.0).to_bits());
        if stored >= 0x7c00 {
            return false;
        }
        // A device may take a subnormal scale for 0.
        let stored = stored.max(SMALLEST_SCALE);
        words[BLOCK_WORDS - 1] |= stored << (16 * half);
        let scale = scale(stored);
        for (i, bits) in group.iter().enumerate() {
            let place = half * GROUP + i;
            words[place / 4] |= u32::from(quantized(*bits, scale)) << (8 * (place % 4));
        }
    }
    true
}

fn unpack_block(block: &[u32], floats: &mut Vec<u32>) {
    for place in 0..BLOCK {
        let scale = scale(block[BLOCK_WORDS - 1] >> (16 * (place / GROUP)) & 0xffff);
        let [q, ..] = (block[place / 4] >> (8 * (place % 4))).to_le_bytes();
        floats.push((f32::from(q.cast_signed()) * scale).to_bits());
    }
}

/// The scale of a group. Invariant: the product of the scale and any q is exact, so that every
/// device unpacks the same floats.
fn scale(stored: u32) -> f32 {
    f32::from_bits(from_f16(stored)) / 128.0
}

#[expect(clippy::cast_possible_truncation, reason = "at most 127 either way")]
fn quantized(bits: u32, scale: f32) -> u8 {
    let q = (f32::from_bits(bits) / scale).round_ties_even();
    (q.clamp(-127.0, 127.0) as i8).cast_unsigned()
}

/// The nearest 16-bit float; of two that are equally near, the even one.
fn to_f16(bits: u32) -> u32 {
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    let half = match magnitude {
        0x7f80_0001.. => 0x7e00,
        0x4780_0000.. => 0x7c00,
        // Changes the bias of the exponent, and rounds away the bits that do not fit.
        0x3880_0000.. => (magnitude - 0x3800_0000 + 0xfff + (magnitude >> 13 & 1)) >> 13,
        // Adding 0.5 rounds to the steps of the smallest 16-bit floats.
        _ => (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5_f32.to_bits(),
    };
    sign | half
}

fn from_f16(half: u32) -> u32 {
    let (sign, magnitude) = ((half & 0x8000) << 16, half & 0x7fff);
    let float = match magnitude {
        0x7c00.. => 0x7f80_0000 | magnitude << 13,
        0x0400.. => (magnitude << 13) + 0x3800_0000,
        _ => (f32::from_bits(magnitude | 0.5_f32.to_bits()) - 0.5).to_bits(),
    };
    sign | float
}

/// The nearest float whose lower 16 bits are 0; of two that are equally near, the even one.
fn to_bf16(bits: u32) -> u32 {
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        return bits >> 16 | 0x40;
    }
    (bits + 0x7fff + (bits >> 16 & 1)) >> 16
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "packing_tests.rs"]
mod tests;
