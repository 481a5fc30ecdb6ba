//! Gradients and distances of states, and steps down the gradient: the twins of
//! `state_gradients.wgsl`, `state_distance.wgsl` and `state_descend.wgsl`. Gradients and steps
//! equal those of the kernels to the bit.

use super::operands::Operands;
use crate::kernel::{COSINES, FINE_SLOPES, GEODESIC, MAGNITUDES, SLOPES, Settings};

/// The two gradients of a layer by its rho, side by side, so that one copy writes them.
static GRADIENTS: [[f32; 2]; 16] = {
    let mut gradients = [[0.0; 2]; 16];
    let mut rho = 0;
    while rho < 16 {
        gradients[rho][0] = SLOPES[rho];
        rho += 1;
    }
    gradients
};

pub(super) fn gradients([states, ..]: &Operands<'_>, output: &mut [f32]) {
    let (rows, _) = output.as_chunks_mut::<2>();
    for (out, layer) in rows.iter_mut().zip(states.layers()) {
        *out = GRADIENTS[usize::from(layer >> 4)];
    }
}

pub(super) fn distance(settings: &Settings, [a, b, ..]: &Operands<'_>, output: &mut [f32]) {
    let ((a, _), (b, _)) = (a.layers().as_chunks::<16>(), b.layers().as_chunks::<16>());
    let apart = if settings.mode == GEODESIC {
        geodesic
    } else {
        straight
    };
    for ((out, a), b) in output.iter_mut().zip(a).zip(b) {
        // The order of sums is fixed, as in the kernel: layer number k goes to lane k % 4.
        let mut sums = [0.0; 4];
        for (k, (a, b)) in a.iter().zip(b).enumerate() {
            sums[k % 4] += apart(*a, *b);
        }
        let [x, y, z, w] = sums;
        *out = (x + y) + (z + w);
    }
}

fn straight(a: u8, b: u8) -> f32 {
    if a == b {
        return 0.0;
    }
    let ([ax, ay], [bx, by]) = (point(a), point(b));
    let (x, y) = (ax - bx, ay - by);
    (x * x + y * y).sqrt()
}

fn point(layer: u8) -> [f32; 2] {
    let magnitude = MAGNITUDES[usize::from(layer >> 4)];
    let theta = usize::from(layer & 15);
    [
        magnitude * COSINES[theta],
        magnitude * COSINES[(theta + 12) & 15],
    ]
}

fn geodesic(a: u8, b: u8) -> f32 {
    let rho = u16::from((a >> 4).abs_diff(b >> 4));
    let arc = u16::from((a & 15).abs_diff(b & 15));
    let theta = arc.min(16 - arc);
    f32::from(rho * rho + theta * theta).sqrt()
}

pub(super) fn descend([states, rates, ..]: &Operands<'_>, output: &mut [u8]) {
    for (i, (out, layer)) in output.iter_mut().zip(states.layers()).enumerate() {
        let rate = rates.word(i / 16).cast_signed();
        *out = step_down(*layer, rate);
    }
}

/// A layer one step down. The rate counts units of 2⁻²², and the slope units of 2⁻³².
fn step_down(layer: u8, rate: i32) -> u8 {
    let rho = layer >> 4;
    let exact = i64::from(rate) * i64::from(FINE_SLOPES[usize::from(rho)]);
    // No value is halfway between two steps: no slope is a multiple of 2^22 units.
    let steps = (exact.abs() + (1 << 53)) >> 54;
    let moved = (i64::from(rho) - exact.signum() * steps).clamp(0, 15);
    u8::try_from(moved << 4).expect("clamped to a nibble") | (layer & 15)
}
