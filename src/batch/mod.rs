//! Decides WHEN a batch is sent, and which calls are in it.
//!
//! Holds tickets and numbers only. It has no clock, no futures, no memory and
//! no GPU: the caller passes `now` in and acts on what comes out.

mod aside;
mod batcher;
mod budget;
mod calls;
mod config;
mod room;

pub use batcher::{Accepted, Batcher, Due};
pub use budget::MemoryBudget;
pub use calls::{Batch, BatchId, Request, Ticket};
pub use config::{BatchConfig, Capacity, Millis, Overflow, Policy, Preset};

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
