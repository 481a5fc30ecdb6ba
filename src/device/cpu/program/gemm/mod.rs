//! Products of two matrices of floats.
//!
//! Natively `matrixmultiply` computes them. In a page its kernel would need more vectors than
//! there are registers, so [`panels`] compute them. Both pad to the size of their kernel, so an
//! element's bits depend on the length of its sum alone: not on the number of rows, nor on the
//! element's own row.

#[cfg(any(test, target_arch = "wasm32"))]
mod panels;

#[cfg(not(target_arch = "wasm32"))]
#[path = "native.rs"]
mod product;
#[cfg(target_arch = "wasm32")]
#[path = "web.rs"]
mod product;

/// A matrix in memory: where it begins, and the steps from one row and from one column to the
/// next.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) words: &'a [f32],
    /// Place of the first element.
    pub(super) at: u32,
    pub(super) down: u32,
    pub(super) across: u32,
}

impl Matrix<'_> {
    /// The part of the matrix that begins with this row and column.
    pub(super) fn from(self, row: u32, column: u32) -> Self {
        let down = row.wrapping_mul(self.down);
        let across = column.wrapping_mul(self.across);
        let at = self.at.wrapping_add(down).wrapping_add(across);
        Matrix { at, ..self }
    }

    /// The transposed matrix.
    pub(super) fn transposed(self) -> Self {
        let (down, across) = (self.across, self.down);
        Matrix {
            down,
            across,
            ..self
        }
    }

    /// The steps down and across as signed numbers: places wrap, so that steps may lead back.
    fn steps(&self) -> [isize; 2] {
        [self.down, self.across].map(|step| step.cast_signed() as isize)
    }

    fn holds(&self, sizes: [usize; 2]) -> bool {
        let (mut low, mut high) = (i64::from(self.at), i64::from(self.at));
        for (size, step) in sizes.into_iter().zip(self.steps()) {
            let Some(last) = size.checked_sub(1) else {
                return true; // A matrix without elements reaches nowhere.
            };
            let reach = last as i64 * step as i64;
            low += reach.min(0);
            high += reach.max(0);
        }
        low >= 0 && high < self.words.len() as i64
    }
}

/// Adds the product of a matrix of `rows x count` and one of `count x columns` to `to`, row by
/// row.
///
/// # Panics
///
/// If a matrix reaches beyond its words or `to` is too short.
pub(super) fn add_product(
    left: Matrix<'_>,
    right: Matrix<'_>,
    [rows, count, columns]: [usize; 3],
    to: &mut [f32],
) {
    assert!(left.holds([rows, count]), "a factor reaches too far");
    assert!(right.holds([count, columns]), "a factor reaches too far");
    assert!(rows * columns <= to.len(), "the product needs more room");
    product::add(left, right, [rows, count, columns], to);
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
