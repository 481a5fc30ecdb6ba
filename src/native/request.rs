//! A call's arguments, checked and ready to be copied.
//!
//! Values are not read here, except a single t: a NaN in an array of t is refused when the session
//! takes the call.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::embedder::{Destination, Encoder};
use super::parameter::{Checked, Parameter, Wanted, invalid};
use crate::embed::Tokens;
use crate::error::Error;
use crate::graph::chain::Chain;
use crate::graph::insertion::Insertion;
use crate::graph::sampling::Sampling;
use crate::graph::searching::Searching;
use crate::graph::{Measure, Mode, Timing};
use crate::ops::{self, Field, State};
use crate::program::RowOp;

/// The structure of a call, as the key by which its recipe is looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Structure {
    Op(RowOp),
    Chain(Chain),
    /// The chain of a function.
    Recorded(RecordedChain),
    /// An encoder over a text of these tokens.
    Embedding(Arc<Encoder>, Tokens, Destination),
    Sampling(Sampling),
    Searching(Searching),
    Insertion(Insertion),
}

/// A chain that is sent again and again. It is known by where it lies, so that a call's structure
/// is found without a look at the chain's nodes.
#[derive(Clone, Debug)]
pub(super) struct RecordedChain(Arc<Chain>);

impl RecordedChain {
    pub(super) fn new(chain: Chain) -> RecordedChain {
        RecordedChain(Arc::new(chain))
    }

    pub(super) fn chain(&self) -> &Chain {
        &self.0
    }
}

impl PartialEq for RecordedChain {
    fn eq(&self, other: &RecordedChain) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for RecordedChain {}

impl Hash for RecordedChain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// The most operands of an op: four control points and a t for each item.
const MOST_OPERANDS: usize = 5;

/// A call with its operands, not yet copied.
#[derive(Clone, Debug)]
pub(super) struct Request<'a> {
    pub(super) structure: Structure,
    /// How many rows there are; of an embedding its cost. Nothing is computed for 0.
    pub(super) rows: usize,
    /// The bits of a single t.
    pub(super) scalar: u32,
    /// The bytes of each operand, in order; empty behind the last one.
    pub(super) operands: [&'a [u8]; MOST_OPERANDS],
    /// What a chain, a sampling or a search reads besides.
    pub(super) chained: Chained<'a>,
}

/// Any number of operands, and tensors, which ops do not have.
#[derive(Clone, Debug, Default)]
pub(super) struct Chained<'a> {
    /// The bytes of each operand.
    pub(super) operands: Vec<&'a [u8]>,
    /// Tensors on the device.
    pub(super) tensors: Vec<u32>,
    /// What a call that stores writes of some of the tensors.
    pub(super) written: Vec<Written>,
    /// The offset of a chain that stores, in elements. It lies behind the tensors' numbers.
    pub(super) offset: Option<u32>,
}

/// A tensor that a call writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) number: u32,
    /// Words of the tensor.
    pub(super) words: u32,
    pub(super) coverage: Coverage,
}

/// What of a tensor is left of before by a call that writes to the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// Nothing: the call writes all of the tensor and does not read it.
    Replaced,
    /// The call reads the tensor, or writes a part of it.
    Updated,
}

impl Request<'_> {
    /// The bytes of everything that is copied to the arena, in order.
    pub(super) fn operands(&self) -> impl Iterator<Item = &[u8]> {
        let operands = self.operands.iter().chain(&self.chained.operands);
        operands.copied()
    }

    /// The words behind the operands: the numbers of the tensors, and the offset.
    pub(super) fn names(&self) -> impl Iterator<Item = u32> {
        let Chained {
            tensors, offset, ..
        } = &self.chained;
        tensors.iter().copied().chain(*offset)
    }

    /// Whether the call finds a tensor as calls of before left it.
    pub(super) fn is_found(&self, tensor: u32) -> bool {
        let mut written = self.chained.written.iter();
        let is_replaced = |written: &Written| written.coverage == Coverage::Replaced;
        !written.any(|written| written.number == tensor && is_replaced(written))
    }
}

/// Floats between floats, `width` of them an item.
pub(super) fn lerp<'a>(
    a: &'a [f32],
    b: &'a [f32],
    t: Parameter<'a>,
    width: u32,
) -> Result<Request<'a>, Error> {
    check_floats("lerp", [a, b], ["a", "b"], width)?;
    let t = check_t("lerp", t, a.len() / width as usize)?;
    let (width, rows) = items(a, t.timing, width);
    Ok(Request {
        structure: Structure::Op(ops::lerp(width, t.timing)?),
        rows,
        scalar: t.scalar,
        operands: operands([a, b], t.each),
        chained: Chained::default(),
    })
}

/// Quaternions between quaternions.
pub(super) fn slerp<'a>(
    a: &'a [f32],
    b: &'a [f32],
    t: Parameter<'a>,
) -> Result<Request<'a>, Error> {
    quaternions("slerp", ops::slerp, [a, b], t)
}

/// Quaternions on the chords between quaternions.
pub(super) fn nlerp<'a>(
    a: &'a [f32],
    b: &'a [f32],
    t: Parameter<'a>,
) -> Result<Request<'a>, Error> {
    quaternions("nlerp", ops::nlerp, [a, b], t)
}

fn quaternions<'a>(
    name: &'static str,
    op: fn(Timing) -> RowOp,
    [a, b]: [&'a [f32]; 2],
    t: Parameter<'a>,
) -> Result<Request<'a>, Error> {
    check_floats(name, [a, b], ["a", "b"], 4)?;
    let rows = a.len() / 4;
    let t = check_t(name, t, rows)?;
    Ok(Request {
        structure: Structure::Op(op(t.timing)),
        rows,
        scalar: t.scalar,
        operands: operands([a, b], t.each),
        chained: Chained::default(),
    })
}

/// Floats on curves, `width` of them an item.
pub(super) fn bezier<'a>(
    points: [&'a [f32]; 4],
    t: Parameter<'a>,
    width: u32,
) -> Result<Request<'a>, Error> {
    check_floats("bezier", points, POINTS, width)?;
    let t = check_t("bezier", t, points[0].len() / width as usize)?;
    let (width, rows) = items(points[0], t.timing, width);
    Ok(Request {
        structure: Structure::Op(ops::bezier(width, t.timing)?),
        rows,
        scalar: t.scalar,
        operands: operands(points, t.each),
        chained: Chained::default(),
    })
}

/// Width and rows of an op on items of floats. With one t for the call each float is a row, so that
/// calls of all widths merge.
fn items(floats: &[f32], timing: Timing, width: u32) -> (u32, usize) {
    match timing {
        Timing::Call => (1, floats.len()),
        Timing::Row => (width, floats.len() / width as usize),
    }
}

/// Gradients of states.
pub(super) fn gradients(states: &[State]) -> Request<'_> {
    Request {
        structure: Structure::Op(ops::gradients()),
        rows: states.len(),
        scalar: 0,
        operands: operands([states], &[]),
        chained: Chained::default(),
    }
}

/// Gradients of a caller's field.
pub(super) fn field_gradients<'a>(states: &'a [State], field: &Field) -> Request<'a> {
    Request {
        structure: Structure::Op(ops::field_gradients(field)),
        ..gradients(states)
    }
}

/// States between states.
pub(super) fn interpolate<'a>(
    a: &'a [State],
    b: &'a [State],
    t: Parameter<'a>,
    mode: Mode,
) -> Result<Request<'a>, Error> {
    check_states("interpolate", [a, b], ["a", "b"])?;
    let t = check_t("interpolate", t, a.len())?;
    Ok(Request {
        structure: Structure::Op(ops::interpolate(mode, t.timing)),
        rows: a.len(),
        scalar: t.scalar,
        operands: operands([a, b], t.each),
        chained: Chained::default(),
    })
}

/// The steps between states.
pub(super) fn sequence<'a>(
    a: &'a [State],
    b: &'a [State],
    steps: u32,
    mode: Mode,
) -> Result<Request<'a>, Error> {
    check_states("sequence", [a, b], ["a", "b"])?;
    Ok(Request {
        structure: Structure::Op(ops::sequence(steps, mode)?),
        rows: a.len(),
        scalar: 0,
        operands: operands([a, b], &[]),
        chained: Chained::default(),
    })
}

/// States on curves.
pub(super) fn interpolate_bezier<'a>(
    points: [&'a [State]; 4],
    t: Parameter<'a>,
) -> Result<Request<'a>, Error> {
    check_states("interpolate_bezier", points, POINTS)?;
    let t = check_t("interpolate_bezier", t, points[0].len())?;
    Ok(Request {
        structure: Structure::Op(ops::interpolate_bezier(t.timing)),
        rows: points[0].len(),
        scalar: t.scalar,
        operands: operands(points, t.each),
        chained: Chained::default(),
    })
}

/// How far apart states are.
pub(super) fn distance<'a>(
    a: &'a [State],
    b: &'a [State],
    measure: Measure,
) -> Result<Request<'a>, Error> {
    let name = match measure {
        Measure::Straight => "distance",
        Measure::Geodesic => "geodesic_distance",
    };
    check_states(name, [a, b], ["a", "b"])?;
    Ok(Request {
        structure: Structure::Op(ops::distance(measure)),
        rows: a.len(),
        scalar: 0,
        operands: operands([a, b], &[]),
        chained: Chained::default(),
    })
}

/// States one step down.
pub(super) fn descend<'a>(states: &'a [State], rate: Parameter<'a>) -> Result<Request<'a>, Error> {
    let rate = rate.check(Wanted {
        call: "descend",
        parameter: "rate",
        operand: "states",
        items: states.len(),
    })?;
    Ok(Request {
        structure: Structure::Op(ops::descend(rate.timing)),
        rows: states.len(),
        scalar: rate.scalar,
        operands: operands([states], rate.each),
        chained: Chained::default(),
    })
}

/// The bytes of a call's operands, and of a t for each item if there is one.
fn operands<'a, T: bytemuck::Pod, const N: usize>(
    rows: [&'a [T]; N],
    each: &'a [f32],
) -> [&'a [u8]; MOST_OPERANDS] {
    let mut operands: [&[u8]; MOST_OPERANDS] = [&[]; MOST_OPERANDS];
    for (operand, rows) in operands.iter_mut().zip(rows) {
        *operand = bytemuck::cast_slice(rows);
    }
    operands[N] = bytemuck::cast_slice(each);
    operands
}

/// The names of control points.
const POINTS: [&str; 4] = ["p0", "p1", "p2", "p3"];

fn check_floats<const N: usize>(
    name: &str,
    operands: [&[f32]; N],
    names: [&str; N],
    width: u32,
) -> Result<(), Error> {
    check_equal(name, "floats", operands.map(<[f32]>::len), names)?;
    if width == 0 {
        return Err(invalid(
            name,
            "width is 0, but an item has at least 1 float",
        ));
    }
    let given = operands[0].len();
    if !given.is_multiple_of(width as usize) {
        return Err(invalid(
            name,
            &format!(
                "{} has {given} floats, which is not a multiple of {width}, the width of an item",
                names[0]
            ),
        ));
    }
    Ok(())
}

fn check_states<const N: usize>(
    name: &str,
    operands: [&[State]; N],
    names: [&str; N],
) -> Result<(), Error> {
    check_equal(name, "states", operands.map(<[State]>::len), names)
}

fn check_equal<const N: usize>(
    name: &str,
    unit: &str,
    lengths: [usize; N],
    names: [&str; N],
) -> Result<(), Error> {
    let first = lengths[0];
    match lengths.iter().position(|length| *length != first) {
        None => Ok(()),
        Some(k) => Err(invalid(
            name,
            &format!(
                "{} has {} {unit}, but {} has {first}; give {} the same length",
                names[k],
                lengths[k],
                names[0],
                if N == 2 { "both" } else { "all" },
            ),
        )),
    }
}

fn check_t<'a>(call: &str, t: Parameter<'a>, items: usize) -> Result<Checked<'a>, Error> {
    let is_curve = call.ends_with("bezier");
    t.check(Wanted {
        call,
        parameter: "t",
        operand: if is_curve { POINTS[0] } else { "a" },
        items,
    })
}
