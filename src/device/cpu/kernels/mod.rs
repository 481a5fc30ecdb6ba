//! The CPU twins of the kernels that are written by hand: the formulas of the WGSL files, one
//! row after the other. States agree with the GPU to the bit.

mod field;
mod floats;
mod measures;
mod nlerp;
mod operands;
pub(super) mod slerp;
mod states;

use self::field::field_gradients;
use self::floats::{bezier, lerp};
use self::measures::{descend, distance, gradients};
use self::nlerp::nlerp;
pub(super) use self::operands::{Operands, Values};
use self::slerp::slerp;
use self::states::{curve, interpolate, sequence};
use crate::kernel::{Named, Settings};

/// Computes one call.
pub(super) fn run(
    kernel: &Named,
    settings: &Settings,
    operands: &Operands<'_>,
    output: &mut [u32],
) {
    match kernel {
        Named::Clip | Named::TopKScan(_) | Named::TopKMerge | Named::PackVectors => {
            unreachable!("its operands lie otherwise")
        }
        Named::Lerp => lerp(settings, operands, floats(output)),
        Named::Slerp => slerp(operands, floats(output)),
        Named::Nlerp => nlerp(operands, floats(output)),
        Named::Bezier => bezier(settings, operands, floats(output)),
        Named::StateGradients => gradients(operands, floats(output)),
        Named::StateField(field) => field_gradients(field, operands, floats(output)),
        Named::StateInterpolate => interpolate(settings, operands, layers(output)),
        Named::StateSequence => sequence(settings, operands, layers(output)),
        Named::StateBezier => curve(operands, layers(output)),
        Named::StateDistance => distance(settings, operands, floats(output)),
        Named::StateDescend => descend(operands, layers(output)),
    }
}

fn floats(output: &mut [u32]) -> &mut [f32] {
    bytemuck::cast_slice_mut(output)
}

fn layers(output: &mut [u32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(output)
}
