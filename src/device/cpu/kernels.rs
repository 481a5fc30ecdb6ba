//! The CPU twin of each kernel: the same formulas as the WGSL files, one row
//! after the other. States agree with the GPU to the bit.

use std::f32::consts::{FRAC_PI_4, PI};

use crate::kernel::{Kernel, MAX_OPERANDS, Settings};

/// One operand of one call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values<'a> {
    /// The rows' words, end to end.
    Rows(&'a [u32]),
    /// One word for the whole call.
    Scalar(u32),
}

/// All operands of one call.
pub(super) type Operands<'a> = [Values<'a>; MAX_OPERANDS];

impl<'a> Values<'a> {
    fn words(&self) -> &'a [u32] {
        match self {
            Values::Rows(words) => words,
            Values::Scalar(_) => &[],
        }
    }

    fn floats(&self) -> &'a [f32] {
        bytemuck::cast_slice(self.words())
    }

    /// The value for a row.
    fn word(&self, row: usize) -> u32 {
        match self {
            Values::Rows(words) => words[row],
            Values::Scalar(word) => *word,
        }
    }
}

/// Computes one call.
pub(super) fn run(
    kernel: &Kernel,
    settings: &Settings,
    operands: &Operands<'_>,
    output: &mut [u32],
) {
    match kernel {
        Kernel::Lerp => lerp(settings, operands, bytemuck::cast_slice_mut(output)),
        Kernel::Slerp => slerp(operands, bytemuck::cast_slice_mut(output)),
        Kernel::StateGradients => state_gradients(operands, bytemuck::cast_slice_mut(output)),
        Kernel::StateInterpolate => state_interpolate(settings, operands, output),
    }
}

fn lerp(settings: &Settings, [a, b, t, ..]: &Operands<'_>, output: &mut [f32]) {
    let (a, b) = (a.floats(), b.floats());
    let width = settings.width as usize;
    for (row, out) in output.chunks_exact_mut(width).enumerate() {
        let t = f32::from_bits(t.word(row));
        let from = row * width;
        for ((out, a), b) in out.iter_mut().zip(&a[from..]).zip(&b[from..]) {
            *out = (1.0 - t) * a + t * b;
        }
    }
}

/// What PI lacks.
const PI_REST: f32 = -8.742_278e-8;
const TAN_PI_8: f32 = 0.414_213_57;

fn arc_tangent(r: f32) -> f32 {
    let far = r > TAN_PI_8;
    let x = if far { (r - 1.0) / (r + 1.0) } else { r };
    let z = x * x;
    let tail = ((8.053_744_5e-2 * z - 1.387_768_6e-1) * z + 1.997_771_1e-1) * z - 3.333_295e-1;
    (if far { FRAC_PI_4 } else { 0.0 }) + (tail * z * x + x)
}

fn sinc(x: f32) -> f32 {
    let z = x * x;
    ((((-2.505_210_8e-8 * z + 2.755_732e-6) * z - 1.984_127e-4) * z + 8.333_334e-3) * z
        - 1.666_666_7e-1)
        * z
        + 1.0
}

fn weight(s: f32, angle: f32) -> f32 {
    let x = s * angle;
    let turns = (x / PI).round_ties_even();
    if turns == 0.0 {
        return s * sinc(x) / sinc(angle);
    }
    let y = (x - turns * PI) - turns * PI_REST;
    let sign = if turns % 2.0 == 0.0 { 1.0 } else { -1.0 };
    sign * y * sinc(y) / (angle * sinc(angle))
}

fn slerp([a, b, t, ..]: &Operands<'_>, output: &mut [f32]) {
    let (quaternions_a, _) = a.floats().as_chunks::<4>();
    let (quaternions_b, _) = b.floats().as_chunks::<4>();
    let (rows, _) = output.as_chunks_mut::<4>();
    for (row, out) in rows.iter_mut().enumerate() {
        let t = f32::from_bits(t.word(row));
        *out = slerp_one(quaternions_a[row], quaternions_b[row], t);
    }
}

fn slerp_one(a: [f32; 4], b: [f32; 4], t: f32) -> [f32; 4] {
    let b = if dot(a, b) < 0.0 { b.map(|x| -x) } else { b };
    let apart = zip(a, b, |a, b| a - b);
    let along = zip(a, b, |a, b| a + b);
    let gap = dot(apart, apart).sqrt();
    let angle = if gap == 0.0 {
        0.0
    } else {
        2.0 * arc_tangent(gap / dot(along, along).sqrt())
    };
    let (weight_a, weight_b) = (weight(1.0 - t, angle), weight(t, angle));
    zip(a, b, |a, b| weight_a * a + weight_b * b)
}

fn zip(a: [f32; 4], b: [f32; 4], f: impl Fn(f32, f32) -> f32) -> [f32; 4] {
    std::array::from_fn(|k| f(a[k], b[k]))
}

fn dot(a: [f32; 4], b: [f32; 4]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
}

fn state_gradients([states, ..]: &Operands<'_>, output: &mut [f32]) {
    let layers: &[u8] = bytemuck::cast_slice(states.words());
    let (rows, _) = output.as_chunks_mut::<2>();
    for (out, layer) in rows.iter_mut().zip(layers) {
        *out = [SLOPES[usize::from(layer >> 4)], 0.0];
    }
}

/// (ln 2 / 4)·2^(ρ/4) by ρ + 8; the first is null. Powers of two and the three
/// fourth roots between them.
const SLOPES: [f32; 16] = {
    const ROOTS: [f64; 4] = [
        1.0,
        1.189_207_115_002_721,
        std::f64::consts::SQRT_2,
        1.681_792_830_507_429,
    ];
    const QUARTER: f64 = std::f64::consts::LN_2 / 4.0;
    let mut slopes = [0.0; 16];
    let mut i = 1;
    while i < 16 {
        // 2^((i − 8)/4) = 2^(⌊i/4⌋ − 2) · 2^((i mod 4)/4)
        let whole = (1_u32 << (i / 4)) as f64 / 4.0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounded once, to the table's type"
        )]
        let slope = (QUARTER * whole * ROOTS[i % 4]) as f32;
        slopes[i] = slope;
        i += 1;
    }
    slopes
};

/// The mode of [`Kernel::StateInterpolate`] that takes the shorter arc.
const SLERP: u32 = 1;

fn state_interpolate(settings: &Settings, [a, b, t, ..]: &Operands<'_>, output: &mut [u32]) {
    let layers_a: &[u8] = bytemuck::cast_slice(a.words());
    let layers_b: &[u8] = bytemuck::cast_slice(b.words());
    let output: &mut [u8] = bytemuck::cast_slice_mut(output);
    let longest = if settings.mode == SLERP { 8 } else { 15 };
    for (i, out) in output.iter_mut().enumerate() {
        let t = i64::from(t.word(i / 16));
        *out = layer(layers_a[i], layers_b[i], t, longest);
    }
}

/// `longest` is the arc beyond which the other way around is taken.
fn layer(from: u8, to: u8, t: i64, longest: i64) -> u8 {
    let (rho_from, rho_to) = (i64::from(from >> 4), i64::from(to >> 4));
    let rho = advance(rho_from, rho_to - rho_from, t);
    let theta = i64::from(from & 15);
    let arc = match i64::from(to & 15) - theta {
        arc if arc > longest => arc - 16,
        arc if arc < -longest => arc + 16,
        arc => arc,
    };
    let theta = advance(theta, arc, t).rem_euclid(16);
    u8::try_from(rho << 4 | theta).expect("rho lies between two nibbles, theta is modulo 16")
}

/// `from + step·t`, t in 16.16, rounded half to even.
fn advance(from: i64, step: i64, t: i64) -> i64 {
    let exact = (from << 16) + step * t;
    let whole = exact >> 16;
    let rest = exact & 0xffff;
    let up = rest > 0x8000 || (rest == 0x8000 && whole & 1 == 1);
    whole + i64::from(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_the_derivative_of_the_magnitude() {
        assert_eq!(SLOPES[0], 0.0, "null");
        for (i, slope) in SLOPES.iter().enumerate().skip(1) {
            let rho = i as f64 - 8.0;
            let exact = std::f64::consts::LN_2 / 4.0 * (rho / 4.0).exp2();
            assert_eq!(*slope, exact as f32, "rho {rho}");
        }
    }
}
