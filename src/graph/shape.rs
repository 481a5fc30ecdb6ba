//! Shapes of tensors: dimensions, strides, broadcasting, axes, by NumPy's rules and row-major.
//!
//! What a tensor holds and where it lies is not known here.

use std::fmt::{self, Display, Formatter};

use super::refuse::refuse;
use crate::error::Error;

/// The most dimensions of a tensor.
pub const MAX_RANK: usize = 8;

/// The most elements of a tensor: addresses are 32-bit numbers of words, and a batch holds several
/// tensors.
pub const MAX_ELEMENTS: u32 = 1 << 30;

/// The dimensions of a tensor, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    rank: u8,
    /// Zeros behind `rank`, so that equal shapes are equal memory.
    dims: [u32; MAX_RANK],
}

impl Shape {
    /// The shape of a single value, without dimensions.
    pub const SCALAR: Shape = Shape {
        rank: 0,
        dims: [0; MAX_RANK],
    };

    /// A shape of these dimensions.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for more than [`MAX_RANK`] dimensions or more
    /// than [`MAX_ELEMENTS`] elements.
    pub fn new(dims: &[u32]) -> Result<Shape, Error> {
        if dims.len() > MAX_RANK {
            return Err(refuse(|| {
                [
                    "a tensor has at most 8 dimensions, not ",
                    &dims.len().to_string(),
                ]
                .concat()
            }));
        }
        let mut shape = Shape::SCALAR;
        for dim in dims {
            shape.push(*dim);
        }
        if shape.is_too_large() {
            return Err(refuse(|| {
                [
                    "a tensor has at most 2^30 elements; ",
                    &shape.to_string(),
                    " has more",
                ]
                .concat()
            }));
        }
        Ok(shape)
    }

    /// The dimensions.
    pub fn dims(&self) -> &[u32] {
        &self.dims[..self.rank()]
    }

    /// How many dimensions there are.
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// Elements of a tensor of this shape.
    pub fn count(&self) -> u32 {
        self.dims().iter().product()
    }

    /// Elements between neighbors along each dimension.
    pub fn strides(&self) -> [u32; MAX_RANK] {
        let mut strides = [0; MAX_RANK];
        let mut next = 1_u32;
        for axis in (0..self.rank()).rev() {
            strides[axis] = next;
            next = next.wrapping_mul(self.dims[axis]);
        }
        strides
    }

    /// The shape that two shapes broadcast to: aligned at their last
    /// dimensions, equal or 1.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] naming both shapes where they do not fit.
    pub fn broadcast(self, other: Shape, op: &str) -> Result<Shape, Error> {
        let rank = self.rank().max(other.rank());
        let mut shape = Shape::SCALAR;
        for axis in 0..rank {
            shape.push(
                match (self.from_end(rank, axis), other.from_end(rank, axis)) {
                    (a, b) if a == b => a,
                    (1, b) => b,
                    (a, 1) => a,
                    _ => {
                        return Err(refuse(|| {
                            [
                                op,
                                ": shapes ",
                                &self.to_string(),
                                " and ",
                                &other.to_string(),
                                " do not broadcast",
                            ]
                            .concat()
                        }));
                    }
                },
            );
        }
        if shape.is_too_large() {
            return Err(refuse(|| {
                [
                    op,
                    ": shapes ",
                    &self.to_string(),
                    " and ",
                    &other.to_string(),
                    " broadcast to more than 2^30 elements",
                ]
                .concat()
            }));
        }
        Ok(shape)
    }

    /// An axis counted from the front; negative ones count from the end.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for one that the shape does not have.
    pub fn axis(&self, axis: i32, op: &str) -> Result<usize, Error> {
        let rank = i32::from(self.rank);
        let counted = if axis < 0 {
            axis.wrapping_add(rank)
        } else {
            axis
        };
        match usize::try_from(counted) {
            Ok(counted) if counted < self.rank() => Ok(counted),
            _ => Err(refuse(|| {
                [
                    op,
                    ": axis ",
                    &axis.to_string(),
                    " is outside of shape ",
                    &self.to_string(),
                ]
                .concat()
            })),
        }
    }

    /// The shape in which `dim` gives each dimension; a dimension for which it gives `None` is left
    /// out.
    pub fn map(&self, mut dim: impl FnMut(usize, u32) -> Option<u32>) -> Shape {
        let mut shape = Shape::SCALAR;
        for (axis, old) in self.dims().iter().enumerate() {
            if let Some(new) = dim(axis, *old) {
                shape.push(new);
            }
        }
        shape
    }

    /// The shape with one more axis behind. The result may be of more elements than a tensor may
    /// have: it is the domain of a computation.
    pub(crate) fn with_inner(mut self, dim: u32) -> Shape {
        self.push(dim);
        self
    }

    /// The dimension at `axis` when this shape is aligned at the end of a shape of `rank`
    /// dimensions; 1 in front of this shape's own dimensions.
    pub fn from_end(&self, rank: usize, axis: usize) -> u32 {
        match (axis + self.rank()).checked_sub(rank) {
            Some(own) => self.dims[own],
            None => 1,
        }
    }

    fn push(&mut self, dim: u32) {
        self.dims[self.rank()] = dim;
        self.rank += 1;
    }

    /// Whether the product of the dimensions is too large, dimensions of 0 not counted: strides
    /// are products of the other dimensions.
    fn is_too_large(&self) -> bool {
        let mut count = 1_u64;
        for dim in self.dims() {
            count *= u64::from(*dim).max(1);
            if count > u64::from(MAX_ELEMENTS) {
                return true;
            }
        }
        false
    }
}

/// Prints the shape as `[3, 4]`.
impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (axis, dim) in self.dims().iter().enumerate() {
            if axis > 0 {
                f.write_str(", ")?;
            }
            dim.fmt(f)?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[u32]) -> Shape {
        Shape::new(dims).unwrap()
    }

    #[test]
    fn shapes_broadcast_as_in_numpy() {
        let cases: [(&[u32], &[u32], &[u32]); 7] = [
            (&[], &[], &[]),
            (&[3, 4], &[], &[3, 4]),
            (&[3, 4], &[4], &[3, 4]),
            (&[3, 1], &[4], &[3, 4]),
            (&[1, 4], &[3, 1], &[3, 4]),
            (&[2, 1, 5], &[7, 1], &[2, 7, 5]),
            (&[0, 4], &[1, 4], &[0, 4]),
        ];
        for (a, b, expected) in cases {
            let both = [(a, b), (b, a)];
            for (a, b) in both {
                let broadcast = shape(a).broadcast(shape(b), "add").unwrap();
                assert_eq!(broadcast.dims(), expected, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_names_both_shapes() {
        let error = shape(&[3, 4]).broadcast(shape(&[5]), "add").unwrap_err();
        assert_eq!(
            error.to_string(),
            "add: shapes [3, 4] and [5] do not broadcast"
        );
        let error = shape(&[3, 4]).axis(-3, "sum").unwrap_err();
        assert_eq!(error.to_string(), "sum: axis -3 is outside of shape [3, 4]");
        assert!(shape(&[3]).axis(i32::MIN, "sum").is_err());
    }

    #[test]
    fn sizes_are_limited() {
        assert!(Shape::new(&[1; 9]).is_err());
        assert!(Shape::new(&[1 << 15, 1 << 15]).is_ok());
        assert!(Shape::new(&[1 << 15, 1 << 15, 2]).is_err());
        assert!(Shape::new(&[0, u32::MAX, u32::MAX]).is_err());
        let tall = shape(&[1 << 20, 1]);
        assert!(tall.broadcast(shape(&[1, 1 << 20]), "add").is_err());
    }

    #[test]
    fn strides_are_row_major() {
        assert_eq!(shape(&[2, 3, 4]).strides()[..3], [12, 4, 1]);
        assert_eq!(shape(&[2, 3, 4]).axis(-1, "sum").unwrap(), 2);
    }
}
