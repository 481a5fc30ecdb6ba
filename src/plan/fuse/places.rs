//! The dimensions of a stage's domain, and how its loads and its result step along them.
//!
//! What is computed there is not known here.

use super::stage::Draft;
use crate::graph::shape::{MAX_RANK, Shape};

/// Strides of loads and of the result along some dimensions.
pub(super) type Strides = [u32; MAX_RANK];

/// What a stage is built from.
pub(super) struct Numbers<'a> {
    pub(super) draft: &'a Draft,
    /// Strides of the result along each dimension of the domain.
    pub(super) result: Strides,
    /// Whether the result is a part of another.
    pub(super) is_part: bool,
}

impl Numbers<'_> {
    /// Some dimensions of the domain; the result's strides are the last.
    pub(super) fn places(&self, mut is_here: impl FnMut(usize) -> bool, shape: Shape) -> Places {
        let axes: Vec<usize> = (0..shape.rank()).filter(|axis| is_here(*axis)).collect();
        let loads = self.draft.loads.iter().map(|load| &load.strides);
        let pick = |strides: &Strides| {
            let mut picked = [0; MAX_RANK];
            for (picked, axis) in picked.iter_mut().zip(&axes) {
                *picked = strides[*axis];
            }
            picked
        };
        let mut dims: Vec<u32> = axes.iter().map(|axis| shape.dims()[*axis]).collect();
        if dims.is_empty() {
            dims.push(1); // One place, so that kernels need no case for none.
        }
        Places {
            dims,
            strides: loads.chain([&self.result]).map(pick).collect(),
        }
    }
}

/// Some dimensions, and strides along them.
pub(super) struct Places {
    pub(super) dims: Vec<u32>,
    pub(super) strides: Vec<Strides>,
}

impl Places {
    /// Adds a dimension of one in front, so that there is one.
    pub(super) fn add_stack(&mut self) {
        self.dims.insert(0, 1);
        for strides in &mut self.strides {
            strides.copy_within(..MAX_RANK - 1, 1);
            strides[0] = 0;
        }
    }

    /// Makes one dimension of neighbors that all strides step through as if
    /// they were one, except of the last few. Dimensions of 1 are like any other:
    /// what is merged must not depend on how many rows a call happens to have.
    pub(super) fn collapse(&mut self, except: usize) {
        for axis in (1..self.dims.len() - except).rev() {
            let dim = self.dims[axis];
            let is_one = (self.strides.iter())
                .all(|strides| strides[axis - 1] == strides[axis].wrapping_mul(dim));
            if is_one {
                self.dims[axis - 1] *= dim;
                self.dims.remove(axis);
                for strides in &mut self.strides {
                    strides[axis - 1] = strides[axis];
                    strides.copy_within(axis + 1.., axis);
                }
            }
        }
    }
}
