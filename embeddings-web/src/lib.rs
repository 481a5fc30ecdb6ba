//! What embeddings in the browser need besides the core: a WebAssembly file of
//! its own, so that other pages do not load it.
//!
//! It takes the encoder and the tokenizer of the crate `framebatch`; what else that
//! library holds, device and session included, is not linked. It computes nothing:
//! what it says goes to the core as words.

#![cfg(target_arch = "wasm32")]

mod encoder;
mod tokenizer;
