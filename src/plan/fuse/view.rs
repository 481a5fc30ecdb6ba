//! Which element of a value a place of a stage's domain looks at.
//!
//! Transposes, slices and broadcasts compose to one step and offset for each
//! dimension; a reshape is a value seen as of another shape. Nothing is moved.

use crate::graph::chain::Range;
use crate::graph::shape::{MAX_RANK, Shape};

/// No dimension of the domain: the place is fixed.
const FIXED: u8 = u8::MAX;

/// A map from the places of a domain to those of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// The shape that the value is seen as: its own, or that of a reshape of
    /// the same elements.
    shape: Shape,
    along: [Along; MAX_RANK],
}

/// One dimension of a value: `offset + step * place[from]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Along {
    from: u8,
    step: u32,
    offset: u32,
}

const START: Along = Along {
    from: FIXED,
    step: 0,
    offset: 0,
};

impl View {
    /// Of a domain of the value's own shape.
    pub(super) fn identity(shape: Shape) -> View {
        let mut along = [START; MAX_RANK];
        for (axis, along) in along.iter_mut().enumerate().take(shape.rank()) {
            along.from = axis as u8;
            along.step = 1;
        }
        View { shape, along }
    }

    /// Whether both look at the same elements: of a dimension of one there is but
    /// one to look at.
    pub(super) fn is_same(&self, other: &View) -> bool {
        let pairs = self.along.iter().zip(&other.along);
        self.shape == other.shape
            && (self.shape.dims().iter().zip(pairs)).all(|(dim, (a, b))| *dim == 1 || a == b)
    }

    /// Of one reduced value: a fixed place in each reduced dimension of the
    /// domain, and all others as they are.
    pub(super) fn of_reduced(shape: Shape, (axes, keep): (u8, bool)) -> View {
        let whole = View::identity(shape);
        let is_reduced = |axis: usize| axes >> axis & 1 == 1;
        let mut along = [START; MAX_RANK];
        let mut rank = 0;
        let reduced = shape.map(|axis, dim| {
            if is_reduced(axis) && !keep {
                return None;
            }
            if !is_reduced(axis) {
                along[rank] = whole.along[axis];
            }
            rank += 1;
            Some(if is_reduced(axis) { 1 } else { dim })
        });
        View {
            shape: reduced,
            along,
        }
    }

    /// Of a matrix that another one is made of, from the other's axes and those
    /// behind them: its own last two are `last` of these. Those in front broadcast.
    pub(super) fn of_matrix(made: Shape, matrix: Shape, last: [usize; 2]) -> View {
        let (rank, own) = (made.rank(), matrix.rank());
        let mut view = View::identity(matrix);
        for (axis, along) in view.along.iter_mut().enumerate().take(own - 2) {
            along.from = (axis + rank - own) as u8;
            if matrix.dims()[axis] != made.from_end(own, axis) {
                *along = START;
            }
        }
        for (along, from) in view.along[own - 2..].iter_mut().zip(last) {
            along.from = from as u8;
        }
        view
    }

    /// Of an operand that broadcasts to this value, or `None` where the value
    /// is seen as another shape in which the operand has no dimensions.
    pub(super) fn operand(self, own: Shape, operand: Shape) -> Option<View> {
        if operand == own {
            return Some(self);
        }
        if self.shape == own {
            let mut along = [START; MAX_RANK];
            let skipped = own.rank() - operand.rank();
            let seen = self.along[skipped..].iter().zip(&own.dims()[skipped..]);
            for ((along, dim), (seen, own)) in along.iter_mut().zip(operand.dims()).zip(seen) {
                if dim == own {
                    *along = *seen;
                }
            }
            return Some(View {
                shape: operand,
                along,
            });
        }
        if operand.count() == own.count() {
            return Some(self);
        }
        (operand.count() == 1).then_some(View {
            shape: operand,
            along: [START; MAX_RANK],
        })
    }

    /// Of the operand of a transpose.
    pub(super) fn transpose(self, order: &[u8; MAX_RANK]) -> View {
        let mut along = [START; MAX_RANK];
        let mut dims = [0; MAX_RANK];
        for (axis, dim) in self.shape.dims().iter().enumerate() {
            along[usize::from(order[axis])] = self.along[axis];
            dims[usize::from(order[axis])] = *dim;
        }
        View {
            shape: self.shape.map(|axis, _| Some(dims[axis])),
            along,
        }
    }

    /// Of the operand of a slice.
    pub(super) fn slice(self, ranges: &[Range], operand: Shape) -> View {
        let mut along = self.along;
        for (along, range) in along.iter_mut().zip(ranges) {
            let step = range.step as u32;
            along.offset = along.offset.wrapping_mul(step).wrapping_add(range.start);
            along.step = along.step.wrapping_mul(step);
        }
        View {
            shape: operand,
            along,
        }
    }

    /// The same view of another domain, whose dimension `to(k)` is this one's
    /// dimension `k`, or which has only one place there.
    pub(super) fn with_domain(mut self, to: &[Option<u8>; MAX_RANK]) -> View {
        for along in &mut self.along {
            if along.from != FIXED {
                match to[usize::from(along.from)] {
                    Some(axis) => along.from = axis,
                    None => {
                        along.from = FIXED;
                        along.step = 0;
                    }
                }
            }
        }
        self
    }

    /// Where the value's elements lie, when it is laid out row by row: the
    /// offset of the first, and the stride of each dimension of the domain.
    pub(super) fn strides(&self) -> (u32, [u32; MAX_RANK]) {
        let natural = self.shape.strides();
        let mut strides = [0_u32; MAX_RANK];
        let mut offset = 0_u32;
        for (along, natural) in self.along.iter().zip(natural).take(self.shape.rank()) {
            offset = offset.wrapping_add(along.offset.wrapping_mul(natural));
            if along.from != FIXED {
                let stride = &mut strides[usize::from(along.from)];
                *stride = stride.wrapping_add(along.step.wrapping_mul(natural));
            }
        }
        (offset, strides)
    }

    /// The part of the view that concerns some of the value's dimensions:
    /// offset and strides with these strides of the value.
    pub(super) fn partial(
        &self,
        axes: std::ops::Range<usize>,
        by: &[u32],
    ) -> (u32, [u32; MAX_RANK]) {
        let mut strides = [0_u32; MAX_RANK];
        let mut offset = 0_u32;
        for (along, by) in self.along[axes].iter().zip(by) {
            offset = offset.wrapping_add(along.offset.wrapping_mul(*by));
            if along.from != FIXED {
                let stride = &mut strides[usize::from(along.from)];
                *stride = stride.wrapping_add(along.step.wrapping_mul(*by));
            }
        }
        (offset, strides)
    }

    /// The dimensions that the indexes of a gather have in its result, seen as
    /// the indexes' own.
    pub(super) fn indexes(&self, at: usize, indexes: Shape) -> View {
        let mut along = [START; MAX_RANK];
        along[..indexes.rank()].copy_from_slice(&self.along[at..at + indexes.rank()]);
        View {
            shape: indexes,
            along,
        }
    }
}
