//! The operands of a call, as the kernels' twins read them.

use crate::kernel::MAX_OPERANDS;

/// One operand of one call.
#[derive(Clone, Copy, Debug)]
pub(in crate::device::cpu) enum Values<'a> {
    /// The rows' words, end to end.
    Rows(&'a [u32]),
    /// One word for the whole call.
    Scalar(u32),
}

/// All operands of one call.
pub(in crate::device::cpu) type Operands<'a> = [Values<'a>; MAX_OPERANDS];

impl<'a> Values<'a> {
    pub(super) fn words(&self) -> &'a [u32] {
        match self {
            Values::Rows(words) => words,
            Values::Scalar(_) => &[],
        }
    }

    pub(super) fn floats(&self) -> &'a [f32] {
        bytemuck::cast_slice(self.words())
    }

    pub(super) fn layers(&self) -> &'a [u8] {
        bytemuck::cast_slice(self.words())
    }

    /// The value for a row.
    pub(super) fn word(&self, row: usize) -> u32 {
        match self {
            Values::Rows(words) => words[row],
            Values::Scalar(word) => *word,
        }
    }
}
