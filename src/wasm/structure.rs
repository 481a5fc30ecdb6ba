//! Structures from JavaScript: an op's name and its sizes to a graph.
//!
//! The width is the elements of an item, or the steps of a sequence.

use crate::error::Error;
use crate::graph::{Graph, Measure, Mode, Timing};
use crate::ops;

/// The graph of an op by its public name.
pub(super) fn graph(op: &str, width: u32, timing: Timing) -> Result<Graph, Error> {
    match op {
        "lerp" => ops::lerp(width, timing),
        "slerp" => Ok(ops::slerp(timing)),
        "bezier" => ops::bezier(width, timing),
        "states.gradients" => Ok(ops::gradients()),
        "states.lerp" => Ok(ops::interpolate(Mode::Lerp, timing)),
        "states.slerp" => Ok(ops::interpolate(Mode::Slerp, timing)),
        "states.bezier" => Ok(ops::interpolate_bezier(timing)),
        "states.sequence lerp" => ops::sequence(width, Mode::Lerp),
        "states.sequence slerp" => ops::sequence(width, Mode::Slerp),
        "states.distance" => Ok(ops::distance(Measure::Straight)),
        "states.geodesicDistance" => Ok(ops::distance(Measure::Geodesic)),
        "states.descend" => Ok(ops::descend(timing)),
        unknown => Err(Error::InvalidInput(
            ["there is no op '", unknown, "'"].concat(),
        )),
    }
}
