//! What operations that only move elements ask of shapes, and the shapes that they give.

use super::op::Range;
use super::{Node, refuse};
use crate::error::Error;
use crate::graph::shape::{MAX_RANK, Shape};

/// Axes in another order.
pub(super) fn transpose(shape: Shape, order: &[u8; MAX_RANK]) -> Result<Shape, Error> {
    let order = &order[..shape.rank()];
    let each_once = (0..shape.rank()).all(|axis| order.contains(&(axis as u8)));
    if !each_once {
        return Err(refuse(|| {
            [
                "transpose: the order must name each axis of shape ",
                &shape.to_string(),
                " once",
            ]
            .concat()
        }));
    }
    Ok(shape.map(|axis, _| Some(shape.dims()[usize::from(order[axis])])))
}

/// Ranges of axes, each of which must lie within its axis.
pub(super) fn slice(shape: Shape, ranges: &[Range]) -> Result<Shape, Error> {
    let fits = |range: &Range, dim: u32| {
        let last = i64::from(range.start) + i64::from(range.step) * (i64::from(range.count) - 1);
        range.step != 0
            && (range.count == 0 || range.start < dim && (0..i64::from(dim)).contains(&last))
    };
    let good = ranges.len() == shape.rank()
        && (ranges.iter().zip(shape.dims())).all(|(range, dim)| fits(range, *dim));
    if !good {
        return Err(refuse(|| {
            ["slice: the ranges do not lie in shape ", &shape.to_string()].concat()
        }));
    }
    Ok(shape.map(|axis, _| Some(ranges[axis].count)))
}

/// Another shape of as many elements.
pub(super) fn reshape(from: Shape, to: Shape) -> Result<Shape, Error> {
    if from.count() != to.count() {
        return Err(refuse(|| {
            [
                "reshape: shapes ",
                &from.to_string(),
                " and ",
                &to.to_string(),
                " hold different numbers of elements",
            ]
            .concat()
        }));
    }
    Ok(to)
}

/// The places that indexes have in place of an axis.
pub(super) fn gather(operands: &[&Node], axis: usize) -> Result<Shape, Error> {
    let (values, indexes) = (operands[0].shape, operands[1].shape);
    values.axis(i32::try_from(axis).unwrap_or(i32::MAX), "gather")?;
    let dims = [
        &values.dims()[..axis],
        indexes.dims(),
        &values.dims()[axis + 1..],
    ]
    .concat();
    Shape::new(&dims).map_err(|_| {
        refuse(|| {
            [
                "gather: shapes ",
                &values.to_string(),
                " and ",
                &indexes.to_string(),
                " give more than 8 dimensions or 2^30 elements",
            ]
            .concat()
        })
    })
}

/// Operands end to end along an axis.
pub(super) fn concat(operands: &[&Node], along: usize) -> Result<Shape, Error> {
    let Some(first) = operands.first().map(|node| node.shape) else {
        return Err(refuse(|| ["concat takes at least 1 operand"].concat()));
    };
    if operands.len() > 255 {
        // On the wire the number of operands is a byte.
        return Err(refuse(|| ["concat takes at most 255 operands"].concat()));
    }
    first.axis(i32::try_from(along).unwrap_or(i32::MAX), "concat")?;
    let mut sum = 0_u64;
    for operand in operands {
        let fits = operand.shape.rank() == first.rank()
            && (0..first.rank())
                .all(|axis| axis == along || operand.shape.dims()[axis] == first.dims()[axis]);
        if !fits {
            return Err(refuse(|| {
                [
                    "concat: shapes ",
                    &first.to_string(),
                    " and ",
                    &operand.shape.to_string(),
                    " differ outside of the axis",
                ]
                .concat()
            }));
        }
        sum += u64::from(operand.shape.dims()[along]);
    }
    let sum = u32::try_from(sum).unwrap_or(u32::MAX);
    let mut dims = [0; MAX_RANK];
    dims[..first.rank()].copy_from_slice(first.dims());
    dims[along] = sum;
    Shape::new(&dims[..first.rank()])
        .map_err(|_| refuse(|| ["concat: the result has more than 2^30 elements"].concat()))
}
