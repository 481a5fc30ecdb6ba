//! The tokenizer, held to Hugging Face's crate.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "tests count in small numbers, and fail where they are wrong"
)]

mod cases;
mod fixtures;
mod fuzz;
mod minilm;
mod models;
mod peer;
mod reading;
mod stages;
mod tables;
mod texts;
mod twins;
