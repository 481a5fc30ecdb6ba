//! States: 16 layers of magnitude and phase, a byte each.
//!
//! High nibble ρ + 8 with ρ in −8..=7 (−8 is null), low nibble θ in
//! sixteenths of a turn; the layer's value is m·e^(iπθ/8) with m = 2^(ρ/4).

use super::between;
use crate::graph::{Graph, Mode, Op, STATE, Timing};
use crate::tensor::DType;

/// A state of 16 layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct State(pub [u8; 16]);

/// (∂m/∂ρ, ∂m/∂θ) of each layer: 32 floats a state.
pub fn gradients() -> Graph {
    let mut graph = Graph::default();
    let states = graph.input(STATE);
    graph
        .apply(Op::StateGradients, &[states])
        .expect("the format above suits the op");
    graph
}

/// A state between two states.
pub fn interpolate(mode: Mode, timing: Timing) -> Graph {
    between(Op::StateInterpolate(mode), STATE, DType::Fraction, timing)
}
