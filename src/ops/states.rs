//! States: 16 layers of magnitude and phase, a byte each.
//!
//! High nibble ρ + 8 with ρ in −8..=7 (−8 is null), low nibble θ in
//! sixteenths of a turn; the layer's value is m·e^(iπθ/8) with m = 2^(ρ/4).

use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{grammar, of};
use crate::error::Error;
use crate::graph::{Expr, Measure, Mode, Timing};
use crate::program::{GEODESIC, Named, RowOp};
use crate::tensor::{DType, Format};

/// The format of a state.
const STATE: Format = Format {
    dtype: DType::State,
    width: 1,
};

/// The format of the gradients of a state.
const GRADIENTS: Format = Format {
    dtype: DType::F32,
    width: 32,
};

/// The format of a float.
const FLOAT: Format = Format {
    dtype: DType::F32,
    width: 1,
};

/// How many steps a sequence may have: at least both ends, and no more than 16.16 fixed point
/// tells apart.
const STEPS: RangeInclusive<u32> = 2..=65_536;

/// A state of 16 layers of a byte each. The high nibble of a layer is ρ + 8, a
/// log-magnitude from −7 to 7, and 0 for null; the low nibble is a phase θ in sixteenths of
/// a turn. A layer stands for m·e^(iπθ/8) with m = 2^(ρ/4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct State(pub [u8; 16]);

/// A quantity of a layer, as a formula of `rho` (−8 to 7), `theta` (0 to 15,
/// sixteenths of a turn) and `layer` (0 to 15).
///
/// A formula may have numbers and `pi`; `+ - * /`, `^`, unary minus and parentheses; `abs`,
/// `sqrt`, `exp`, `log`, `sin`, `cos`, `tan` and `tanh` of one number, `min`, `max` and `pow` of
/// two. It is evaluated in 32-bit floats. Where it has no finite value, results differ from
/// device to device.
///
/// ```
/// use framebatch::Field;
///
/// let field: Field = "2^(rho / 4) * cos(pi * theta / 8)".parse()?;
/// let wrong = "rho * ".parse::<Field>().unwrap_err();
/// assert_eq!(
///     wrong.to_string(),
///     "field: expected a number, a name or '(', but it ends at character 7, in 'rho * '",
/// );
/// # let _ = field;
/// # Ok::<(), framebatch::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field(Expr);

impl FromStr for Field {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        grammar::parse("field", text, &["rho", "theta", "layer"]).map(Field)
    }
}

/// (∂f/∂ρ, ∂f/∂θ) of each layer, where f is a caller's field: 32 floats for each state. Central
/// differences over 2⁻¹⁰, one-sided at the ends of ρ, and circular in θ: 16 is just below 0.
/// Null counts as ρ = −8.
pub fn field_gradients(field: &Field) -> RowOp {
    of(Named::StateField(field.0.clone()), [STATE], GRADIENTS)
}

/// (∂m/∂ρ, ∂m/∂θ) of each layer: 32 floats for each state.
pub fn gradients() -> RowOp {
    of(Named::StateGradients, [STATE], GRADIENTS)
}

/// A state between two states.
pub fn interpolate(mode: Mode, timing: Timing) -> RowOp {
    let op = of(Named::StateInterpolate, [STATE; 2], STATE).in_mode(number(mode));
    op.at(DType::Fraction, timing)
}

/// `steps` states from one state to another, both ends included.
///
/// # Errors
///
/// [`Error::InvalidInput`] for fewer than 2 or more than 65,536 steps.
pub fn sequence(steps: u32, mode: Mode) -> Result<RowOp, Error> {
    if STEPS.contains(&steps) {
        let states = Format {
            width: steps,
            ..STATE
        };
        let mut op = of(Named::StateSequence, [STATE; 2], states).in_mode(number(mode));
        // A thread computes one state of the sequence.
        op.settings.width = steps;
        return Ok(op);
    }
    let (least, most) = STEPS.into_inner();
    Err(Error::InvalidInput(format!(
        "sequence: steps is {steps}, but may be {least} to {most}"
    )))
}

/// A state on a cubic Bézier curve of four states.
pub fn interpolate_bezier(timing: Timing) -> RowOp {
    of(Named::StateBezier, [STATE; 4], STATE).at(DType::Fraction, timing)
}

/// How far apart two states are: one float for each pair.
pub fn distance(measure: Measure) -> RowOp {
    let mode = match measure {
        Measure::Straight => 0,
        Measure::Geodesic => GEODESIC,
    };
    of(Named::StateDistance, [STATE; 2], FLOAT).in_mode(mode)
}

/// A state one step down the gradient of its magnitude.
pub fn descend(timing: Timing) -> RowOp {
    of(Named::StateDescend, [STATE], STATE).at(DType::Rate, timing)
}

/// The number of a mode in kernels.
fn number(mode: Mode) -> u32 {
    match mode {
        Mode::Lerp => 0,
        Mode::Slerp => 1,
    }
}
