//! Quaternions: the twin of `slerp.wgsl`.

use std::f32::consts::{FRAC_PI_4, PI};

use super::operands::Operands;

/// π less the float `PI`.
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

pub(super) fn slerp([a, b, t, ..]: &Operands<'_>, output: &mut [f32]) {
    let (quaternions_a, _) = a.floats().as_chunks::<4>();
    let (quaternions_b, _) = b.floats().as_chunks::<4>();
    let (rows, _) = output.as_chunks_mut::<4>();
    for (row, out) in rows.iter_mut().enumerate() {
        let t = f32::from_bits(t.word(row));
        *out = slerp_one(quaternions_a[row], quaternions_b[row], t);
    }
}

pub(in crate::device::cpu) fn slerp_one(a: [f32; 4], b: [f32; 4], t: f32) -> [f32; 4] {
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

pub(super) fn zip(a: [f32; 4], b: [f32; 4], f: impl Fn(f32, f32) -> f32) -> [f32; 4] {
    std::array::from_fn(|k| f(a[k], b[k]))
}

pub(super) fn dot(a: [f32; 4], b: [f32; 4]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
}
