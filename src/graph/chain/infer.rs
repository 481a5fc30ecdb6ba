//! What each op asks of its operands, and the shape that it gives.

use super::op::{Norm, Op, Range, Reduction};
use super::{Node, attention, refuse};
use crate::error::Error;
use crate::graph::shape::{MAX_RANK, Shape};
use crate::tensor::DType;

/// Shape and element type of an op's result.
pub(super) fn infer(op: &Op, operands: &[&Node]) -> Result<(Shape, DType), Error> {
    let wanted = match op {
        Op::Input { .. } | Op::Constant { .. } => 0,
        Op::Binary(_) | Op::Dot | Op::Matmul | Op::Gather { .. } => 2,
        Op::Norm { norm, .. } => 1 + usize::from(*norm != Norm::Softmax),
        Op::Clamp => 3,
        Op::Attention(_) => 4,
        Op::Concat { .. } => operands.len().max(1),
        _ => 1,
    };
    if operands.len() != wanted {
        return Err(refuse(|| {
            [
                op.name(),
                " takes ",
                &wanted.to_string(),
                " operands, not ",
                &operands.len().to_string(),
            ]
            .concat()
        }));
    }
    check_types(op, operands)?;
    let name = op.name();
    let shape = match op {
        Op::Input { .. } | Op::Constant { .. } => {
            // They are recorded by `Chain::input` and `Chain::constant`.
            return Err(refuse(|| [name, " is no operation"].concat()));
        }
        Op::Unary(function) if !function.is_of_tensors() => {
            return Err(refuse(|| {
                [name, " is a function of formulas only"].concat()
            }));
        }
        Op::Unary(_) => operands[0].shape,
        Op::Binary(_) => operands[0].shape.broadcast(operands[1].shape, name)?,
        Op::Clamp | Op::Norm { .. } => scaled(op, operands)?,
        Op::Dot => dot(operands)?,
        Op::Matmul => matmul(operands[0].shape, operands[1].shape)?,
        Op::Attention(heads) => attention::infer(*heads, operands)?,
        Op::Reduce {
            reduction,
            axes,
            keep,
        } => reduce(*reduction, operands[0].shape, (*axes, *keep))?,
        Op::Transpose { order } => transpose(operands[0].shape, order)?,
        Op::Slice { ranges } => slice(operands[0].shape, ranges)?,
        Op::Reshape { shape } => reshape(operands[0].shape, *shape)?,
        Op::Gather { axis } => gather(operands, usize::from(*axis))?,
        Op::Concat { axis } => concat(operands, usize::from(*axis))?,
    };
    let dtype = match op {
        Op::Reduce {
            reduction: Reduction::Argmax,
            ..
        } => DType::U32,
        _ => operands[0].dtype,
    };
    Ok((shape, dtype))
}

/// Only what moves elements takes other types than floats.
fn check_types(op: &Op, operands: &[&Node]) -> Result<(), Error> {
    let moves = matches!(
        op,
        Op::Transpose { .. }
            | Op::Slice { .. }
            | Op::Reshape { .. }
            | Op::Gather { .. }
            | Op::Concat { .. }
    );
    for (place, operand) in operands.iter().enumerate() {
        let is_index = matches!(op, Op::Gather { .. }) && place == 1;
        let wanted = if is_index {
            DType::U32
        } else if moves {
            operands[0].dtype
        } else {
            DType::F32
        };
        if operand.dtype != wanted {
            let what = if is_index {
                ": the indexes must be whole numbers, as argmax gives"
            } else if moves {
                ": operands must hold elements of one type"
            } else {
                ": an operand must hold floats, not indexes"
            };
            return Err(refuse(|| [op.name(), what].concat()));
        }
    }
    Ok(())
}

/// The shape of the first operand, to which the others must broadcast.
fn scaled(op: &Op, operands: &[&Node]) -> Result<Shape, Error> {
    let shape = operands[0].shape;
    if let Op::Norm { axis, .. } = op {
        shape.axis(i32::from(*axis), op.name())?;
    }
    for operand in &operands[1..] {
        let is_number = operand.shape.count() == 1;
        if matches!(op, Op::Norm { .. }) && !is_number
            || shape.broadcast(operand.shape, op.name())? != shape
        {
            return Err(refuse(|| {
                [
                    op.name(),
                    ": shape ",
                    &operand.shape.to_string(),
                    " does not broadcast to ",
                    &shape.to_string(),
                ]
                .concat()
            }));
        }
    }
    Ok(shape)
}

fn dot(operands: &[&Node]) -> Result<Shape, Error> {
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

/// Rows of the first times columns of the second, by NumPy's rules: the result has no
/// axis for the one row or column that a vector is.
fn matmul(a: Shape, b: Shape) -> Result<Shape, Error> {
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

/// The left factor of a product as matrices: a vector is one row.
pub fn as_row(shape: Shape) -> Shape {
    match *shape.dims() {
        [inner] => Shape::SCALAR.with_inner(1).with_inner(inner),
        _ => shape,
    }
}

/// The right one: a vector is one column.
pub fn as_column(shape: Shape) -> Shape {
    match shape.rank() {
        1 => shape.with_inner(1),
        _ => shape,
    }
}

/// A shape as a stack of matrices.
pub(super) fn matrix(shape: Shape) -> (Shape, [u32; 2]) {
    let last = shape.rank() - 2;
    let stack = shape.map(|axis, dim| (axis < last).then_some(dim));
    (stack, [shape.dims()[last], shape.dims()[last + 1]])
}

fn reduce(reduction: Reduction, shape: Shape, (axes, keep): (u8, bool)) -> Result<Shape, Error> {
    let op = Op::Reduce {
        reduction,
        axes,
        keep,
    };
    if u32::from(axes) >> shape.rank() != 0 {
        let axis = i32::from(7 - axes.leading_zeros().min(7) as u8);
        shape.axis(axis, op.name())?;
    }
    let is_reduced = |axis: usize| axes >> axis & 1 == 1;
    if reduction != Reduction::Sum {
        let empty =
            (shape.dims().iter().enumerate()).any(|(axis, dim)| is_reduced(axis) && *dim == 0);
        if empty {
            return Err(refuse(|| {
                [
                    op.name(),
                    ": shape ",
                    &shape.to_string(),
                    " holds nothing along an axis that is reduced",
                ]
                .concat()
            }));
        }
    }
    Ok(shape.map(|axis, dim| match (is_reduced(axis), keep) {
        (false, _) => Some(dim),
        (true, true) => Some(1),
        (true, false) => None,
    }))
}

fn transpose(shape: Shape, order: &[u8; MAX_RANK]) -> Result<Shape, Error> {
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

fn slice(shape: Shape, ranges: &[Range]) -> Result<Shape, Error> {
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

fn reshape(from: Shape, to: Shape) -> Result<Shape, Error> {
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

fn gather(operands: &[&Node], axis: usize) -> Result<Shape, Error> {
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

fn concat(operands: &[&Node], along: usize) -> Result<Shape, Error> {
    let Some(first) = operands.first().map(|node| node.shape) else {
        return Err(refuse(|| ["concat takes at least 1 operand"].concat()));
    };
    if operands.len() > 255 {
        // Their number is a byte on the wire.
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
