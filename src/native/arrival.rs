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

/// How a wait for a flight ended.
pub(super) enum Arrival {
    /// With the flight's outcome, or because there will be none.
    Landed(Result<Readback, Error>),
    /// The session is closed: nobody waits for an answer.
    Closed,
    /// There is something to do before the flight lands.
    Interrupted,
}

/// Waits for a flight, or until `ends` has a reason to wait no more.
pub(super) fn wait(
    shared: &Shared,
    flight: &mut Flight,
    ends: impl Fn(&mut State, Millis) -> Option<Arrival>,
) -> Arrival {
    // Each poll of a GPU's flight blocks for a moment in a look at the GPU.
    block_on(poll_fn(|context| {
        if let Poll::Ready(outcome) = flight.as_mut().poll(context) {
            return Poll::Ready(Arrival::Landed(outcome));
        }
        let mut state = shared.expire(shared.lock());
        if state.closed.is_some() {
            return Poll::Ready(Arrival::Closed);
        }
        state.driver.session.free_released();
        let end = ends(&mut state, shared.clock.now());
        end.map_or(Poll::Pending, Poll::Ready)
    }))
}

/// Waits for a flight, or until `gone` has a reason to wait no more. `None` once the session is
/// closed, because then nobody waits for an answer.
pub(super) fn arrive(
    shared: &Shared,
    mut flight: Flight,
    gone: impl Fn(&mut State, Millis) -> Option<Error>,
) -> Option<Result<Readback, Error>> {
    let ends = |state: &mut State, now| gone(state, now).map(|why| Arrival::Landed(Err(why)));
    match wait(shared, &mut flight, ends) {
        Arrival::Landed(outcome) => Some(outcome),
        Arrival::Closed | Arrival::Interrupted => None,
    }
}
