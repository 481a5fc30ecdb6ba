//! Products by `matrixmultiply`, which has kernels for each kind of processor.

use super::Matrix;

/// Adds a product to `to`, row by row. The caller has checked that every element lies within
/// its words.
pub(super) fn add(
    left: Matrix<'_>,
    right: Matrix<'_>,
    [rows, count, columns]: [usize; 3],
    to: &mut [f32],
) {
    let start = |matrix: &Matrix<'_>| matrix.words.as_ptr().wrapping_add(matrix.at as usize);
    let ([a_down, a_across], [b_down, b_across]) = (left.steps(), right.steps());
    #[expect(
        unsafe_code,
        reason = "matrixmultiply takes pointers; all it reads and writes was checked"
    )]
    // SAFETY: every element of the factors lies within their words, and the rows
    // of the product do not overlap and lie within `to`.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            count,
            columns,
            1.0,
            start(&left),
            a_down,
            a_across,
            start(&right),
            b_down,
            b_across,
            1.0,
            to.as_mut_ptr(),
            columns as isize,
            1,
        );
    }
}
