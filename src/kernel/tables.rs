//! Tables that the kernels of states read by a layer's nibbles, rho and theta.
//!
//! The twins read these tables; the WGSL files have the same tables as literals, and a test
//! compares both bit by bit.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, SQRT_2};

/// 2^(ρ/4) by ρ + 8; the first entry is 0, of the null layer.
pub const MAGNITUDES: [f32; 16] = rounded(by_rho(1.0));

/// (ln 2 / 4)·2^(ρ/4) by ρ + 8; the first entry is 0, of the null layer.
pub const SLOPES: [f32; 16] = rounded(by_rho(LN_2 / 4.0));

/// [`SLOPES`] in units of 2⁻³².
pub const FINE_SLOPES: [u32; 16] = in_units(by_rho(LN_2 / 4.0));

/// cos(πθ/8) by θ. The sine of θ is the cosine of θ − 4.
pub const COSINES: [f32; 16] = {
    const SHORT: f64 = 0.382_683_432_365_089_8;
    const LONG: f64 = 0.923_879_532_511_286_7;
    const EIGHTH: f64 = FRAC_1_SQRT_2;
    rounded([
        1.0, LONG, EIGHTH, SHORT, 0.0, -SHORT, -EIGHTH, -LONG, -1.0, -LONG, -EIGHTH, -SHORT, 0.0,
        SHORT, EIGHTH, LONG,
    ])
};

/// scale·2^(ρ/4) by ρ + 8, from powers of two and the three fourth roots between two of these.
const fn by_rho(scale: f64) -> [f64; 16] {
    const ROOTS: [f64; 4] = [1.0, 1.189_207_115_002_721, SQRT_2, 1.681_792_830_507_429];
    let mut values = [0.0; 16];
    let mut i = 1;
    while i < 16 {
        // 2^((i − 8)/4) = 2^(⌊i/4⌋ − 2) · 2^((i mod 4)/4)
        let whole = (1_u32 << (i / 4)) as f64 / 4.0;
        values[i] = scale * whole * ROOTS[i % 4];
        i += 1;
    }
    values
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rounded once, to the table's type"
)]
const fn rounded(values: [f64; 16]) -> [f32; 16] {
    let mut table = [0.0; 16];
    let mut i = 0;
    while i < 16 {
        table[i] = values[i] as f32;
        i += 1;
    }
    table
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 1, so below 2^32 units"
)]
const fn in_units(values: [f64; 16]) -> [u32; 16] {
    let mut table = [0; 16];
    let mut i = 0;
    while i < 16 {
        table[i] = (values[i] * 4_294_967_296.0 + 0.5) as u32;
        i += 1;
    }
    table
}
