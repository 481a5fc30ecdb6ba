//! One call: its number, its weight, and whether somebody still waits for it.
//!
//! What a call computes is the caller's matter.

/// A call's number. Numbers rise and are not reused while a call is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u32);

impl Ticket {
    /// Whether a call is older than another one, both pending: numbers may wrap, the
    /// distance between the numbers of pending calls does not.
    pub fn is_before(self, other: Ticket) -> bool {
        let distance = other.0.wrapping_sub(self.0);
        distance != 0 && distance <= u32::MAX / 2
    }
}

/// The weight of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// How many items the call has, as its op counts them.
    pub items: u64,
    /// What the call takes of
    /// [`BatchConfig::max_batch_cost`](super::BatchConfig::max_batch_cost), as its op
    /// counts it.
    pub cost: u64,
    /// Bytes of operands and results.
    pub bytes: u64,
    /// Calls of one key may take each other's place.
    pub key: Option<u32>,
}

/// One call, from the moment it is accepted to the moment it is answered.
#[derive(Clone, Copy, Debug)]
pub struct Call<W> {
    /// The call's number.
    pub ticket: Ticket,
    /// The call's weight.
    pub request: Request,
    /// Whether somebody waits for the answer: the call was neither given up nor answered.
    pub is_live: bool,
    /// What the call computes.
    pub work: W,
}
