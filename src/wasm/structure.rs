//! The structures that JavaScript asks for by an op's name, with the elements of an item, or the
//! steps of a sequence.

use crate::error::Error;
use crate::graph::{Measure, Mode, Timing};
use crate::ops;
use crate::program::RowOp;

/// An op by its public name.
pub(super) fn op(name: &str, width: u32, timing: Timing) -> Result<RowOp, Error> {
    match name {
        "lerp" => ops::lerp(width, timing),
        "slerp" => Ok(ops::slerp(timing)),
        "nlerp" => Ok(ops::nlerp(timing)),
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
