//! A panel times four lines, float by float: the same sums where there are no vectors.

use super::{HIGH, Sums, WIDE};

/// For each line the sums of its products with the lines of a panel.
pub(super) fn tile([a, b, c, d]: [&[f32]; HIGH], panel: &[f32]) -> Sums {
    let mut sums = [[0.0; WIDE]; HIGH];
    let (panel, _) = panel.as_chunks::<WIDE>();
    for (lines, sums) in [[a, b], [c, d]].into_iter().zip(sums.chunks_exact_mut(2)) {
        let (low, high) = (part::<0>(lines, panel), part::<4>(lines, panel));
        for (sums, (low, high)) in sums.iter_mut().zip(low.into_iter().zip(high)) {
            sums[..4].copy_from_slice(&low);
            sums[4..].copy_from_slice(&high);
        }
    }
    sums
}

/// Two lines times four lines of a panel: more sums would not fit the registers.
fn part<const AT: usize>([a, b]: [&[f32]; 2], panel: &[[f32; WIDE]]) -> [[f32; 4]; 2] {
    let mut sums = [[0.0; 4]; 2];
    for ((panel, a), b) in panel.iter().zip(a).zip(b) {
        let [w, x, y, z] = [panel[AT], panel[AT + 1], panel[AT + 2], panel[AT + 3]];
        let [of_a, of_b] = sums;
        sums = [
            [
                of_a[0] + a * w,
                of_a[1] + a * x,
                of_a[2] + a * y,
                of_a[3] + a * z,
            ],
            [
                of_b[0] + b * w,
                of_b[1] + b * x,
                of_b[2] + b * y,
                of_b[3] + b * z,
            ],
        ];
    }
    sums
}
