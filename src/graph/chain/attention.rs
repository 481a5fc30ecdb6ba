//! What attention asks of its operands, and the shape of its result.

use super::op::{Heads, MAX_HEAD, Op};
use super::product_shapes::matrix;
use super::{Node, refuse};
use crate::error::Error;
use crate::graph::shape::{MAX_RANK, Shape};

/// The most heads in a stack of matrices, because kernels count threads in 32 bits.
const MAX_HEADS: u64 = 1 << 24;

/// The shape of an attention: that of the queries, with the axes in front broadcast.
pub(super) fn infer(heads: Heads, operands: &[&Node]) -> Result<Shape, Error> {
    let [q, k, v] = [0, 1, 2].map(|place| operands[place].shape);
    if !matches!(operands[3].op, Op::Constant { .. }) {
        return Err(refuse(|| {
            "attention: the scale must be a number that comes with the call".into()
        }));
    }
    for shape in [q, k, v] {
        if !(2..MAX_RANK).contains(&shape.rank()) {
            return Err(refuse(|| {
                let shape = shape.to_string();
                [
                    "attention: shape ",
                    &shape,
                    " must have 2 to 7 dimensions, the last two rows and floats",
                ]
                .concat()
            }));
        }
    }
    let (stack, [rows, width]) = matrix(q);
    let (stack_of_keys, [keys, width_of_keys]) = matrix(k);
    let (stack_of_values, [values, width_of_values]) = matrix(v);
    if width_of_values != width_of_keys {
        return both(k, v, " must agree in the last dimension");
    }
    if values != keys {
        return both(
            k,
            v,
            " must agree in the dimension before the last: a value for each key",
        );
    }
    let holds = |size: u32| width % heads.count == 0 && (1..=MAX_HEAD).contains(&size);
    if !width.checked_div(heads.count).is_some_and(holds) {
        return Err(refuse(|| {
            let (count, shape) = (heads.count.to_string(), q.to_string());
            [
                "attention: rows of shape ",
                &shape,
                " are not ",
                &count,
                " heads of 1 to 512 floats",
            ]
            .concat()
        }));
    }
    if !share_heads(heads.count, width, width_of_keys) {
        return both(
            q,
            k,
            " do not suit: keys have as many heads as queries, or a number that divides it",
        );
    }
    if keys == 0 {
        return both(q, k, " leave the queries no keys");
    }
    if let Some(bias) = operands.get(4)
        && *bias.shape.dims() != [heads.count, rows + keys - 1]
    {
        return both(
            bias.shape,
            q,
            " do not suit: a bias has a row for each head, of distances",
        );
    }
    if (heads.is_causal || heads.window.is_some()) && rows > keys {
        return both(
            q,
            k,
            " have more queries than keys, so that the first of them would see none; leave causal and window out",
        );
    }
    let stack = stack.broadcast(stack_of_keys, "attention")?;
    let stack = stack.broadcast(stack_of_values, "attention")?;
    let heads = u64::from(stack.count()) * u64::from(heads.count);
    match Shape::new(&[stack.dims(), &[rows, width]].concat()) {
        Ok(shape) if heads <= MAX_HEADS => Ok(shape),
        _ => both(q, k, " give more than 2^30 elements or 2^24 heads"),
    }
}

/// Whether rows of keys of this width have a number of heads that divides that of the queries.
fn share_heads(count: u32, width: u32, width_of_keys: u32) -> bool {
    let size = width / count;
    let heads_of_keys = width_of_keys / size;
    heads_of_keys > 0 && width_of_keys.is_multiple_of(size) && count.is_multiple_of(heads_of_keys)
}

/// The error that names two shapes.
fn both<T>(a: Shape, b: Shape, what: &str) -> Result<T, Error> {
    Err(refuse(|| {
        let (a, b) = (a.to_string(), b.to_string());
        ["attention: shapes ", &a, " and ", &b, what].concat()
    }))
}
