//! Decides WHEN a batch is sent, and which calls are in it.
//!
//! The queue owns every batch, from its first call to its last answer, and each batch
//! owns its calls and a payload of the caller's. What calls compute and what a payload
//! holds is not known here. The queue has no clock, no futures, no memory and no GPU:
//! the caller passes `now` in and acts on what comes out.

mod backpressure;
mod budget;
mod call;
mod calls;
mod config;
mod due;
mod in_flight;
mod parked;
mod priority;
mod queue;
mod restoration;
mod slices;
mod tiers;
mod turns;

pub use budget::MemoryBudget;
pub use call::{Call, Request, Ticket};
pub use calls::{Batch, BatchId};
pub use config::{BatchConfig, Capacity, Millis, Overflow, Policy, Preset};
pub use due::{Due, FRAME_MS};
pub use in_flight::InFlight;
pub use priority::Priority;
pub use queue::{Accepted, Admission, Queue};
pub use tiers::Order;
pub use turns::LowWork;

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
