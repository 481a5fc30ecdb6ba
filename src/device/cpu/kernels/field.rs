//! Gradients of a caller's own field: the twin of `state_field.wgsl`.

use super::operands::Operands;
use crate::device::cpu::expr::{BLOCK, Columns};
use crate::kernel::Expr;

/// Distance from a layer's own place at which a difference is taken.
const STEP: f32 = 1.0 / 1024.0;

pub(super) fn field_gradients(field: &Expr, [states, ..]: &Operands<'_>, output: &mut [f32]) {
    let mut columns = Columns::new(3);
    // A block has whole states, so value number k of a block is layer number k % 16.
    for (k, number) in columns.column(2).iter_mut().enumerate() {
        *number = (k % 16) as f32;
    }
    let (rows, _) = output.as_chunks_mut::<2>();
    for (layers, rows) in states.layers().chunks(BLOCK).zip(rows.chunks_mut(BLOCK)) {
        let mut at = |rho: f32, theta: f32| {
            for (k, byte) in layers.iter().enumerate() {
                columns.column(0)[k] = (f32::from(byte >> 4) - 8.0 + rho).clamp(-8.0, 7.0);
                columns.column(1)[k] = turned(f32::from(byte & 15), theta);
            }
            columns.evaluate(field, &[], layers.len()).to_vec()
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
