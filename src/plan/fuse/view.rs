//! Views: which element of a value each place of a stage's domain looks at.
//!
//! Transposes, slices and broadcasts compose to one step and one offset for each dimension; a
//! reshape is a value seen as of another shape. A view moves nothing.

use std::ops::Range;

use crate::graph::chain::{Range as SliceRange, Reduced};
use crate::graph::shape::{MAX_RANK, Shape};

/// In [`Along::from`]: no dimension of the domain, so that all places look at the offset.
const FIXED: u8 = u8::MAX;

/// A map from the places of a domain to those of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// The shape that the value is seen as of: its own, or that of a reshape.
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
    /// The view that each place of a domain of the value's shape has of its own element.
    pub(super) fn identity(shape: Shape) -> View {
        let mut along = [START; MAX_RANK];
        for (axis, along) in along.iter_mut().enumerate().take(shape.rank()) {
            along.from = axis as u8;
            along.step = 1;
        }
        View { shape, along }
    }

    /// Whether both views look at the same elements, however they step along dimensions of one.
    pub(super) fn is_same(&self, other: &View) -> bool {
        let pairs = self.along.iter().zip(&other.along);
        self.shape == other.shape
            && (self.shape.dims().iter().zip(pairs)).all(|(dim, (a, b))| *dim == 1 || a == b)
    }

    /// The view that the elements of a row have of the row's reduction: the same place along
    /// each reduced dimension of the domain, and their own along all others.
    pub(super) fn of_reduced(shape: Shape, over: Reduced) -> View {
        let whole = View::identity(shape);
        let mut along = [START; MAX_RANK];
        let mut rank = 0;
        let reduced = shape.map(|axis, dim| {
            if over.has(axis) && !over.keep {
                return None;
            }
            if !over.has(axis) {
                along[rank] = whole.along[axis];
            }
            rank += 1;
            Some(if over.has(axis) { 1 } else { dim })
        });
        View {
            shape: reduced,
            along,
        }
    }

    /// The view of a factor `matrix` from the places of the matrix `made`. The factor's last two
    /// axes are the axes `last` of the domain, which are those of `made` and more behind; its
    /// axes in front broadcast.
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

    /// The view of an operand that broadcasts to this value of shape `own`; `None` where the
    /// value is seen as of another shape, in which the operand has no dimensions.
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

    /// The view of a transpose's operand.
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

    /// The view of a slice's operand.
    pub(super) fn slice(self, ranges: &[SliceRange], operand: Shape) -> View {
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

    /// The same view from another domain, whose dimension `to[k]` is dimension `k` of this
    /// view's domain, or which has no such dimension.
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

    /// Where the elements of a value that is laid out row by row lie: the offset of the first,
    /// and the stride along each dimension of the domain.
    pub(super) fn strides(&self) -> (u32, [u32; MAX_RANK]) {
        self.partial(0..self.shape.rank(), &self.shape.strides())
    }

    /// The offset and the strides that some of the value's dimensions contribute, where the
    /// value has the strides `by` along these dimensions.
    pub(super) fn partial(&self, axes: Range<usize>, by: &[u32]) -> (u32, [u32; MAX_RANK]) {
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

    /// The view of a gather's indexes, whose dimensions begin at axis `at` of the result.
    pub(super) fn indexes(&self, at: usize, indexes: Shape) -> View {
        let mut along = [START; MAX_RANK];
        along[..indexes.rank()].copy_from_slice(&self.along[at..at + indexes.rank()]);
        View {
            shape: indexes,
            along,
        }
    }
}
