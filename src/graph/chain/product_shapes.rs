//! What dot products and matrix products ask of shapes, and the shapes that they give.

use super::{Node, refuse};
use crate::error::Error;
use crate::graph::shape::{MAX_RANK, Shape};

/// Sums along the last axis of what two operands broadcast to.
pub(super) fn dot(operands: &[&Node]) -> Result<Shape, Error> {
    let (a, b) = (operands[0].shape, operands[1].shape);
    let shape = a.broadcast(b, "dot")?;
    let Some(last) = shape.rank().checked_sub(1) else {
        return Err(refuse(|| {
            let (a, b) = (a.to_string(), b.to_string());
            [
                "dot: shapes ",
                &a,
                " and ",
                &b,
                " have no axis to sum along",
            ]
            .concat()
        }));
    };
    Ok(shape.map(|axis, dim| (axis != last).then_some(dim)))
}

/// Rows of the first operand times columns of the second, by NumPy's rules: the result has no
/// axis for the one row or column of a vector.
pub(super) fn matmul(a: Shape, b: Shape) -> Result<Shape, Error> {
    let suits = |shape: Shape| (1..MAX_RANK).contains(&shape.rank());
    let both = |what: &str| {
        Err(refuse(|| {
            let (a, b) = (a.to_string(), b.to_string());
            ["matmul: shapes ", &a, " and ", &b, what].concat()
        }))
    };
    if !suits(a) || !suits(b) {
        return both(" must have 1 to 7 dimensions each; multiply by a number with mul");
    }
    let (stack_a, [rows, inner]) = matrix(as_row(a));
    let (stack_b, [same, columns]) = matrix(as_column(b));
    if inner != same {
        return both(match b.rank() {
            1 => " must agree in their last dimensions",
            _ => {
                " must agree in the last dimension of the first and the one before the last of the second"
            }
        });
    }
    let stack = stack_a.broadcast(stack_b, "matmul")?;
    let rows = [rows];
    let rows = if a.rank() > 1 { &rows[..] } else { &[] };
    let columns = [columns];
    let columns = if b.rank() > 1 { &columns[..] } else { &[] };
    match Shape::new(&[stack.dims(), rows, columns].concat()) {
        Ok(shape) => Ok(shape),
        Err(_) => both(" give more than 2^30 elements"),
    }
}

/// The shape of a left factor as matrices: a vector is one row.
pub fn as_row(shape: Shape) -> Shape {
    match *shape.dims() {
        [inner] => Shape::SCALAR.with_inner(1).with_inner(inner),
        _ => shape,
    }
}

/// The shape of a right factor as matrices: a vector is one column.
pub fn as_column(shape: Shape) -> Shape {
    match shape.rank() {
        1 => shape.with_inner(1),
        _ => shape,
    }
}

/// A shape as a stack of matrices: the shape of the stack, and rows and columns.
pub(super) fn matrix(shape: Shape) -> (Shape, [u32; 2]) {
    let last = shape.rank() - 2;
    let stack = shape.map(|axis, dim| (axis < last).then_some(dim));
    (stack, [shape.dims()[last], shape.dims()[last + 1]])
}
