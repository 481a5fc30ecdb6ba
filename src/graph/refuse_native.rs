//! What is wrong with a chain, in words.

use crate::error::Error;

pub(super) fn refuse(sentence: impl FnOnce() -> String) -> Error {
    Error::InvalidInput(sentence())
}
