//! Clips against the formulas of glTF 2.0 in float64, on both devices, and what
//! their calls cost.
//!
//! Values are of magnitude 1, tangents up to 2 a second and keys up to a second
//! apart; the bound is 1e-5. A quaternion whose neighbor is a right angle away is
//! left out: which way is the shorter one is decided by rounding. So is progress
//! within 1e-5 of a jump of steps.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

mod blending;
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../engines/mod.rs"]
mod engines;
mod life;
mod oracle;
mod random;
mod samplers;
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../samples/mod.rs"]
mod samples;
mod shown;
#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../stall/mod.rs"]
mod stall;
mod words;

/// How far a float may be from the oracle's.
const BOUND: f64 = 1e-5;
