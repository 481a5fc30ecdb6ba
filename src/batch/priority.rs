//! The priority of a call.
//!
//! What follows from priorities is decided in `tiers` and `turns`.

/// The priority of a call: waiting calls of a higher one go first. Calls of one priority share
/// batches, and keep their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Fills what others leave: goes while nothing else is due, in slices whose size follows
    /// from what earlier ones took. A tenth of the device's time is never refused.
    Low,
    /// By the session's policy.
    #[default]
    Normal,
    /// At once, whatever the policy: before all that waits, and past
    /// [`BatchConfig::max_in_flight`](super::BatchConfig::max_in_flight) where no other
    /// batch of high priority is in flight.
    High,
}
