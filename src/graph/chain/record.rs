//! The operations of chains as methods, whose arguments are as callers give them: axes counted
//! from either end, ranges by Python's rules.

use super::op::{Axes, Heads, Norm, Op, Range, Reduced, Reduction};
use super::{Chain, NodeId, refuse};
use crate::error::Error;
use crate::graph::shape::{MAX_RANK, Shape};
use crate::graph::{BinaryFn, Precision, UnaryFn};

/// The end of a range that goes on to the end of the axis, in the direction of the step.
pub const OPEN: i32 = i32::MIN;

#[expect(missing_docs, reason = "one line each, named as the ops they record")]
#[allow(
    clippy::missing_errors_doc,
    reason = "all of them refuse operands that do not suit the op"
)]
impl Chain {
    pub fn unary(&mut self, function: UnaryFn, x: NodeId) -> Result<NodeId, Error> {
        self.apply(Op::Unary(function), &[x])
    }

    pub fn binary(&mut self, function: BinaryFn, a: NodeId, b: NodeId) -> Result<NodeId, Error> {
        self.apply(Op::Binary(function), &[a, b])
    }

    pub fn clamp(&mut self, x: NodeId, low: NodeId, high: NodeId) -> Result<NodeId, Error> {
        self.apply(Op::Clamp, &[x, low, high])
    }

    /// `a` where the condition is true, `b` elsewhere.
    pub fn select(&mut self, condition: NodeId, a: NodeId, b: NodeId) -> Result<NodeId, Error> {
        self.apply(Op::Where, &[condition, a, b])
    }

    pub fn dot(&mut self, a: NodeId, b: NodeId) -> Result<NodeId, Error> {
        self.apply(Op::Dot, &[a, b])
    }

    pub fn matmul(&mut self, a: NodeId, b: NodeId) -> Result<NodeId, Error> {
        self.matmul_in(Precision::F32, a, b)
    }

    /// The same product, of a precision that the device may lack: then it is computed in 32 bits.
    pub fn matmul_in(
        &mut self,
        precision: Precision,
        a: NodeId,
        b: NodeId,
    ) -> Result<NodeId, Error> {
        self.apply(Op::Matmul(precision), &[a, b])
    }

    /// Queries, keys and values; `scale` is a constant.
    pub fn attention(
        &mut self,
        heads: Heads,
        [q, k, v]: [NodeId; 3],
        scale: NodeId,
    ) -> Result<NodeId, Error> {
        self.apply(Op::Attention(heads), &[q, k, v, scale])
    }

    /// The same with a bias by how far keys are behind queries.
    pub fn biased_attention(
        &mut self,
        heads: Heads,
        [q, k, v]: [NodeId; 3],
        scale: NodeId,
        bias: NodeId,
    ) -> Result<NodeId, Error> {
        self.apply(Op::Attention(heads), &[q, k, v, scale, bias])
    }

    /// No axes means all axes.
    pub fn reduce(
        &mut self,
        reduction: Reduction,
        x: NodeId,
        over: Axes<'_>,
    ) -> Result<NodeId, Error> {
        let Axes { axes, is_kept } = over;
        let op = |axes| Op::Reduce {
            reduction,
            over: Reduced {
                axes,
                keep: is_kept,
            },
        };
        let shape = self.shape(x, op(0).name())?;
        let mut mask = 0_u8;
        for axis in axes {
            let bit = 1 << shape.axis(*axis, op(0).name())?;
            if mask & bit != 0 {
                return Err(refuse(|| {
                    [op(0).name(), ": an axis is named twice"].concat()
                }));
            }
            mask |= bit;
        }
        if axes.is_empty() {
            mask = ((1_u16 << shape.rank()) - 1) as u8;
        }
        self.apply(op(mask), &[x])
    }

    /// `epsilon` is a constant; softmax has none.
    pub fn norm(
        &mut self,
        norm: Norm,
        x: NodeId,
        axis: i32,
        epsilon: Option<NodeId>,
    ) -> Result<NodeId, Error> {
        let op = |axis| Op::Norm { norm, axis };
        let axis = self.shape(x, op(0).name())?.axis(axis, op(0).name())?;
        let operands = [Some(x), epsilon];
        let operands: Vec<NodeId> = operands.into_iter().flatten().collect();
        self.apply(op(axis as u8), &operands)
    }

    /// No `order` means that all axes are reversed.
    pub fn transpose(&mut self, x: NodeId, order: &[i32]) -> Result<NodeId, Error> {
        let shape = self.shape(x, "transpose")?;
        let mut axes = [0; MAX_RANK];
        let reversed: Vec<i32>;
        let order = if order.is_empty() {
            reversed = (0..shape.rank() as i32).rev().collect();
            &reversed
        } else {
            order
        };
        if order.len() != shape.rank() {
            return Err(refuse(|| {
                [
                    "transpose: the order must name each axis of shape ",
                    &shape.to_string(),
                    " once",
                ]
                .concat()
            }));
        }
        for (place, axis) in axes.iter_mut().zip(order) {
            *place = shape.axis(*axis, "transpose")? as u8;
        }
        self.apply(Op::Transpose { order: axes }, &[x])
    }

    /// A (start, end, step) for each of the first axes, by Python's rules: negative places count
    /// from the end, and places outside of the axis are cut off.
    pub fn slice(&mut self, x: NodeId, parts: &[(i32, i32, i32)]) -> Result<NodeId, Error> {
        let shape = self.shape(x, "slice")?;
        if parts.len() > shape.rank() {
            return Err(refuse(|| {
                [
                    "slice: ",
                    &parts.len().to_string(),
                    " ranges are more than shape ",
                    &shape.to_string(),
                    " has axes",
                ]
                .concat()
            }));
        }
        let mut ranges = Vec::with_capacity(shape.rank());
        for (axis, dim) in shape.dims().iter().enumerate() {
            let part = parts.get(axis).copied().unwrap_or((0, i32::MAX, 1));
            ranges.push(range(part, *dim)?);
        }
        let ranges = ranges.into();
        self.apply(Op::Slice { ranges }, &[x])
    }

    pub fn reshape(&mut self, x: NodeId, shape: Shape) -> Result<NodeId, Error> {
        self.apply(Op::Reshape { shape }, &[x])
    }

    pub fn gather(&mut self, x: NodeId, indexes: NodeId, axis: i32) -> Result<NodeId, Error> {
        let axis = self.shape(x, "gather")?.axis(axis, "gather")? as u8;
        self.apply(Op::Gather { axis }, &[x, indexes])
    }

    pub fn concat(&mut self, parts: &[NodeId], axis: i32) -> Result<NodeId, Error> {
        let Some(first) = parts.first() else {
            return Err(refuse(|| ["concat takes at least 1 operand"].concat()));
        };
        let axis = self.shape(*first, "concat")?.axis(axis, "concat")? as u8;
        self.apply(Op::Concat { axis }, parts)
    }

    fn shape(&self, id: NodeId, op: &str) -> Result<Shape, Error> {
        match self.nodes.get(id.index()) {
            Some(node) => Ok(node.shape),
            None => Err(refuse(|| {
                [op, ": an operand is not of this chain"].concat()
            })),
        }
    }
}

/// The range of a start, an end and a step, as Python's `slice.indices` has it.
fn range(part: (i32, i32, i32), dim: u32) -> Result<Range, Error> {
    let (start, end, step) = part;
    if step == 0 {
        return Err(refuse(|| ["slice: a step must not be 0"].concat()));
    }
    let dim = i64::from(dim);
    // A range with a negative step begins at dim - 1 at most and ends behind -1.
    let (low, high) = if step > 0 { (0, dim) } else { (-1, dim - 1) };
    let place = |place: i32| {
        let place = i64::from(place);
        let counted = if place < 0 { place + dim } else { place };
        counted.clamp(low, high)
    };
    let start = place(start);
    let end = match (end, step > 0) {
        (OPEN, true) => high,
        (OPEN, false) => low,
        (end, _) => place(end),
    };
    let step64 = i64::from(step);
    let count = (end - start + step64 - step64.signum()) / step64;
    Ok(Range {
        start: start.max(0) as u32,
        step,
        count: count.max(0) as u32,
    })
}
