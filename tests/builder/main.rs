//! The command builder on both engines: its values against a float64 oracle,
//! its errors, and what it shares with others.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../engines/mod.rs"]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../samples/mod.rs"]
mod samples;

mod attention;
mod bounds;
mod errors;
mod functions;
mod imports;
mod products;
mod recorded;
mod shapes;
mod sharing;
mod simulation;
mod steps;
mod steps_model;
mod storage;
mod stores;
mod tensors;
mod values;
