//! Encoders of texts: what a model's folder says, the model's tensors, and the chain that computes
//! a vector, or the score of a pair, from tokens.
//!
//! The faces read files. There is no device here: the result is a chain like any other.

mod activations;
mod attention;
mod config;
mod fidelity;
mod forward;
mod names;
mod pass;
mod per_layer;
mod positions;
mod stages;
mod validate;
mod weights;

pub mod folder;
pub mod json;
pub mod tokenizer;

pub use activations::Activations;
pub use config::{
    Activation, Bias, Biases, Config, Dense, DistanceBias, Family, Gate, HeadNorms, Heads, Near,
    NormKind, NormPlace, Norms, Pooling, Rotation, Sight, Source,
};
pub use fidelity::{MOST_TOKENS, TEXTS, check_arithmetic, check_fidelity, cosine, drawn_ids};
pub use forward::{Tokens, forward, forward_into, numbers};
pub use stages::Stage;
pub use weights::{Part, Role, Weight, prefixes, weights};

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
