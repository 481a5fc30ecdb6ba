//! The error of a chain that is refused, natively: a sentence that says what is wrong.

use crate::error::Error;

pub(super) fn refuse(sentence: impl FnOnce() -> String) -> Error {
    Error::InvalidInput(sentence())
}
