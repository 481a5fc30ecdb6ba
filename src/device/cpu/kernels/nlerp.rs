//! Quaternions on chords: the twin of `nlerp.wgsl`.

use super::operands::Operands;
use super::slerp::{dot, zip};

pub(super) fn nlerp([a, b, t, ..]: &Operands<'_>, output: &mut [f32]) {
    let (quaternions_a, _) = a.floats().as_chunks::<4>();
    let (quaternions_b, _) = b.floats().as_chunks::<4>();
    let (rows, _) = output.as_chunks_mut::<4>();
    for (row, out) in rows.iter_mut().enumerate() {
        let (a, b) = (quaternions_a[row], quaternions_b[row]);
        let t = f32::from_bits(t.word(row));
        let b = if dot(a, b) < 0.0 { b.map(|x| -x) } else { b };
        let sum = zip(a, b, |a, b| (1.0 - t) * a + t * b);
        let length = dot(sum, sum).sqrt();
        // A sum of length 0 has no direction: the result is no turn.
        *out = match length == 0.0 {
            true => [0.0, 0.0, 0.0, 1.0],
            false => sum.map(|x| x / length),
        };
    }
}
