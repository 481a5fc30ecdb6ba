//! The row ops: one function for each, which says what kernel computes it. Also what callers give
//! to clips, indexes and fields, in the words that kernels read.
//!
//! A row op has no lengths and no values, which come with each call. Samplings of clips and
//! searches are structures of `graph`.

pub mod clips;
mod grammar;
pub mod search;
mod states;

pub use states::{
    Field, State, descend, distance, field_gradients, gradients, interpolate, interpolate_bezier,
    sequence,
};

use crate::error::Error;
use crate::graph::Timing;
use crate::program::{Named, RowOp, Settings};
use crate::tensor::{DType, Format};

/// The format of a quaternion.
const QUATERNION: Format = Format {
    dtype: DType::F32,
    width: 4,
};

/// `(1 − t)·a + t·b` of rows of `width` floats.
///
/// # Errors
///
/// [`Error::InvalidInput`] for a width of zero.
pub fn lerp(width: u32, timing: Timing) -> Result<RowOp, Error> {
    let row = floats("lerp", width)?;
    Ok(of(Named::Lerp, [row; 2], row).at(DType::Parameter, timing))
}

/// Spherical interpolation of unit quaternions, four floats (xyzw) a row.
pub fn slerp(timing: Timing) -> RowOp {
    of(Named::Slerp, [QUATERNION; 2], QUATERNION).at(DType::Parameter, timing)
}

/// Normalized linear interpolation of unit quaternions, four floats (xyzw) a row.
pub fn nlerp(timing: Timing) -> RowOp {
    of(Named::Nlerp, [QUATERNION; 2], QUATERNION).at(DType::Parameter, timing)
}

/// Rows of `width` floats on cubic Bézier curves of four control points.
///
/// # Errors
///
/// [`Error::InvalidInput`] for a width of zero.
pub fn bezier(width: u32, timing: Timing) -> Result<RowOp, Error> {
    let row = floats("bezier", width)?;
    Ok(of(Named::Bezier, [row; 4], row).at(DType::Parameter, timing))
}

/// The format of rows of so many floats.
fn floats(name: &str, width: u32) -> Result<Format, Error> {
    if width == 0 {
        let problem = ": width is 0, but an item has at least 1 float";
        return Err(Error::InvalidInput([name, problem].concat()));
    }
    let dtype = DType::F32;
    Ok(Format { dtype, width })
}

/// The op of a kernel with these formats; the width of the first operand is the kernel's.
fn of<const N: usize>(kernel: Named, operands: [Format; N], result: Format) -> RowOp {
    RowOp {
        kernel,
        settings: Settings {
            width: operands[0].width,
            ..Settings::default()
        },
        operands: operands.as_slice().into(),
        scalar: None,
        result,
    }
}

impl RowOp {
    /// The same op with a parameter behind its operands: one for the call, or one for each row.
    fn at(mut self, dtype: DType, timing: Timing) -> RowOp {
        let format = Format { dtype, width: 1 };
        match timing {
            Timing::Call => self.scalar = Some(format),
            Timing::Row => self.operands.push(format),
        }
        self.settings.timing = timing;
        self
    }

    /// The same op in a variant of its kernel.
    fn in_mode(mut self, mode: u32) -> RowOp {
        self.settings.mode = mode;
        self
    }
}
