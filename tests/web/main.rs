//! The core on the browser's own WebGPU, run by wasm-pack in headless Chrome.
//!
//! Promises, frames and the package are not here: `tests/e2e` has those.

#![cfg(target_arch = "wasm32")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]

mod batches;
mod conformance;
mod memory;
#[path = "../oracle/mod.rs"]
mod oracle;
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../samples/mod.rs"]
mod samples;
mod session;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);
