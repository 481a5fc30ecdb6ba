//! The deadlines of a session's calls, the next one first.
//!
//! A deadline is not taken out when its call is answered: whoever asks for passed deadlines
//! knows which calls are still pending. There is no clock here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::batch::{Millis, Ticket};

/// Deadlines of calls that are long over are forgotten when there are more than so many, and
/// than twice as many as calls are pending.
const SPARE: usize = 64;

/// Deadlines and whose they are.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// Microseconds of the session's clock, and the call.
    heap: BinaryHeap<Reverse<(u64, Ticket)>>,
}

impl Deadlines {
    /// Adds a call's deadline. Whether the deadline is the next one.
    pub(super) fn add(&mut self, ticket: Ticket, moment: Millis) -> bool {
        let moment = micros(moment);
        let is_next = self.next_micros().is_none_or(|next| moment < next);
        self.heap.push(Reverse((moment, ticket)));
        is_next
    }

    /// Forgets the deadlines of calls that are over, if there are many.
    pub(super) fn prune(&mut self, pending: usize, is_pending: impl Fn(Ticket) -> bool) {
        if self.heap.len() > 2 * pending + SPARE {
            self.heap.retain(|Reverse((_, ticket))| is_pending(*ticket));
        }
    }

    /// The next deadline.
    pub(super) fn next(&self) -> Option<Millis> {
        let next = self.next_micros()?;
        Some(Millis(next as f64 / 1e3))
    }

    /// Takes a call whose deadline has passed, if there is one.
    pub(super) fn take_passed(&mut self, now: Millis) -> Option<Ticket> {
        let next = self.next_micros()?;
        if next > micros(now) {
            return None;
        }
        self.heap.pop().map(|Reverse((_, ticket))| ticket)
    }

    fn next_micros(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((moment, _))| *moment)
    }
}

/// Whole microseconds, so that moments have an order. A moment beyond what is counted is the
/// last one.
fn micros(moment: Millis) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and no moment is negative"
    )]
    let micros = (moment.0 * 1e3) as u64;
    micros
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_pass_in_their_order_whatever_the_order_of_the_calls() {
        let mut deadlines = Deadlines::default();
        assert!(deadlines.add(Ticket(1), Millis(5.0)));
        assert!(!deadlines.add(Ticket(2), Millis(9.0)));
        assert!(deadlines.add(Ticket(3), Millis(2.5)));
        assert!(!deadlines.add(Ticket(4), Millis(f64::INFINITY)));
        assert_eq!(deadlines.next(), Some(Millis(2.5)));
        assert_eq!(deadlines.take_passed(Millis(2.4)), None);
        assert_eq!(deadlines.take_passed(Millis(5.0)), Some(Ticket(3)));
        assert_eq!(deadlines.take_passed(Millis(5.0)), Some(Ticket(1)));
        assert_eq!(deadlines.take_passed(Millis(5.0)), None);
        assert_eq!(deadlines.take_passed(Millis(1e15)), Some(Ticket(2)));
        assert_eq!(deadlines.take_passed(Millis(1e15)), None, "never");
    }

    #[test]
    fn deadlines_of_calls_that_are_over_do_not_pile_up() {
        let mut deadlines = Deadlines::default();
        for call in 0..10_000 {
            deadlines.add(Ticket(call), Millis(1e6));
            deadlines.prune(1, |ticket| ticket == Ticket(call));
            assert!(deadlines.heap.len() <= SPARE + 3);
        }
        let left = std::iter::from_fn(|| deadlines.take_passed(Millis(1e6)));
        assert_eq!(left.last(), Some(Ticket(9_999)));
    }
}
