//! Operations: what they take, what they give, and how calls of them merge.
//!
//! Meaning only. Which kernel computes an op is `kernel`'s business.

use std::ops::RangeInclusive;

use super::Expr;
use crate::error::Error;
use crate::tensor::{DType, Format};

/// Which rows of a batch an op may look at together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OpClass {
    /// Each row alone: rows of all calls can be laid end to end.
    #[default]
    RowWise,
    /// The rows of one call together: merged through the segment table.
    SegmentWise,
    /// Everything together: calls are never merged.
    Whole,
}

/// How the phase of a state moves between two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Straight from θa to θb.
    Lerp,
    /// Along the shorter arc.
    Slerp,
}

/// What is summed over the layers of two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// |z_a − z_b|, the layers taken as complex numbers.
    Straight,
    /// √(Δρ² + Δθ²), Δθ along the shorter arc.
    Geodesic,
}

/// Whether every row has its own t.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Timing {
    /// One t for the call.
    #[default]
    Call,
    /// One t for each row.
    Row,
}

/// An operation on rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `(1 − t)·a + t·b` of rows of floats.
    Lerp,
    /// Spherical interpolation of quaternions (xyzw).
    Slerp,
    /// Rows of floats on cubic Bézier curves.
    Bezier,
    /// (∂m/∂ρ, ∂m/∂θ) of each layer of a state.
    StateGradients,
    /// (∂f/∂ρ, ∂f/∂θ) of each layer, f being a caller's own expression of ρ, θ
    /// and the layer's number.
    StateField(Expr),
    /// A state between two states.
    StateInterpolate(Mode),
    /// The states from one to another, in so many steps, both ends included.
    StateSequence {
        /// How the phase moves.
        mode: Mode,
        /// States in a row of the result.
        steps: u32,
    },
    /// A state on a cubic Bézier curve.
    StateBezier,
    /// How far apart two states are.
    StateDistance(Measure),
    /// A state one step down the gradient of its magnitude.
    StateDescend,
}

/// A quaternion.
pub const QUATERNION: Format = Format {
    dtype: DType::F32,
    width: 4,
};
/// A state of 16 layers.
pub const STATE: Format = Format {
    dtype: DType::State,
    width: 1,
};
/// Steps that a sequence may have: both ends, and a t for each step that fits
/// 16.16 fixed point.
pub const STEPS: RangeInclusive<u32> = 2..=65_536;
/// The gradients of a state.
const GRADIENTS: Format = Format {
    dtype: DType::F32,
    width: 32,
};
/// One float.
const FLOAT: Format = Format {
    dtype: DType::F32,
    width: 1,
};
/// The interpolation parameter of floats.
const PARAMETER: Format = Format {
    dtype: DType::Parameter,
    width: 1,
};
/// The interpolation parameter of states.
const FRACTION: Format = Format {
    dtype: DType::Fraction,
    width: 1,
};
/// How far to descend.
const RATE: Format = Format {
    dtype: DType::Rate,
    width: 1,
};

impl Op {
    /// The op's name, the same in every language and in plans.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Lerp => "lerp",
            Op::Slerp => "slerp",
            Op::Bezier => "bezier",
            Op::StateGradients | Op::StateField(_) => "states.gradients",
            Op::StateInterpolate(Mode::Lerp) => "states.lerp",
            Op::StateInterpolate(Mode::Slerp) => "states.slerp",
            Op::StateSequence { .. } => "states.sequence",
            Op::StateBezier => "states.bezier",
            Op::StateDistance(Measure::Straight) => "states.distance",
            Op::StateDistance(Measure::Geodesic) => "states.geodesicDistance",
            Op::StateDescend => "states.descend",
        }
    }

    /// How calls of this op merge.
    pub fn class(&self) -> OpClass {
        match self {
            Op::Lerp
            | Op::Slerp
            | Op::Bezier
            | Op::StateGradients
            | Op::StateField(_)
            | Op::StateInterpolate(_)
            | Op::StateSequence { .. }
            | Op::StateBezier
            | Op::StateDistance(_)
            | Op::StateDescend => OpClass::RowWise,
        }
    }

    /// The format of the result's rows, given those of the operands.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when the operands do not suit the op.
    pub fn infer(&self, operands: &[Format]) -> Result<Format, Error> {
        match (self, operands) {
            (Op::Lerp, [a, b, t])
                if a == b && a.dtype == DType::F32 && a.width > 0 && *t == PARAMETER =>
            {
                Ok(*a)
            }
            (Op::Slerp, [QUATERNION, QUATERNION, PARAMETER]) => Ok(QUATERNION),
            (Op::Bezier, [p0, p1, p2, p3, PARAMETER])
                if [p1, p2, p3] == [p0; 3] && p0.dtype == DType::F32 && p0.width > 0 =>
            {
                Ok(*p0)
            }
            (Op::StateGradients | Op::StateField(_), [STATE]) => Ok(GRADIENTS),
            (Op::StateInterpolate(_), [STATE, STATE, FRACTION])
            | (Op::StateBezier, [STATE, STATE, STATE, STATE, FRACTION])
            | (Op::StateDescend, [STATE, RATE]) => Ok(STATE),
            (Op::StateSequence { steps, .. }, [STATE, STATE]) if STEPS.contains(steps) => {
                Ok(Format {
                    dtype: DType::State,
                    width: *steps,
                })
            }
            (Op::StateDistance(_), [STATE, STATE]) => Ok(FLOAT),
            _ => Err(Error::InvalidInput(
                [self.name(), " does not take operands of these types"].concat(),
            )),
        }
    }
}
