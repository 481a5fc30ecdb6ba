//! What a stage sees of the operands of a value that it computes.
//!
//! How views compose is said in `view`, which knows no values.

use super::lower::{Lowered, Primitive};
use super::view::View;
use crate::graph::shape::Shape;

/// The view of an operand, given the stage's view of the value. `place` is the operand's place
/// among the value's.
pub(super) fn operand_view(lowered: &Lowered, id: usize, place: usize, view: View) -> View {
    let value = &lowered.values[id];
    let operand = lowered.values[value.operands[place]].shape;
    match &value.primitive {
        Primitive::Transpose(order) => view.transpose(order),
        Primitive::Slice(ranges) => view.slice(ranges, operand),
        Primitive::Reshape => view,
        Primitive::Reduce { .. } | Primitive::Partial { .. } => View::identity(operand),
        Primitive::Product(..) => {
            let (rows, columns, inner) = matrix_axes(value.shape);
            let axes = [[rows, inner], [inner, columns]][place];
            View::of_matrix(value.shape, operand, axes)
        }
        Primitive::Attention(_) if place < 3 => {
            let (queries, columns, keys) = matrix_axes(value.shape);
            let rows = if place == 0 { queries } else { keys };
            View::of_matrix(value.shape, operand, [rows, columns])
        }
        // A head of a bias lies along the floats of all heads, a distance along the keys.
        Primitive::Attention(_) if place == 4 => {
            let (_, columns, keys) = matrix_axes(value.shape);
            View::of_matrix(value.shape, operand, [columns, keys])
        }
        _ => view
            .operand(value.shape, operand)
            .expect("what cannot be seen as of another shape is kept in memory"),
    }
}

/// The axes of a matrix's rows and columns, and the axis that the stage's domain has behind.
fn matrix_axes(shape: Shape) -> (usize, usize, usize) {
    let rank = shape.rank();
    (rank - 2, rank - 1, rank)
}
