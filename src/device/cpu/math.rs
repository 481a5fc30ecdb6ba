//! Functions of floats, as in `shaders/lib/math.wgsl`: polynomials of Cephes, right to the last
//! bits.
//!
//! The functions of the standard library would have to come with the package, which these few
//! lines do not need.

#![expect(
    clippy::cast_possible_truncation,
    reason = "the numbers are whole and small; others saturate"
)]

use std::f32::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, LOG2_E, PI};

/// 1.5 · 2²³. A small number that is added to this one is rounded to a whole number, half to
/// even, and the whole number is in the last bits of the sum.
const WHOLE: f32 = 12_582_912.0;

#[inline]
fn two_to(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127)).cast_unsigned() << 23)
}

#[inline]
pub(super) fn exponential(x: f32) -> f32 {
    let near = x.clamp(-104.0, 89.0);
    let shifted = near * LOG2_E + WHOLE;
    let n = shifted - WHOLE;
    let r = (near - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let tail = ((((1.987_569_1e-4 * r + 1.398_199_9e-3) * r + 8.333_452e-3) * r + 4.166_579_6e-2)
        * r
        + 1.666_666_5e-1)
        * r
        + 0.5;
    let whole = shifted
        .to_bits()
        .wrapping_sub(WHOLE.to_bits())
        .cast_signed();
    let half = whole >> 1;
    (tail * r * r + r + 1.0) * two_to(half) * two_to(whole.wrapping_sub(half))
}

#[inline]
pub(super) fn logarithm(x: f32) -> f32 {
    let bits = x.to_bits();
    let half = f32::from_bits((bits & 0x7f_ffff) | 0x3f00_0000);
    let low = half < std::f32::consts::FRAC_1_SQRT_2;
    let n = ((bits >> 23).cast_signed() - if low { 127 } else { 126 }) as f32;
    let m = if low { half + half } else { half } - 1.0;
    let z = m * m;
    let tail = LOGARITHM.iter().fold(0.0, |sum, c| sum * m + c) * m * z;
    let value = (m + ((tail - n * 2.121_944_4e-4) - 0.5 * z)) + n * 0.693_359_4;
    let value = if x == f32::INFINITY { x } else { value };
    // Subnormal numbers count as zero, as on a GPU.
    let small = if x >= 0.0 {
        f32::NEG_INFINITY
    } else {
        f32::NAN
    };
    if x >= f32::MIN_POSITIVE { value } else { small }
}

const LOGARITHM: [f32; 9] = [
    7.037_683_6e-2,
    -1.151_461e-1,
    1.167_699_9e-1,
    -1.242_014_1e-1,
    1.424_932_3e-1,
    -1.666_805_8e-1,
    2.000_071_5e-1,
    -2.499_999_4e-1,
    3.333_333e-1,
];

/// Arguments of waves up to here are reduced in floats, and larger ones in whole numbers.
pub(super) const FAR: f32 = 4096.0;

/// The digits of 2/π, 32 bits at a time, of which the first word holds six.
const QUARTERS: [u32; 7] = [
    0x28,
    0xbe60_db93,
    0x9105_4a7f,
    0x09d5_f47d,
    0x4d37_7036,
    0xd8a5_664f,
    0,
];

/// sin(x + quarters·π/2), for |x| from [`FAR`] on: whole turns are taken off in whole numbers,
/// as in `shaders/lib/waves.wgsl`.
pub(super) fn far_wave(x: f32, quarters: i32) -> f32 {
    if !x.is_finite() {
        return f32::NAN;
    }
    let size = x.to_bits() & MAGNITUDE;
    let start = (size >> 23) - 126;
    let (word, by) = (start as usize >> 5, start & 31);
    let [a, b, c] = [0, 1, 2].map(|next| u64::from(QUARTERS[word + next]));
    let window = (a << 32 | b) << by | c << by >> 32;
    // Quarters of a turn with 30 bits behind the point.
    let turn = u64::from(digits(size)).wrapping_mul(window) >> 32;
    let turn = (turn as u32).cast_signed();
    let turn = if x < 0.0 { turn.wrapping_neg() } else { turn };
    let whole = turn.wrapping_add(1 << 29) >> 30;
    let rest = turn.wrapping_sub(whole << 30) as f32 * (FRAC_PI_2 / 1_073_741_824.0);
    wave(rest, whole.wrapping_add(quarters))
}

/// sin(x + quarters·π/2), for |x| up to [`FAR`].
#[inline]
pub(super) fn wave(x: f32, quarters: i32) -> f32 {
    let n = (x * FRAC_2_PI).round_ties_even();
    let r = ((x - n * 1.570_312_5) - n * 4.837_513e-4) - n * 7.549_79e-8;
    let z = r * r;
    let turn = (n as i32).wrapping_add(quarters);
    let value = if turn & 1 == 1 {
        ((2.443_315_7e-5 * z - 1.388_731_6e-3) * z + 4.166_664_6e-2) * z * z - 0.5 * z + 1.0
    } else {
        ((-1.951_529_6e-4 * z + 8.332_161e-3) * z - 1.666_665_5e-1) * z * r + r
    };
    if turn & 2 == 2 { -value } else { value }
}

#[inline]
pub(super) fn hyperbolic_tangent(x: f32) -> f32 {
    if x.abs() >= 0.625 {
        return x.signum() * (1.0 - 2.0 / (exponential(2.0 * x.abs()) + 1.0));
    }
    let z = x * x;
    ((((-5.704_988_7e-3 * z + 2.063_909e-2) * z - 5.373_971_6e-2) * z + 1.333_144_2e-1) * z
        - 3.333_328e-1)
        * z
        * x
        + x
}

pub(super) fn power(x: f32, y: f32) -> f32 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    let is_whole = y == y.floor();
    if x < 0.0 && !is_whole {
        return f32::NAN;
    }
    let size = match x.abs() {
        0.0 if y > 0.0 => 0.0,
        0.0 if y < 0.0 => f32::INFINITY,
        size => exponential(y * logarithm(size)),
    };
    let is_odd = is_whole && (y * 0.5).fract() != 0.0 && y.abs() < 16_777_216.0;
    if is_odd && x.is_sign_negative() {
        -size
    } else {
        size
    }
}

const MAGNITUDE: u32 = 0x7fff_ffff;
const INFINITY: u32 = 0x7f80_0000;
const SMALLEST_NORMAL: u32 = 0x0080_0000;

/// The digits in front of a float's exponent, as a whole number.
fn digits(size: u32) -> u32 {
    let hidden = if size < SMALLEST_NORMAL {
        0
    } else {
        SMALLEST_NORMAL
    };
    size & 0x7f_ffff | hidden
}

/// The remainder of a long division, exact whatever the quotient, with the sign of y.
pub(super) fn modulo(x: f32, y: f32) -> f32 {
    let [a, b] = [x, y].map(|x| x.to_bits() & MAGNITUDE);
    if a >= INFINITY || b > INFINITY || b == 0 {
        return f32::NAN;
    }
    let size = if a < b { x.abs() } else { remainder(a, b) };
    let is_other = size != 0.0 && x.is_sign_negative() != y.is_sign_negative();
    let size = if is_other { y.abs() - size } else { size };
    size.copysign(y)
}

/// The remainder of magnitudes `a` and `b`, given by their bits, of which `a` is not smaller.
fn remainder(a: u32, b: u32) -> f32 {
    let divisor = u64::from(digits(b));
    let exponent = (b >> 23).max(1);
    let mut left = (a >> 23).max(1) - exponent;
    let mut rest = u64::from(digits(a)) % divisor;
    while left > 0 {
        let step = left.min(40);
        rest = (rest << step) % divisor;
        left -= step;
    }
    let half = (exponent / 2).cast_signed() - 75;
    let other = exponent.cast_signed() - 150 - half;
    // Two powers of two, because one of both may be too small for a float.
    rest as f32 * two_to(half) * two_to(other)
}

/// The angle of the point (x, y), by the polynomial of Cephes.
pub(super) fn angle(y: f32, x: f32) -> f32 {
    let [a, b] = [y, x].map(|x| x.to_bits() & MAGNITUDE);
    let (low, high) = match (a.min(b), a.max(b)) {
        (_, INFINITY..) if y.is_nan() || x.is_nan() => return f32::NAN,
        (INFINITY, _) => (1.0, 1.0),
        // Subnormal points lie at 0, as on a GPU.
        (_, INFINITY | ..SMALLEST_NORMAL) => (0.0, 1.0),
        (low, high) => {
            let shrink = if high > 0x7e00_0000 { 0.125 } else { 1.0 };
            (f32::from_bits(low) * shrink, f32::from_bits(high) * shrink)
        }
    };
    let is_steep = low > high * 0.414_213_56;
    let (low, high) = if is_steep {
        (low - high, low + high)
    } else {
        (low, high)
    };
    let t = low / high;
    let z = t * t;
    let near =
        (((8.053_744_5e-2 * z - 1.387_768_6e-1) * z + 1.997_771_1e-1) * z - 3.333_295e-1) * z * t
            + t;
    let first = if is_steep { near + FRAC_PI_4 } else { near };
    let right = if a > b { FRAC_PI_2 - first } else { first };
    let size = if x.is_sign_negative() {
        PI - right
    } else {
        right
    };
    size.copysign(y)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    #[track_caller]
    fn check(name: &str, own: fn(f32) -> f32, real: fn(f64) -> f64, over: Range<f32>) {
        for k in 0..=20_000 {
            let x = over.start + (over.end - over.start) * (k as f32 / 20_000.0);
            let (got, want) = (f64::from(own(x)), real(f64::from(x)));
            // Relative to the value, or to 1/16 where the value passes through 0.
            let error = (got - want).abs() / want.abs().max(0.0625);
            assert!(error < 4e-7, "{name}({x}) is {got}, want {want}: {error:e}");
        }
    }

    #[test]
    fn functions_are_those_of_float64() {
        check("exp", exponential, f64::exp, -80.0..88.0);
        check("log", logarithm, f64::ln, 1e-6..3.0);
        check("log", logarithm, f64::ln, 1.0..1e30);
        check("sin", |x| wave(x, 0), f64::sin, -FAR..FAR);
        check("cos", |x| wave(x, 1), f64::cos, -FAR..FAR);
        check("sin", |x| far_wave(x, 0), f64::sin, FAR..f32::MAX);
        check("cos", |x| far_wave(x, 1), f64::cos, -1e9..-FAR);
        check("atan2", |x| angle(1.0, x), |x| 1_f64.atan2(x), -9.0..9.0);
        check(
            "mod",
            |x| modulo(x, 0.3),
            |x| x.rem_euclid(f64::from(0.3_f32)),
            -9.0..1e30,
        );
        check("tan", |x| wave(x, 0) / wave(x, 1), f64::tan, -1.5..1.5);
        check("tanh", hyperbolic_tangent, f64::tanh, -10.0..10.0);
        check("2^x", |x| power(2.0, x), f64::exp2, -8.0..8.0);
        check("x^0.5", |x| power(x, 0.5), f64::sqrt, 0.0..9.0);
        check("x^3", |x| power(x, 3.0), |x| x.powi(3), -2.0..2.0);
    }

    #[test]
    fn edges_are_as_expected() {
        assert_eq!(exponential(200.0), f32::INFINITY);
        assert_eq!(exponential(-200.0), 0.0);
        assert_eq!(logarithm(0.0), f32::NEG_INFINITY);
        assert!(logarithm(-1.0).is_nan());
        assert_eq!(
            [power(0.0, 2.0), power(0.0, 0.0), power(-2.0, 0.0)],
            [0.0, 1.0, 1.0]
        );
        assert!(power(-2.0, 0.5).is_nan());
    }
}
