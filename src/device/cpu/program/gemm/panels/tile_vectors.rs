//! A panel times four lines, in vectors of four floats.
//!
//! LLVM finds no vectors in sums that go round a loop, so the vectors are written out. Values
//! are taken one at a time, because more of them would not fit the registers.

use std::arch::wasm32::{f32x4_add, f32x4_extract_lane, f32x4_mul, f32x4_splat, v128, v128_load};

use super::{HIGH, Sums, WIDE};

/// For each line the sums of its products with the lines of a panel.
pub(super) fn tile([a, b, c, d]: [&[f32]; HIGH], panel: &[f32]) -> Sums {
    let mut sums = [[f32x4_splat(0.0); 2]; HIGH];
    let (panel, _) = panel.as_chunks::<WIDE>();
    for ((((panel, a), b), c), d) in panel.iter().zip(a).zip(b).zip(c).zip(d) {
        let panel = [load(panel, 0), load(panel, 4)];
        sums = [
            added(sums[0], *a, panel),
            added(sums[1], *b, panel),
            added(sums[2], *c, panel),
            added(sums[3], *d, panel),
        ];
    }
    sums.map(stored)
}

#[inline(always)]
fn added([low, high]: [v128; 2], value: f32, panel: [v128; 2]) -> [v128; 2] {
    let value = f32x4_splat(value);
    [
        f32x4_add(low, f32x4_mul(value, panel[0])),
        f32x4_add(high, f32x4_mul(value, panel[1])),
    ]
}

#[inline(always)]
fn load(from: &[f32; WIDE], at: usize) -> v128 {
    let from = &from[at..at + 4];
    #[expect(unsafe_code, reason = "a vector is loaded by a pointer")]
    // SAFETY: the slice has four floats, and the load needs no alignment.
    unsafe {
        v128_load(from.as_ptr().cast())
    }
}

fn stored([low, high]: [v128; 2]) -> [f32; WIDE] {
    [
        f32x4_extract_lane::<0>(low),
        f32x4_extract_lane::<1>(low),
        f32x4_extract_lane::<2>(low),
        f32x4_extract_lane::<3>(low),
        f32x4_extract_lane::<0>(high),
        f32x4_extract_lane::<1>(high),
        f32x4_extract_lane::<2>(high),
        f32x4_extract_lane::<3>(high),
    ]
}
