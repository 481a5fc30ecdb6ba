//! Floats between floats: the twins of `lerp.wgsl` and `bezier.wgsl`.

use super::Operands;
use crate::kernel::Settings;

pub(super) fn lerp(settings: &Settings, [a, b, t, ..]: &Operands<'_>, output: &mut [f32]) {
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

pub(super) fn bezier(
    settings: &Settings,
    [p0, p1, p2, p3, t, ..]: &Operands<'_>,
    output: &mut [f32],
) {
    let points = [p0, p1, p2, p3].map(|points| points.floats());
    let width = settings.width as usize;
    for (row, out) in output.chunks_exact_mut(width).enumerate() {
        let t = f32::from_bits(t.word(row));
        let rest = 1.0 - t;
        let weights = [
            rest * rest * rest,
            3.0 * rest * rest * t,
            3.0 * rest * t * t,
            t * t * t,
        ];
        for (k, out) in out.iter_mut().enumerate() {
            let [a, b, c, d] = points.map(|points| points[row * width + k]);
            *out = (weights[0] * a + weights[1] * b) + (weights[2] * c + weights[3] * d);
        }
    }
}
