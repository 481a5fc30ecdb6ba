//! The dimensions of a stage's domain, and how the loads and the result step along each.
//!
//! What is computed in a place is not known here.

use super::draft::Draft;
use crate::graph::shape::{MAX_RANK, Shape};

/// Strides of loads and of the result along some dimensions.
pub(super) type Strides = [u32; MAX_RANK];

/// Where the loads and the result of a draft lie.
pub(super) struct Geometry<'a> {
    pub(super) draft: &'a Draft,
    /// Strides of the result along each dimension of the domain.
    pub(super) result: Strides,
    /// Whether the result is a part of a concat.
    pub(super) is_part: bool,
}

impl Geometry<'_> {
    /// The dimensions of a domain of this shape whose axes are chosen.
    pub(super) fn dimensions(&self, shape: Shape, is_chosen: &dyn Fn(usize) -> bool) -> Dimensions {
        let axes: Vec<usize> = (0..shape.rank()).filter(|axis| is_chosen(*axis)).collect();
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
            dims.push(1); // Kernels need no case for no dimension.
        }
        Dimensions {
            dims,
            strides: loads.chain([&self.result]).map(pick).collect(),
        }
    }
}

/// Some dimensions of a domain, and the strides along each.
pub(super) struct Dimensions {
    pub(super) dims: Vec<u32>,
    /// For each load, then for the result.
    pub(super) strides: Vec<Strides>,
}

impl Dimensions {
    /// Adds a dimension of one in front: a stack of one matrix.
    pub(super) fn add_stack(&mut self) {
        self.dims.insert(0, 1);
        for strides in &mut self.strides {
            strides.copy_within(..MAX_RANK - 1, 1);
            strides[0] = 0;
        }
    }

    /// Makes one dimension of neighboring dimensions that all strides step through as through
    /// one; the last `except` dimensions stay. A dimension of 1 counts like any other: what is
    /// collapsed must not depend on how many rows a call happens to have.
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
