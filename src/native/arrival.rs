//! Waiting for a device's answer.
//!
//! The caller says for what reasons waiting ends without one.

use std::future::poll_fn;
use std::task::Poll;

use super::platform::block_on;
use super::shared::Shared;
use super::state::State;
use crate::batch::Millis;
use crate::device::{Flight, Readback};
use crate::error::Error;

/// Waits for a flight, or until `gone` has a reason to wait no more. `None` once the session is
/// closed, because then nobody waits for an answer.
pub(super) fn arrive(
    shared: &Shared,
    mut flight: Flight,
    gone: impl Fn(&mut State, Millis) -> Option<Error>,
) -> Option<Result<Readback, Error>> {
    // Each poll of a GPU's flight blocks for a moment in a look at the GPU.
    block_on(poll_fn(|context| {
        if let Poll::Ready(outcome) = flight.as_mut().poll(context) {
            return Poll::Ready(Some(outcome));
        }
        let mut state = shared.expire(shared.lock());
        if state.closed.is_some() {
            return Poll::Ready(None);
        }
        state.driver.session.free_released();
        let why = gone(&mut state, shared.clock.now());
        why.map_or(Poll::Pending, |why| Poll::Ready(Some(Err(why))))
    }))
}
