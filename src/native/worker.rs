//! The one thread that sends batches and settles calls.
//!
//! It waits for the device outside the lock, and copies results out of the
//! read-back there too. When to send is not decided here.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::call::Answer;
use super::outside::{block_on, thread};
use super::recovery::Recovery;
use super::shared::Shared;
use crate::batch::{Due, Millis};
use crate::device::Readback;
use crate::error::Error;
use crate::session::{Launch, Settlement};
use crate::tensor::Span;

/// Milliseconds without a new call that end a burst, and the longest burst.
const LULL_MS: f64 = 0.02;
const BURST_MS: f64 = 0.5;

/// Works until the session is closed.
pub(super) fn run(shared: &Shared, mut recovery: Recovery) {
    supervise(shared, || {
        let mut flights = VecDeque::new();
        while wait_for_work(shared) {
            recovery.look_after(shared);
            send(shared, &mut flights);
            while let Some(launch) = flights.pop_front() {
                let landed = land(shared, launch);
                if landed.outcome.is_ok() {
                    recovery.works();
                }
                // Sent first: the device computes while results are copied.
                send(shared, &mut flights);
                landed.deliver();
            }
        }
    });
}

/// Closes the session if `work` panics, so that no call waits for ever.
pub(super) fn supervise(shared: &Shared, work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        let said = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let said = said.unwrap_or("no message");
        shared.close(&Error::Fatal(format!("the worker panicked: {said}")));
    }
}

/// Sleeps until something is due; `false` once the session is closed.
fn wait_for_work(shared: &Shared) -> bool {
    let mut state = shared.lock();
    while state.closed.is_none() {
        if state.is_full() {
            state.session.flush();
        }
        let now = shared.clock.now();
        let pause = match state.session.due(now) {
            Due::Now => return true,
            Due::TaskEnd => {
                drop(state);
                let_calls_gather(shared);
                return true;
            }
            Due::At(moment) => Some(pause(now, moment)),
            Due::Idle => None,
        };
        state.asleep = true;
        state = match pause {
            None => shared
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
            Some(pause) => {
                let woken = shared.work.wait_timeout(state, pause);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.asleep = false;
    }
    false
}

/// The native end of a task: a burst of calls is over when none has come for a
/// moment. Spun, because a sleep is longer than the whole burst.
fn let_calls_gather(shared: &Shared) {
    let start = shared.clock.now();
    let (mut calls, mut last) = (0, start);
    loop {
        let now = shared.clock.now();
        let arrived = shared.arrivals.load(Ordering::Relaxed);
        if arrived != calls {
            (calls, last) = (arrived, now);
        }
        if now.0 - last.0 > LULL_MS || now.0 - start.0 > BURST_MS {
            return;
        }
        thread::yield_now();
    }
}

fn pause(now: Millis, until: Millis) -> Duration {
    Duration::from_secs_f64((until.0 - now.0).max(0.0) / 1e3)
}

/// Launches all that is due.
fn send(shared: &Shared, flights: &mut VecDeque<Launch>) {
    let mut state = shared.lock();
    loop {
        let start = shared.clock.now();
        match state.session.due(start) {
            Due::TaskEnd => state.session.flush(),
            Due::Now => {
                let Some(launch) = state.session.launch(start) else {
                    return; // The device is lost.
                };
                flights.push_back(launch);
                state.session.note_encode(shared.clock.now().0 - start.0);
            }
            Due::At(_) | Due::Idle => return,
        }
    }
}

/// Waits for a batch and takes its calls off the session.
fn land(shared: &Shared, launch: Launch) -> Landed {
    let outcome = block_on(launch.flight);
    let mut state = shared.lock();
    let settlement = state
        .session
        .settle(launch.batch, launch.generation, outcome);
    let Some(Settlement { calls, outcome }) = settlement else {
        // Closed in the meantime, which rejected the calls, or to be sent again.
        return Landed {
            answers: Vec::new(),
            outcome: Err(Error::Disposed),
        };
    };
    let answers = calls
        .into_iter()
        .filter_map(|(ticket, span)| Some((state.answers.remove(&ticket)?, span)))
        .collect();
    shared.tell_waiting(state);
    Landed { answers, outcome }
}

/// A batch that returned, its calls in submission order.
struct Landed {
    answers: Vec<(Answer, Span)>,
    outcome: Result<Readback, Error>,
}

impl Landed {
    /// Gives each call its own copy of its result, or the batch's error.
    fn deliver(self) {
        let words = self.outcome.as_ref().map(|readback| match readback {
            Readback::Host(words) => words.as_slice(),
            Readback::Mapped(mapped) => mapped.words(),
        });
        for (answer, span) in self.answers {
            let start = span.at as usize;
            let result = words.map(|words| &words[start..start + span.words as usize]);
            answer.send(result.map_err(Error::clone));
        }
    }
}
