//! The error of a chain that is refused, in the browser: one message for all. TypeScript refuses
//! the same chains with a sentence where an operation is recorded, so that none arrives here;
//! a second copy of every sentence would make the package a hundredth larger.

use crate::error::Error;

pub(super) fn refuse(_: impl FnOnce() -> String) -> Error {
    refused()
}

#[inline(never)]
fn refused() -> Error {
    Error::InvalidInput("a chain is not one that tensors record".into())
}
