//! States: 16 layers of magnitude and phase, a byte each.
//!
//! High nibble ρ + 8 with ρ in −8..=7 (−8 is null), low nibble θ in
//! sixteenths of a turn; the layer's value is m·e^(iπθ/8) with m = 2^(ρ/4).

use super::{between, of};
use crate::error::Error;
use crate::graph::{Graph, Measure, Mode, Op, STATE, STEPS, Timing};
use crate::tensor::DType;

/// A state of 16 layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct State(pub [u8; 16]);

/// (∂m/∂ρ, ∂m/∂θ) of each layer: 32 floats a state.
pub fn gradients() -> Graph {
    of(Op::StateGradients, [STATE])
}

/// A state between two states.
pub fn interpolate(mode: Mode, timing: Timing) -> Graph {
    let op = Op::StateInterpolate(mode);
    between(op, [STATE; 2], DType::Fraction, timing)
}

/// The states from one to another: `steps` of them, both ends included.
///
/// # Errors
///
/// [`Error::InvalidInput`] for fewer than 2 or more than 65,536 steps.
pub fn sequence(steps: u32, mode: Mode) -> Result<Graph, Error> {
    if STEPS.contains(&steps) {
        return Ok(of(Op::StateSequence { mode, steps }, [STATE; 2]));
    }
    let (least, most) = STEPS.into_inner();
    Err(Error::InvalidInput(format!(
        "sequence: steps is {steps}, but may be {least} to {most}"
    )))
}

/// A state on a cubic Bézier curve of four states.
pub fn interpolate_bezier(timing: Timing) -> Graph {
    between(Op::StateBezier, [STATE; 4], DType::Fraction, timing)
}

/// How far apart two states are: one float a pair.
pub fn distance(measure: Measure) -> Graph {
    of(Op::StateDistance(measure), [STATE; 2])
}

/// A state one step down the gradient of its magnitude.
pub fn descend(timing: Timing) -> Graph {
    between(Op::StateDescend, [STATE], DType::Rate, timing)
}
