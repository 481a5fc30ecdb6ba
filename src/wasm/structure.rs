//! Structures from JavaScript: an op's name and its sizes to a graph.

use crate::error::Error;
use crate::graph::{Graph, Mode, Timing};
use crate::ops;

/// The graph of an op by its public name.
pub(super) fn graph(op: &str, width: u32, timing: Timing) -> Result<Graph, Error> {
    match op {
        "lerp" => ops::lerp(width, timing),
        "slerp" => Ok(ops::slerp(timing)),
        "states.gradients" => Ok(ops::gradients()),
        "states.lerp" => Ok(ops::interpolate(Mode::Lerp, timing)),
        "states.slerp" => Ok(ops::interpolate(Mode::Slerp, timing)),
        unknown => Err(Error::InvalidInput(
            ["there is no op '", unknown, "'"].concat(),
        )),
    }
}
