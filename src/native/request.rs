//! What a method was asked for, checked and ready to be copied.
//!
//! Values are not read here, but for a lone `t`: the core refuses a NaN in an
//! array of them when it takes the call.

use crate::error::Error;
use crate::graph::{Graph, Mode, Timing};
use crate::ops::{self, State};

/// How far between the operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameter<'a> {
    /// One t for the whole call.
    Call(f32),
    /// One t for each item.
    Each(&'a [f32]),
}

impl From<f32> for Parameter<'_> {
    fn from(t: f32) -> Self {
        Parameter::Call(t)
    }
}

impl<'a> From<&'a [f32]> for Parameter<'a> {
    fn from(t: &'a [f32]) -> Self {
        Parameter::Each(t)
    }
}

impl<'a> From<&'a Vec<f32>> for Parameter<'a> {
    fn from(t: &'a Vec<f32>) -> Self {
        Parameter::Each(t)
    }
}

impl<'a, const N: usize> From<&'a [f32; N]> for Parameter<'a> {
    fn from(t: &'a [f32; N]) -> Self {
        Parameter::Each(t)
    }
}

/// The structure of a call, in a form that is cheap to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Structure {
    Lerp { width: u32, timing: Timing },
    Slerp(Timing),
    Gradients,
    Interpolate(Mode, Timing),
}

impl Structure {
    pub(super) fn graph(self) -> Result<Graph, Error> {
        match self {
            Structure::Lerp { width, timing } => ops::lerp(width, timing),
            Structure::Slerp(timing) => Ok(ops::slerp(timing)),
            Structure::Gradients => Ok(ops::gradients()),
            Structure::Interpolate(mode, timing) => Ok(ops::interpolate(mode, timing)),
        }
    }
}

/// A call with its operands, not yet copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) structure: Structure,
    pub(super) rows: usize,
    /// The bits of a lone t.
    pub(super) scalar: u32,
    /// The bytes of each operand, in order; empty behind the last one.
    pub(super) operands: [&'a [u8]; 3],
}

/// Floats between floats, `width` of them an item.
pub(super) fn lerp<'a>(
    a: &'a [f32],
    b: &'a [f32],
    t: Parameter<'a>,
    width: u32,
) -> Result<Request<'a>, Error> {
    check_floats("lerp", a, b, width)?;
    let items = a.len() / width as usize;
    let (timing, scalar, each) = check_t("lerp", t, items)?;
    // One t suits every float alike, so such calls merge whatever their width.
    let (width, rows) = match timing {
        Timing::Call => (1, a.len()),
        Timing::Row => (width, items),
    };
    Ok(Request {
        structure: Structure::Lerp { width, timing },
        rows,
        scalar,
        operands: [bytemuck::cast_slice(a), bytemuck::cast_slice(b), each],
    })
}

/// Quaternions between quaternions.
pub(super) fn slerp<'a>(
    a: &'a [f32],
    b: &'a [f32],
    t: Parameter<'a>,
) -> Result<Request<'a>, Error> {
    check_floats("slerp", a, b, 4)?;
    let rows = a.len() / 4;
    let (timing, scalar, each) = check_t("slerp", t, rows)?;
    Ok(Request {
        structure: Structure::Slerp(timing),
        rows,
        scalar,
        operands: [bytemuck::cast_slice(a), bytemuck::cast_slice(b), each],
    })
}

/// Gradients of states.
pub(super) fn gradients(states: &[State]) -> Request<'_> {
    Request {
        structure: Structure::Gradients,
        rows: states.len(),
        scalar: 0,
        operands: [bytemuck::cast_slice(states), &[], &[]],
    }
}

/// States between states.
pub(super) fn interpolate<'a>(
    a: &'a [State],
    b: &'a [State],
    t: Parameter<'a>,
    mode: Mode,
) -> Result<Request<'a>, Error> {
    check_equal("interpolate", "states", a.len(), b.len())?;
    let (timing, scalar, each) = check_t("interpolate", t, a.len())?;
    Ok(Request {
        structure: Structure::Interpolate(mode, timing),
        rows: a.len(),
        scalar,
        operands: [bytemuck::cast_slice(a), bytemuck::cast_slice(b), each],
    })
}

fn check_floats(name: &str, a: &[f32], b: &[f32], width: u32) -> Result<(), Error> {
    check_equal(name, "floats", a.len(), b.len())?;
    if width == 0 {
        return Err(invalid(
            name,
            "width is 0, but an item has at least 1 float",
        ));
    }
    if !a.len().is_multiple_of(width as usize) {
        let given = a.len();
        return Err(invalid(
            name,
            &format!(
                "a has {given} floats, which is not a multiple of {width}, the width of an item"
            ),
        ));
    }
    Ok(())
}

fn check_equal(name: &str, unit: &str, a: usize, b: usize) -> Result<(), Error> {
    if a == b {
        return Ok(());
    }
    Err(invalid(
        name,
        &format!("b has {b} {unit}, but a has {a}; give both the same length"),
    ))
}

/// When t comes, its bits where it is one, its bytes where there are many.
fn check_t<'a>(
    name: &str,
    t: Parameter<'a>,
    items: usize,
) -> Result<(Timing, u32, &'a [u8]), Error> {
    match t {
        Parameter::Call(t) if t.is_nan() => Err(invalid(name, "t is NaN; give a number")),
        Parameter::Call(t) => Ok((Timing::Call, t.to_bits(), &[])),
        Parameter::Each(t) if t.len() != items => Err(invalid(
            name,
            &format!(
                "t has {} floats, but a has {items} items; give one number for all, or one t an item",
                t.len()
            ),
        )),
        Parameter::Each(t) => Ok((Timing::Row, 0, bytemuck::cast_slice(t))),
    }
}

fn invalid(name: &str, problem: &str) -> Error {
    Error::InvalidInput(format!("{name}: {problem}"))
}
