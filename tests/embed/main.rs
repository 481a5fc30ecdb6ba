//! Embeddings on both engines: against a float64 oracle and a reference model,
//! alone and beside others, what they cost the device, and what is refused.

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
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../stall/mod.rs"]
mod stall;

mod arithmetic;
mod compute;
mod convert;
mod converted;
mod counts;
mod families;
mod files;
mod folders;
mod minilm;
mod model;
mod nearness;
mod oracle;
mod reference;
mod rerankers;
mod self_test;
mod several;
mod texts;
mod values;
