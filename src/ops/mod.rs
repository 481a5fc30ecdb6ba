//! What people ask for, as graphs: one function an operation.
//!
//! No lengths, no values, no memory: those come with each call.

pub mod clips;
mod grammar;
pub mod search;
mod states;

pub use states::{
    Field, State, descend, distance, field_gradients, gradients, interpolate, interpolate_bezier,
    sequence,
};

use crate::error::Error;
use crate::graph::{Graph, NodeId, Op, QUATERNION, Timing};
use crate::tensor::{DType, Format};

/// `(1 − t)·a + t·b` of rows of `width` floats.
///
/// # Errors
///
/// [`Error::InvalidInput`] for a width of zero.
pub fn lerp(width: u32, timing: Timing) -> Result<Graph, Error> {
    let row = floats("lerp", width)?;
    Ok(between(Op::Lerp, [row; 2], DType::Parameter, timing))
}

/// Spherical interpolation of unit quaternions, four floats (xyzw) a row.
pub fn slerp(timing: Timing) -> Graph {
    between(Op::Slerp, [QUATERNION; 2], DType::Parameter, timing)
}

/// Rows of `width` floats on cubic Bézier curves of four control points.
///
/// # Errors
///
/// [`Error::InvalidInput`] for a width of zero.
pub fn bezier(width: u32, timing: Timing) -> Result<Graph, Error> {
    let row = floats("bezier", width)?;
    Ok(between(Op::Bezier, [row; 4], DType::Parameter, timing))
}

fn floats(name: &str, width: u32) -> Result<Format, Error> {
    if width == 0 {
        let problem = ": width is 0, but an item has at least 1 float";
        return Err(Error::InvalidInput([name, problem].concat()));
    }
    let dtype = DType::F32;
    Ok(Format { dtype, width })
}

/// A graph of `op(rows…, t)`.
fn between<const N: usize>(op: Op, rows: [Format; N], t: DType, timing: Timing) -> Graph {
    let mut graph = Graph::default();
    let mut operands = rows.map(|row| graph.input(row)).to_vec();
    operands.push(parameter(&mut graph, t, timing));
    finished(graph, op, &operands)
}

/// A graph of `op(rows…)`.
fn of<const N: usize>(op: Op, rows: [Format; N]) -> Graph {
    let mut graph = Graph::default();
    let operands = rows.map(|row| graph.input(row));
    finished(graph, op, &operands)
}

fn finished(mut graph: Graph, op: Op, operands: &[NodeId]) -> Graph {
    graph
        .apply(op, operands)
        .expect("the formats above suit the op");
    graph
}

fn parameter(graph: &mut Graph, dtype: DType, timing: Timing) -> NodeId {
    let format = Format { dtype, width: 1 };
    match timing {
        Timing::Call => graph.scalar(format),
        Timing::Row => graph.input(format),
    }
}
