//! What embeddings in the browser need besides the core: a WebAssembly file of
//! its own, so that other pages do not load it.
//!
//! The file takes the reader of folders, the encoder and the tokenizer of the crate `framebatch`;
//! the rest of that library, device and session included, is not linked. The file computes nothing:
//! what it describes goes to the core as words.

#![cfg(target_arch = "wasm32")]

mod encoder;
mod folder;
mod pairs;
mod tokenizer;
