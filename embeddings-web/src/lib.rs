//! What embeddings in the browser need besides the core: a WebAssembly file of
//! its own, so that other pages do not load it.
//!
//! It takes in the core's sources, not its crate, which would bring the exports
//! of its own face, a device and wgpu. It computes nothing: what it says goes to
//! the core as words.

#![cfg(target_arch = "wasm32")]

#[path = "../../src/embed/mod.rs"]
pub mod embed;
#[allow(dead_code, reason = "the core has more to fail at")]
#[path = "../../src/error.rs"]
pub mod error;
#[path = "../../src/wasm/error.rs"]
mod face_error;
#[allow(dead_code, reason = "the core does more with chains")]
#[path = "../../src/graph/mod.rs"]
pub mod graph;
#[allow(dead_code, reason = "the core does more with data")]
#[path = "../../src/tensor/mod.rs"]
pub mod tensor;

mod encoder;
mod tokenizer;
