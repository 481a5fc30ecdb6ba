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
mod tests {
    use super::*;

    /// The value of a 16-bit float by its definition.
    fn half_value(half: u32) -> f64 {
        let exponent = (half >> 10 & 31).cast_signed();
        let fraction = f64::from(half & 1023) / 1024.0;
        let magnitude = match exponent {
            0 => fraction * 2_f64.powi(-14),
            31 if fraction > 0.0 => f64::NAN,
            31 => f64::INFINITY,
            _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
        };
        if half >> 15 == 1 {
            -magnitude
        } else {
            magnitude
        }
    }

    fn same(a: f64, b: f64) -> bool {
        a == b && a.is_sign_negative() == b.is_sign_negative() || a.is_nan() && b.is_nan()
    }

    #[test]
    fn every_16_bit_float_is_its_own() {
        for half in 0..1 << 16 {
            let float = f64::from(f32::from_bits(from_f16(half)));
            assert!(same(float, half_value(half)), "{half:#x} is {float}");
            if !float.is_nan() {
                assert_eq!(to_f16(from_f16(half)), half);
            }
        }
        assert!(half_value(to_f16(f32::NAN.to_bits())).is_nan());
    }

    #[test]
    fn between_16_bit_floats_the_nearest_and_of_two_the_even_one_is_taken() {
        for half in 0..0x7bff_u32 {
            let (low, high) = (half_value(half), half_value(half + 1));
            let even = half + (half & 1);
            let middle = ((low + high) / 2.0) as f32;
            assert_eq!(to_f16(middle.to_bits()), even, "{middle}");
            assert_eq!(to_f16(middle.to_bits() - 1), half, "below {middle}");
            assert_eq!(to_f16(middle.to_bits() + 1), half + 1, "above {middle}");
            assert_eq!(to_f16((-middle).to_bits()), 0x8000 | even, "-{middle}");
        }
        for (float, half) in [
            (65_519.99, 0x7bff),
            (65_520.0, 0x7c00),
            (1e30, 0x7c00),
            (f32::INFINITY, 0x7c00),
            (1e-30, 0),
        ] {
            assert_eq!(to_f16(float.to_bits()), half, "{float}");
        }
    }

    #[test]
    fn bf16_rounds_to_the_nearest_and_of_two_to_the_even_one() {
        for (bits, half) in [
            (0x3f80_0000, 0x3f80),
            (0x3f80_7fff, 0x3f80),
            (0x3f80_8000, 0x3f80),
            (0x3f80_8001, 0x3f81),
            (0x3f81_8000, 0x3f82),
            (0xbf81_8000, 0xbf82),
            (0x7f7f_ffff, 0x7f80),
            (0x7f80_0000, 0x7f80),
            (0xff80_0000, 0xff80),
            (0x7f80_0001, 0x7fc0),
            (0xffff_ffff, 0xffff),
        ] {
            assert_eq!(to_bf16(bits), half, "{bits:#x}");
        }
    }

    /// Values of all magnitudes from 2^-20 to 2^12, and zeros.
    fn floats(count: u32) -> Vec<f32> {
        let value = |i: u32| {
            let mixed = i.wrapping_mul(2_654_435_761);
            let fraction = f64::from(mixed >> 8) / f64::from(1 << 23) - 1.0;
            (fraction * 2_f64.powi((i / 64 % 32).cast_signed() - 20)) as f32
        };
        (0..count)
            .map(|i| if i % 97 == 0 { 0.0 } else { value(i) })
            .collect()
    }

    #[test]
    fn each_format_is_as_far_off_as_it_says_and_no_further() {
        for count in [1, 2, 3, 31, 32, 33, 63, 64, 65, 5000] {
            let given = floats(count);
            let bits: Vec<u32> = given.iter().map(|x| x.to_bits()).collect();
            for packing in Packing::ALL {
                let words = packing.pack(&bits).expect("all are small");
                assert_eq!(words.len(), packing.words(count) as usize);
                let kept = packing.unpack(&words);
                assert!(kept.len() >= given.len());
                for (i, (x, kept)) in given.iter().zip(&kept).enumerate() {
                    let x = f64::from(*x);
                    let group = &given[i / 32 * 32..given.len().min(i / 32 * 32 + 32)];
                    let largest = group
                        .iter()
                        .fold(0.0, |most: f64, x| most.max(x.abs().into()));
                    let bound = match packing {
                        Packing::F16 => (x.abs() / 2048.0).max(2_f64.powi(-25)),
                        Packing::Bf16 => x.abs() / 256.0,
                        Packing::Int8 => (largest / 253.0).max(2_f64.powi(-22)),
                    };
                    let kept = f64::from(f32::from_bits(*kept));
                    assert!(
                        (x - kept).abs() <= bound,
                        "{x} became {kept} as {packing:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn int8_keeps_what_it_made_and_refuses_what_it_cannot_hold() {
        let given: Vec<u32> = floats(640).iter().map(|x| x.to_bits()).collect();
        let words = Packing::Int8.pack(&given).expect("all are small");
        let once = Packing::Int8.unpack(&words);
        let again = Packing::Int8.pack(&once).expect("as small");
        assert_eq!(Packing::Int8.unpack(&again), once);
        for (value, is_held) in [
            (65_008.0, true),
            (-65_008.0, true),
            (65_009.0, false),
            (f32::INFINITY, false),
            (f32::NAN, false),
        ] {
            let held = Packing::Int8.pack(&[0, value.to_bits()]);
            assert_eq!(held.is_ok(), is_held, "{value}");
        }
    }
}
