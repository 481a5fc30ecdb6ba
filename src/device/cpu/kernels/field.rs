//! Gradients of a caller's own field: the twin of `state_field.wgsl`.

use super::super::expr::{BLOCK, Values};
use super::Operands;
use crate::kernel::Expr;

/// How far apart a difference is taken from a layer's own place.
const STEP: f32 = 1.0 / 1024.0;

pub(super) fn field_gradients(field: &Expr, [states, ..]: &Operands<'_>, output: &mut [f32]) {
    let mut values = Values::new(field);
    let (rows, _) = output.as_chunks_mut::<2>();
    // Whole states, so a layer's number is that within its block.
    for (layers, rows) in states.layers().chunks(BLOCK).zip(rows.chunks_mut(BLOCK)) {
        let mut at = |rho: f32, theta: f32| {
            let rhos = block(layers, |_, byte| {
                (f32::from(byte >> 4) - 8.0 + rho).clamp(-8.0, 7.0)
            });
            let thetas = block(layers, |_, byte| turned(f32::from(byte & 15), theta));
            let numbers = block(layers, |k, _| (k % 16) as f32);
            *values.evaluate(field, &[&rhos, &thetas, &numbers])
        };
        let (up, down) = (at(STEP, 0.0), at(-STEP, 0.0));
        let (ahead, back) = (at(0.0, STEP), at(0.0, -STEP));
        for (k, (out, byte)) in rows.iter_mut().zip(layers).enumerate() {
            let is_end = matches!(byte >> 4, 0 | 15);
            let scale = if is_end { 1024.0 } else { 512.0 };
            *out = [(up[k] - down[k]) * scale, (ahead[k] - back[k]) * 512.0];
        }
    }
}

fn turned(theta: f32, by: f32) -> f32 {
    let moved = theta + by;
    if moved < 0.0 { moved + 16.0 } else { moved }
}

fn block(layers: &[u8], value: impl Fn(usize, u8) -> f32) -> [f32; BLOCK] {
    let mut block = [0.0; BLOCK];
    for (k, (out, byte)) in block.iter_mut().zip(layers).enumerate() {
        *out = value(k, *byte);
    }
    block
}
