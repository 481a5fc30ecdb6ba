//! The core in the browser: a WebAssembly file of the crate `framebatch` and its
//! JavaScript face, `src/wasm`, which its feature `javascript` turns on.
//!
//! This crate has no code of its own. As a crate apart, it spares everyone who depends on
//! `framebatch` the linking of a dynamic library.

#![cfg(target_arch = "wasm32")]

extern crate framebatch as _;
