//! The tokenizer, held to what Hugging Face's crate answered.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "tests count in small numbers, and fail where they are wrong"
)]

use std::path::Path;

use recorded::Peer;

mod cases;
mod fixtures;
mod fuzz;
mod minilm;
mod models;
mod pair;
mod reading;
mod recorded;
mod stages;
mod texts;
#[expect(unreachable_pub, reason = "shared with the crate that asks the peer")]
mod transcript;
mod twins;

/// The folder of the library.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
