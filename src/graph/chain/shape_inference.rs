//! What each op asks of its operands, and the shape and type of its result.
//!
//! TypeScript has the same rules; `tests/data/shapes.json` holds both to one table.

use super::moved_shapes::{concat, gather, reshape, slice, transpose};
use super::op::{Norm, Op, Reduced, Reduction};
use super::product_shapes::{dot, matmul};
use super::{Node, attention, refuse};
use crate::error::Error;
use crate::graph::shape::Shape;
use crate::graph::{CallerFn, FnForm, FnInput};
use crate::tensor::DType;

/// Shape and element type of an op's result.
pub(super) fn infer(op: &Op, operands: &[&Node]) -> Result<(Shape, DType), Error> {
    let wanted = match op {
        Op::Input { .. } | Op::Constant { .. } => 0,
        Op::Binary(_) | Op::Dot | Op::Matmul(_) | Op::Gather { .. } => 2,
        Op::Norm { norm, .. } => 1 + usize::from(*norm != Norm::Softmax),
        Op::Clamp | Op::Where => 3,
        Op::Call(function) => function.operands(),
        Op::Attention(_) => operands.len().clamp(4, 5),
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
            // `Chain::input` and `Chain::constant` record these two.
            return Err(refuse(|| [name, " is no operation"].concat()));
        }
        Op::Unary(function) if !function.is_of_tensors() => {
            return Err(refuse(|| {
                [name, " is a function of formulas only"].concat()
            }));
        }
        Op::Unary(_) => operands[0].shape,
        Op::Binary(_) => operands[0].shape.broadcast(operands[1].shape, name)?,
        Op::Where => {
            let [condition, a, b] = [0, 1, 2].map(|place| operands[place].shape);
            condition.broadcast(a, name)?.broadcast(b, name)?
        }
        Op::Call(function) => called(function, operands)?,
        Op::Clamp | Op::Norm { .. } => scaled(op, operands)?,
        Op::Dot => dot(operands)?,
        Op::Matmul(_) => matmul(operands[0].shape, operands[1].shape)?,
        Op::Attention(heads) => attention::infer(*heads, operands)?,
        Op::Reduce { reduction, over } => reduce(*reduction, *over, name, operands[0].shape)?,
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
        Op::Call(function) => function.content.result.scalar.dtype(),
        _ => operands[0].dtype,
    };
    Ok((shape, dtype))
}

/// Refuses operands of a wrong type: only ops that move elements take other types than floats.
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
        let is_fit = match op {
            _ if is_index => operand.dtype != DType::F32,
            _ if moves => operand.dtype == operands[0].dtype,
            // The bits of a number are those of whatever type is asked for.
            Op::Call(_) if matches!(operand.op, Op::Constant { .. }) => true,
            Op::Call(function) => match function.content.inputs.get(place) {
                Some(input) => operand.dtype == input.of.scalar.dtype(),
                None => true,
            },
            _ => operand.dtype == DType::F32,
        };
        if is_fit {
            continue;
        }
        return Err(refuse(|| {
            let what = match op {
                _ if is_index => ": the indexes must be whole numbers, as argmax gives",
                _ if moves => ": operands must hold elements of one type",
                Op::Call(_) => ": a value holds elements of another type than the definition says",
                _ => ": an operand must hold floats, not whole numbers",
            };
            [op.name(), what].concat()
        }));
    }
    Ok(())
}

/// The shape of what a caller's function gives: the values of its inputs broadcast, or are as many as
/// those of the first where the function is of a place.
fn called(function: &CallerFn, operands: &[&Node]) -> Result<Shape, Error> {
    let content = &function.content;
    let name = &content.name;
    let (inputs, params) = operands.split_at(content.inputs.len());
    if (params.iter()).any(|param| !matches!(param.op, Op::Constant { .. })) {
        return Err(refuse(|| {
            [name, ": params must be numbers that come with the call"].concat()
        }));
    }
    let mut shape = None;
    let mut is_empty = false;
    for (input, FnInput { of, is_whole }) in inputs.iter().zip(&content.inputs) {
        let Some(places) = of.places(input.shape) else {
            return Err(refuse(|| {
                let (lanes, shape) = (of.lanes.to_string(), input.shape.to_string());
                [
                    name,
                    ": the last axis of a vec",
                    &lanes,
                    " has ",
                    &lanes,
                    " elements, got shape ",
                    &shape,
                ]
                .concat()
            }));
        };
        is_empty |= *is_whole && places.count() == 0;
        shape = Some(match shape {
            None => places,
            Some(shape) if *is_whole => shape,
            Some(shape) => Shape::broadcast(shape, places, name)?,
        });
    }
    let shape = shape.unwrap_or(Shape::SCALAR);
    let is_element = content.form == FnForm::Element;
    for FnInput { of, is_whole } in &content.inputs {
        // Vectors that broadcast are copied for all places.
        if of.lanes > 1 && is_element && !is_whole {
            Shape::new(&[shape.dims(), &[of.lanes]].concat())?;
        }
    }
    // A place that is clamped to nothing would be somebody else's.
    if is_empty && shape.count() > 0 {
        return Err(refuse(|| {
            [name, ": a tensor that is looked at holds nothing"].concat()
        }));
    }
    match content.result.lanes {
        1 => Ok(shape),
        lanes => Shape::new(&[shape.dims(), &[lanes]].concat()),
    }
}

/// The shape of the first operand of a clamp or a norm, to which the others must broadcast.
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

/// The shape without the axes that are reduced, each of which must hold something unless a sum is
/// asked for.
fn reduce(reduction: Reduction, over: Reduced, name: &str, shape: Shape) -> Result<Shape, Error> {
    if u32::from(over.axes) >> shape.rank() != 0 {
        let axis = i32::from(7 - over.axes.leading_zeros().min(7) as u8);
        shape.axis(axis, name)?;
    }
    if reduction != Reduction::Sum {
        let empty =
            (shape.dims().iter().enumerate()).any(|(axis, dim)| over.has(axis) && *dim == 0);
        if empty {
            return Err(refuse(|| {
                [
                    name,
                    ": shape ",
                    &shape.to_string(),
                    " holds nothing along an axis that is reduced",
                ]
                .concat()
            }));
        }
    }
    Ok(shape.map(|axis, dim| match (over.has(axis), over.keep) {
        (false, _) => Some(dim),
        (true, true) => Some(1),
        (true, false) => None,
    }))
}
