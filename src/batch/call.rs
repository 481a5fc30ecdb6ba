//! One call: its number, what it weighs, and whether somebody still waits for it.
//!
//! What it computes is the caller's matter.

/// A call's number. Numbers rise and are not reused while a call is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u32);

impl Ticket {
    /// Whether a call is older than another, both pending: numbers may wrap, the
    /// distance between two that are pending does not.
    pub fn is_before(self, other: Ticket) -> bool {
        let distance = other.0.wrapping_sub(self.0);
        distance != 0 && distance <= u32::MAX / 2
    }
}

/// What a call weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Items, as the op counts them.
    pub items: u64,
    /// What it takes of [`BatchConfig::max_batch_cost`](super::BatchConfig::max_batch_cost), as the op counts it.
    pub cost: u64,
    /// Bytes of operands and results.
    pub bytes: u64,
    /// Calls of one key may take each other's place.
    pub key: Option<u32>,
}

/// One call, from the moment it is accepted to the moment it is answered.
#[derive(Clone, Copy, Debug)]
pub struct Call<W> {
    /// Its number.
    pub ticket: Ticket,
    /// What it weighs.
    pub request: Request,
    /// Whether somebody waits for its answer: it was neither given up nor answered.
    pub is_live: bool,
    /// What it computes.
    pub work: W,
}
