//! Searches of indexes against a sort in float64, on both devices, and what they
//! cost.
//!
//! The oracle reads the vectors from what `save` gives, so that it knows what
//! packing made of them; how far that is from what was added has its own test.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

mod by_example;
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../engines/mod.rs"]
mod engines;
mod files;
mod life;
mod oracle;
mod random;
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../samples/mod.rs"]
mod samples;
mod tensor_lives;
mod tensors;
