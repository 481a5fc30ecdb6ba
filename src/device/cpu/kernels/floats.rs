//! Floats between floats: the twins of `lerp.wgsl` and `bezier.wgsl`.

use super::operands::{Operands, Values};
use crate::kernel::Settings;

pub(super) fn lerp(settings: &Settings, [a, b, t, ..]: &Operands<'_>, output: &mut [f32]) {
    let (a, b) = (a.floats(), b.floats());
    let between = |t: f32, a: &f32, b: &f32| (1.0 - t) * a + t * b;
    let width = row_width(settings, t, output.len());
    if let (Values::Rows(_), 1) = (t, width) {
        let rows = a.iter().zip(b).zip(t.floats());
        for (out, ((a, b), t)) in output.iter_mut().zip(rows) {
            *out = between(*t, a, b);
        }
        return;
    }
    for (row, out) in output.chunks_exact_mut(width).enumerate() {
        let t = f32::from_bits(t.word(row));
        let from = row * width;
        for ((out, a), b) in out.iter_mut().zip(&a[from..]).zip(&b[from..]) {
            *out = between(t, a, b);
        }
    }
}

pub(super) fn bezier(
    settings: &Settings,
    [p0, p1, p2, p3, t, ..]: &Operands<'_>,
    output: &mut [f32],
) {
    let points = [p0, p1, p2, p3].map(|points| points.floats());
    let width = row_width(settings, t, output.len());
    for (row, out) in output.chunks_exact_mut(width).enumerate() {
        let t = f32::from_bits(t.word(row));
        let rest = 1.0 - t;
        let weights = [
            rest * rest * rest,
            3.0 * rest * rest * t,
            3.0 * rest * t * t,
            t * t * t,
        ];
        let [a, b, c, d] = points.map(|points| &points[row * width..]);
        let points = a.iter().zip(b).zip(c.iter().zip(d));
        for (out, ((a, b), (c, d))) in out.iter_mut().zip(points) {
            *out = (weights[0] * a + weights[1] * b) + (weights[2] * c + weights[3] * d);
        }
    }
}

/// Floats that share a `t`: all of them where the call has one.
fn row_width(settings: &Settings, t: &Values<'_>, elements: usize) -> usize {
    match t {
        Values::Scalar(_) => elements.max(1),
        Values::Rows(_) => settings.width as usize,
    }
}
