//! Products of two matrices of floats.
//!
//! `matrixmultiply` packs both into panels padded to its kernel's size, so an
//! element's bits depend on the length of its sum alone: not on how many rows
//! there are, nor on which of them it is in.

/// A matrix in memory, by the steps from one row and from one column to the next.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) words: &'a [f32],
    /// Place of the first element.
    pub(super) at: u32,
    pub(super) down: u32,
    pub(super) across: u32,
}

impl Matrix<'_> {
    /// The steps as they are meant: places wrap, so that steps may lead back.
    fn steps(&self) -> [isize; 2] {
        [self.down, self.across].map(|step| step.cast_signed() as isize)
    }

    fn holds(&self, sizes: [usize; 2]) -> bool {
        let (mut low, mut high) = (i64::from(self.at), i64::from(self.at));
        for (size, step) in sizes.into_iter().zip(self.steps()) {
            let Some(last) = size.checked_sub(1) else {
                return true; // Without elements.
            };
            let reach = last as i64 * step as i64;
            low += reach.min(0);
            high += reach.max(0);
        }
        low >= 0 && high < self.words.len() as i64
    }
}

/// Writes the product of `rows x count` and `count x columns` row by row.
///
/// # Panics
///
/// If a matrix reaches beyond its words or `to` is too short.
pub(super) fn multiply(
    left: Matrix<'_>,
    right: Matrix<'_>,
    [rows, count, columns]: [usize; 3],
    to: &mut [f32],
) {
    assert!(left.holds([rows, count]), "a factor reaches too far");
    assert!(right.holds([count, columns]), "a factor reaches too far");
    assert!(rows * columns <= to.len(), "the product needs more room");
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
            0.0,
            to.as_mut_ptr(),
            columns as isize,
            1,
        );
    }
}
