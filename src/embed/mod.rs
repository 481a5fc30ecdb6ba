//! Text embeddings by BERT-family encoders: what a model is, which tensors it
//! needs, and what is computed of a text's tokens.
//!
//! It reads no files and parses no JSON, the faces do; it has no device either:
//! what comes out is a chain like any other.

mod config;
mod forward;
mod weights;

pub mod tokenizer;

pub use config::{Config, Pooling};
pub use forward::{forward, numbers};
pub use weights::{PREFIXES, Role, Weight, weights};

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
