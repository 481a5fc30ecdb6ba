//! What is wrong with a chain, in a word: TypeScript said the sentence where the
//! operation was recorded, and what it lets pass is its own mistake. A second copy
//! of every sentence would cost the package a hundredth.

use crate::error::Error;

pub(super) fn refuse(_: impl FnOnce() -> String) -> Error {
    refused()
}

#[inline(never)]
fn refused() -> Error {
    Error::InvalidInput("a chain is not one that tensors record".into())
}
