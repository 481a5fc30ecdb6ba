//! Blocks of 64 numbers: whole ones of 8 or of 4 bits, and behind them two scales as 16-bit floats.
//!
//! A block is whole words. How a kernel reads one is printed by `kernel::generated::operands`.

use super::half_floats::{from_f16, to_f16};
use crate::error::Error;

/// Numbers of a block.
pub(super) const BLOCK: u32 = 64;

/// Numbers that share a scale.
const GROUP: usize = 32;

/// The smallest normal 16-bit float.
const SMALLEST_SCALE: u32 = 0x0400;

/// The bits from which on a magnitude is no number as a 16-bit float.
const INFINITE: u32 = 0x7c00;

/// The scales that are tried for a group of four bits: the number of largest magnitude is divided
/// by each of these. With the first three packing keeps what it made, because a whole number that
/// it gives the number of largest magnitude is 7 or more either way.
const DIVISORS: [f32; 7] = [-8.0, 7.0, -7.0, -8.5, -8.25, -7.75, -7.5];

/// The bits that a number of a block takes.
#[derive(Clone, Copy)]
pub(super) enum Bits {
    Eight,
    Four,
}

impl Bits {
    /// Words of a block.
    pub(super) const fn block_words(self) -> u32 {
        1 + BLOCK / self.numbers()
    }

    /// Numbers in a word.
    const fn numbers(self) -> u32 {
        match self {
            Bits::Eight => 4,
            Bits::Four => 8,
        }
    }

    /// Packs the bits of floats.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] where a scale cannot be held.
    pub(super) fn pack(self, floats: &[u32]) -> Result<Vec<u32>, Error> {
        let block_words = self.block_words() as usize;
        let blocks = floats.chunks(BLOCK as usize);
        let mut words = vec![0; blocks.len() * block_words];
        for (block, words) in blocks.zip(words.chunks_exact_mut(block_words)) {
            let (numbers, scales) = words.split_at_mut(block_words - 1);
            let halves = numbers.chunks_exact_mut((block_words - 1) / 2);
            for (half, (group, numbers)) in block.chunks(GROUP).zip(halves).enumerate() {
                let packed = match self {
                    Bits::Eight => pack_eight(group, numbers),
                    Bits::Four => pack_four(group, numbers),
                };
                let Some(scale) = packed else {
                    return Err(Error::InvalidInput(self.refused().into()));
                };
                scales[0] |= scale << (16 * half);
            }
        }
        Ok(words)
    }

    /// The bits of the floats that whole blocks stand for.
    pub(super) fn unpack(self, words: &[u32]) -> Vec<u32> {
        let (block_words, each) = (self.block_words() as usize, self.numbers() as usize);
        let mut floats = Vec::with_capacity(words.len() / block_words * BLOCK as usize);
        for block in words.chunks_exact(block_words) {
            for place in 0..BLOCK as usize {
                let scale = scale(block[block_words - 1] >> (16 * (place / GROUP)) & 0xffff);
                let number = block[place / each] >> (32 / each * (place % each));
                let whole = match self {
                    Bits::Eight => f32::from(number.to_le_bytes()[0].cast_signed()),
                    Bits::Four => f32::from(number.to_le_bytes()[0] & 15) - 8.0,
                };
                floats.push((whole * scale).to_bits());
            }
        }
        floats
    }

    const fn refused(self) -> &'static str {
        match self {
            Bits::Eight => {
                "int8 holds magnitudes below 65,009 and no NaN; keep such data as bf16 or f32"
            }
            Bits::Four => {
                "int4 holds magnitudes below 4,095 and no NaN; keep such data as bf16 or f32"
            }
        }
    }
}

/// Packs a group, four numbers in a word, and returns its scale; `None` where no scale is large
/// enough.
fn pack_eight(group: &[u32], words: &mut [u32]) -> Option<u32> {
    // The bits of magnitudes have the order of the magnitudes, and NaN is above all others.
    let magnitudes = group.iter().map(|bits| bits & 0x7fff_ffff);
    let largest = magnitudes.fold(0, u32::max);
    let stored = stored(f32::from_bits(largest) * 128.0 / 127.0)?;
    let scale = scale(stored);
    for (place, bits) in group.iter().enumerate() {
        words[place / 4] |= u32::from(byte(*bits, scale)) << (8 * (place % 4));
    }
    Some(stored)
}

#[expect(clippy::cast_possible_truncation, reason = "at most 127 either way")]
fn byte(bits: u32, scale: f32) -> u8 {
    let q = (f32::from_bits(bits) / scale).round_ties_even();
    (q.clamp(-127.0, 127.0) as i8).cast_unsigned()
}

/// Packs a group, eight numbers in a word, and returns the scale, of those that are tried, whose
/// squared errors have the least sum; `None` where the first of them is not large enough.
fn pack_four(group: &[u32], words: &mut [u32]) -> Option<u32> {
    let magnitude = |bits: u32| bits & 0x7fff_ffff;
    let larger = |most: u32, bits: &u32| match magnitude(*bits) > magnitude(most) {
        true => *bits,
        false => most,
    };
    let largest = f32::from_bits(group.iter().fold(0, larger)) * 128.0;
    let mut numbers = [0.0; GROUP];
    for (number, bits) in numbers.iter_mut().zip(group) {
        *number = f64::from(f32::from_bits(*bits));
    }
    let mut best = stored(largest / DIVISORS[0])?;
    let mut least = squared_errors(&numbers, best);
    for divisor in &DIVISORS[1..] {
        let Some(next) = stored(largest / divisor) else {
            continue;
        };
        let error = squared_errors(&numbers, next);
        if error < least {
            (best, least) = (next, error);
        }
    }
    let inverse = 1.0 / f64::from(scale(best));
    for (place, number) in numbers.iter().enumerate() {
        words[place / 8] |= nibble(*number, inverse) << (4 * (place % 8));
    }
    Some(best)
}

/// The sum of the squared errors of numbers with this scale. Its bits decide between scales, so
/// that the order of the sum belongs to the format: JavaScript writes the same.
fn squared_errors(numbers: &[f64; GROUP], stored: u32) -> f64 {
    let scale = f64::from(scale(stored));
    let inverse = 1.0 / scale;
    let mut sum = 0.0;
    for number in numbers {
        let error = number - nearest(*number, inverse) * scale;
        sum += error * error;
    }
    sum
}

/// The nearest whole number of four bits; of two that are equally near, the even one.
fn nearest(number: f64, inverse: f64) -> f64 {
    // A float of this size has no fraction, so that the sum is rounded.
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52.
    ((number * inverse + ROUND) - ROUND).clamp(-8.0, 7.0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 15"
)]
fn nibble(number: f64, inverse: f64) -> u32 {
    (nearest(number, inverse) + 8.0) as u32
}

/// The bits of a scale, given as 128 times what it is; `None` for one that is too large, or NaN.
fn stored(scale: f32) -> Option<u32> {
    let magnitude = to_f16(scale.abs().to_bits());
    let sign = if scale < 0.0 { 0x8000 } else { 0 };
    // A device may take a subnormal scale for 0.
    (magnitude < INFINITE).then_some(sign | magnitude.max(SMALLEST_SCALE))
}

/// The scale of a group. Invariant: the product of the scale and any whole number of a block is
/// exact, so that every device unpacks the same floats.
fn scale(stored: u32) -> f32 {
    f32::from_bits(from_f16(stored)) / 128.0
}
