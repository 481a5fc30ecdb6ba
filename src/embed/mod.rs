//! Text embeddings by encoders of the BERT family: a model's sizes and tensors, and the chain that
//! computes a vector from a text's tokens.
//!
//! The faces read files and parse JSON. There is no device here: the result is a chain like any
//! other.

mod activations;
mod config;
mod forward;
mod weights;

pub mod tokenizer;

pub use activations::Activations;
pub use config::{Config, Pooling};
pub use forward::{forward, forward_into, numbers};
pub use weights::{PREFIXES, Role, Weight, weights};

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
