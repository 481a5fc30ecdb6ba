//! What people ask for, as graphs: one function an operation.
//!
//! No lengths, no values, no memory: those come with each call.

mod states;

pub use states::{State, gradients, interpolate};

use crate::error::Error;
use crate::graph::{Graph, NodeId, Op, QUATERNION, Timing};
use crate::tensor::{DType, Format};

/// `(1 − t)·a + t·b` of rows of `width` floats.
///
/// # Errors
///
/// [`Error::InvalidInput`] for a width of zero.
pub fn lerp(width: u32, timing: Timing) -> Result<Graph, Error> {
    if width == 0 {
        return Err(Error::InvalidInput(
            "lerp: width is 0, but an item has at least 1 float".into(),
        ));
    }
    let row = Format {
        dtype: DType::F32,
        width,
    };
    Ok(between(Op::Lerp, row, DType::Parameter, timing))
}

/// Spherical interpolation of unit quaternions, four floats (xyzw) a row.
pub fn slerp(timing: Timing) -> Graph {
    between(Op::Slerp, QUATERNION, DType::Parameter, timing)
}

/// A graph of `op(a, b, t)`.
fn between(op: Op, row: Format, t: DType, timing: Timing) -> Graph {
    let mut graph = Graph::default();
    let a = graph.input(row);
    let b = graph.input(row);
    let t = parameter(&mut graph, t, timing);
    graph
        .apply(op, &[a, b, t])
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
