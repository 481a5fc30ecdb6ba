//! The one thread that sends batches and settles calls.
//!
//! It waits for the device outside the lock, and copies results out of the
//! read-back there too. When to send is not decided here.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::call::Answer;
use super::outside::{block_on, thread};
use super::recovery::Recovery;
use super::shared::Shared;
use super::watch;
use crate::batch::{BatchId, Due, Millis};
use crate::device::{Compile, Flight, Generation, Readback};
use crate::error::Error;
use crate::session::{self, Facts, Launch, Settlement};

/// Milliseconds without a new call that end a burst, and the longest burst.
const LULL_MS: f64 = 0.02;
const BURST_MS: f64 = 0.5;

/// Works until the session is closed.
pub(super) fn run(shared: &Arc<Shared>, mut recovery: Recovery) {
    supervise(shared, || {
        let mut flights = VecDeque::new();
        let mut begun = Begun::default();
        while wait_for_work(shared) {
            recovery.look_after(shared);
            send(shared, &mut flights);
            while let Some(piece) = flights.pop_front() {
                let landed = land(shared, piece);
                if landed.outcome.is_ok() {
                    recovery.works();
                }
                // Sent first: the device computes while results are copied.
                send(shared, &mut flights);
                let facts = landed.facts;
                landed.deliver(&mut begun);
                if let Some(facts) = facts {
                    watch::tell(shared, &facts);
                }
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

/// A piece of a batch on its way.
struct Sent {
    batch: BatchId,
    generation: Generation,
    flight: Flight,
}

/// Launches all that is due.
fn send(shared: &Arc<Shared>, flights: &mut VecDeque<Sent>) {
    answer_warmups(shared);
    launch(shared, flights);
    let mut state = shared.lock();
    let (works, generation) = (state.session.compiles(), state.session.generation());
    drop(state);
    if !works.is_empty() {
        let shared = Arc::clone(shared);
        thread::spawn(move || supervise(&shared, || compile(&shared, generation, works)));
    }
}

fn answer_warmups(shared: &Shared) {
    loop {
        let mut state = shared.lock();
        let Some((ticket, outcome)) = state.session.warmed() else {
            return;
        };
        let caller = state.answers.remove(&ticket);
        drop(state);
        if let Some(caller) = caller {
            caller.send(outcome.map(|()| Cow::Borrowed(&[][..])));
        }
    }
}

/// Compiles kernels, and tells the worker of each. On a thread of its own, for
/// drivers take their time.
fn compile(shared: &Shared, generation: Generation, works: Vec<Compile>) {
    for work in works {
        let compiled = block_on(work);
        let mut state = shared.lock();
        if state.closed.is_some() {
            return;
        }
        let now = shared.clock.now();
        state.session.compiled(generation, compiled, now);
        drop(state);
        shared.work.notify_one();
    }
}

fn launch(shared: &Shared, flights: &mut VecDeque<Sent>) {
    let mut state = shared.lock();
    loop {
        let start = shared.clock.now();
        match state.session.due(start) {
            Due::TaskEnd => state.session.flush(),
            Due::Now => {
                let Some(launch) = state.session.launch(start) else {
                    return; // The device is lost.
                };
                let Launch {
                    batch, generation, ..
                } = launch;
                flights.extend(launch.flights.into_iter().map(|flight| Sent {
                    batch,
                    generation,
                    flight,
                }));
                state.session.note_encode(shared.clock.now().0 - start.0);
            }
            Due::At(_) | Due::Idle => return,
        }
    }
}

/// Waits for a piece and takes the calls that it completes off the session.
fn land(shared: &Shared, sent: Sent) -> Landed {
    let outcome = block_on(sent.flight);
    let mut state = shared.lock();
    let settlement = state.session.settle(sent.batch, sent.generation, outcome);
    let Some(Settlement {
        answers, outcome, ..
    }) = settlement
    else {
        // Closed in the meantime, which rejected the calls, or to be sent again.
        return Landed {
            parts: Vec::new(),
            outcome: Err(Error::Disposed),
            facts: None,
        };
    };
    let is_done = |part: &session::Answer| part.is_last() || outcome.is_err();
    let parts = answers
        .into_iter()
        .map(|part| {
            let caller = is_done(&part).then(|| state.answers.remove(&part.ticket));
            (part, caller.flatten())
        })
        .collect();
    let facts = state.session.take_facts();
    shared.tell_waiting(state);
    Landed {
        parts,
        outcome,
        facts,
    }
}

/// A piece that returned, its calls in submission order.
struct Landed {
    /// What there is for each call, and who waits for it where that is all.
    parts: Vec<(session::Answer, Option<Answer>)>,
    outcome: Result<Readback, Error>,
    /// What the batch was, with its last piece, if anybody listens.
    facts: Option<Facts>,
}

/// The result of a call of which not all pieces are back. There is one at most,
/// because pieces arrive in order and only their ends are cut.
#[derive(Default)]
struct Begun {
    words: Vec<u32>,
}

impl Begun {
    fn add(&mut self, part: &session::Answer, words: &[u32]) {
        if part.at == 0 {
            // Whatever was begun before was given up, failed or is sent again.
            self.words = Vec::with_capacity(part.total as usize);
        }
        self.words.extend_from_slice(words);
    }
}

impl Landed {
    /// Gives each call its own copy of its result, or the piece's error.
    fn deliver(self, begun: &mut Begun) {
        let words = match &self.outcome {
            Ok(Readback::Host(words)) => words,
            Ok(Readback::Mapped(mapped)) => mapped.words(),
            Err(error) => {
                let callers = self.parts.into_iter().filter_map(|(_, caller)| caller);
                return callers.for_each(|caller| caller.send(Err(error.clone())));
            }
        };
        for (part, caller) in self.parts {
            let start = part.span.at as usize;
            let words = &words[start..start + part.span.words as usize];
            let result = if part.is_whole() {
                Cow::Borrowed(words)
            } else {
                begun.add(&part, words);
                if !part.is_last() {
                    continue;
                }
                Cow::Owned(std::mem::take(&mut begun.words))
            };
            if let Some(caller) = caller {
                caller.send(Ok(result));
            }
        }
    }
}
