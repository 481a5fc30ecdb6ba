//! Chains: the CPU and the generated kernels against a float64 oracle,
//! by example and at random, alone and merged.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

mod attention;
mod bounded;
mod by_example;
mod chunks;
mod codes;
mod cores;
mod cpu;
mod encoder;
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../engines/mod.rs"]
mod engines;
mod factors;
mod gpu;
mod halves;
mod hard_values;
mod matmul;
mod merging;
mod oracle;
mod random;
mod sessions;
mod shapes;
mod simulation;
mod stored;
mod under_random;
mod views;
