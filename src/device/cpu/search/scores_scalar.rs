//! The scores of a block's vectors: a few of them at a time, whose sums stay in
//! registers.

use super::VECTORS;
use crate::kernel::searching::Scan;

/// Vectors whose sums are kept in registers.
const AT_ONCE: usize = 8;

/// The scores of a block's vectors.
pub(super) fn compare(scan: &Scan, vectors: &[f32], query: &[f32]) -> [f32; VECTORS] {
    let is_distance = scan.is_distance;
    let mut scores = [0.0; VECTORS];
    for (place, scores) in scores.chunks_exact_mut(AT_ONCE).enumerate() {
        let mut sums = [[0.0_f32; 4]; AT_ONCE];
        let rows = vectors.chunks_exact(4 * VECTORS);
        for (row, q) in rows.zip(query.chunks_exact(4)) {
            let row = &row[place * 4 * AT_ONCE..][..4 * AT_ONCE];
            for (sums, v) in sums.iter_mut().zip(row.chunks_exact(4)) {
                for k in 0..4 {
                    let d = v[k] - q[k];
                    sums[k] += if is_distance { d * d } else { v[k] * q[k] };
                }
            }
        }
        for (score, [a, b, c, d]) in scores.iter_mut().zip(sums) {
            let sum = (a + b) + (c + d);
            *score = if is_distance { -sum } else { sum };
        }
    }
    scores
}
