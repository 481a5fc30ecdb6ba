//! The one thread that sends batches and settles calls: it does what the driver says.
//!
//! It waits for a GPU outside the lock, and copies results out of the read-back
//! there too; what the processor has of a batch is computed under it, as part of
//! sending. When to send is not decided here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::arrival::arrive;
use super::calibration;
use super::compiles;
use super::delivery::{Landed, Part};
use super::platform::{self, thread};
use super::recovery::Opener;
use super::result_buffer::Words;
use super::shared::Shared;
use super::state::State;
use super::state_lock::Guard;
use super::supervision::supervise;
use super::watch;
use crate::batch::{BatchId, Millis, Ticket};
use crate::device::{Flight, Generation};
use crate::driver::{Landing, News, Work};
use crate::error::Error;
use crate::session::{Launch, Settlement};

/// Milliseconds without a new call that end a burst, and the longest burst.
const LULL_MS: f64 = 0.02;
const BURST_MS: f64 = 0.5;

/// Seconds of the longest sleep: a day.
const LONGEST_S: f64 = 86_400.0;

/// Works until the session is closed, and frees its device then.
pub(super) fn run(shared: &Arc<Shared>, opener: Opener) {
    supervise(shared, || work(shared, opener));
    // Whatever ended the work, each call is told, and what is broken is closed.
    supervise(shared, || shared.close(&Error::Disposed));
    let devices = shared.take_devices();
    compiles::wait(shared);
    for device in devices {
        platform::free(device, shared.stall);
    }
    // A program that ends while a thread of it is in a GPU driver may end badly.
    let freeing = std::mem::take(&mut shared.lock().freeing);
    for device in freeing {
        device.wait(shared.stall);
    }
}

fn work(shared: &Arc<Shared>, opener: Opener) {
    let mut worker = Worker {
        adapter: calibration::begin(shared),
        shared,
        opener,
        flights: VecDeque::new(),
        landed: VecDeque::new(),
    };
    let mut begun = None;
    loop {
        // Sent first: the device computes while results are copied.
        let goes_on = worker.drive();
        for landed in worker.landed.drain(..) {
            let facts = landed.facts;
            landed.deliver(&mut begun);
            if let Some(facts) = facts {
                watch::tell(shared, &facts);
            }
        }
        if !goes_on {
            break;
        }
        if let Some(sent) = worker.flights.pop_front() {
            worker.land(sent);
        }
    }
    worker.opener.join(shared.stall);
}

/// What the worker has on hand.
struct Worker<'a> {
    shared: &'a Arc<Shared>,
    opener: Opener,
    /// What the model is remembered by.
    adapter: String,
    flights: VecDeque<Sent>,
    /// Answers that are still to be handed out.
    landed: VecDeque<Landed>,
}

/// A chunk of a batch on its way.
struct Sent {
    batch: BatchId,
    generation: Generation,
    flight: Flight,
}

impl Worker<'_> {
    /// Does what is due, and sleeps as long as there is nothing on hand either; `false`
    /// once the session is closed.
    fn drive(&mut self) -> bool {
        let shared = self.shared;
        let mut state = shared.lock();
        if self.is_idle() {
            wake(shared, &mut state);
        }
        while state.closed.is_none() {
            let work = state.driver.next_by_policy(shared.clock.now());
            state = match work {
                Work::Sleep { .. } if !self.is_idle() => return true,
                Work::Sleep { until } => self.sleep(state, until),
                Work::Launch(mut launch) => {
                    if launch.has_cpu_share {
                        state.driver.compute(&mut launch, shared.clock.now());
                    }
                    self.follow(launch);
                    state
                }
                Work::Settle(settlement) => {
                    self.settle(state, settlement);
                    shared.lock()
                }
                Work::Trim => {
                    state.spare.clear();
                    state
                }
                Work::Calibrated => {
                    calibration::remember(&state, &self.adapter);
                    state
                }
                Work::Compile {
                    generation,
                    compiles,
                } => {
                    let compilers = state.compiles.add(generation, compiles);
                    drop(state);
                    compiles::start(shared, generation, compilers);
                    shared.lock()
                }
                Work::Answer { ticket, outcome } => {
                    answer(state, ticket, outcome);
                    shared.lock()
                }
                other => {
                    drop(state);
                    self.work_unlocked(other);
                    shared.lock()
                }
            };
        }
        false
    }

    /// What is to be done without the lock.
    fn work_unlocked(&mut self, work: Work) {
        let shared = self.shared;
        match work {
            Work::Gather => let_calls_gather(shared),
            Work::Tell(News::Regained) => shared.recovered(),
            Work::Replace { pauses } => {
                shared.hand_over();
                self.opener.open(shared, pauses);
            }
            Work::Look { pauses } => self.opener.open(shared, pauses),
            Work::Sample { generation, flight } => {
                let sampled = arrive(shared, flight, |state, now| gone(state, generation, now));
                if let Some(outcome) = sampled {
                    let now = shared.clock.now();
                    shared.lock().driver.sampled(&outcome, now);
                }
            }
            // Nobody is told how a batch was answered.
            _ => {}
        }
    }

    /// Whether nothing is on its way and nothing to be handed out.
    fn is_idle(&self) -> bool {
        self.flights.is_empty() && self.landed.is_empty()
    }

    /// Sleeps until something happens, at most until this moment.
    fn sleep<'a>(&self, mut state: Guard<'a>, until: Option<Millis>) -> Guard<'a> {
        let shared = self.shared;
        let pause = until.map(|until| pause(shared.clock.now(), until));
        if pause.is_none_or(|pause| !pause.is_zero()) {
            state.asleep = true;
            state = state.sleep(&shared.state.work, pause);
            state.asleep = false;
        }
        wake(shared, &mut state);
        state
    }

    /// Takes the flights of a batch.
    fn follow(&mut self, launch: Launch) {
        let (batch, generation) = (launch.batch, launch.generation);
        let flights = launch.flights.into_iter();
        self.flights.extend(flights.map(|flight| Sent {
            batch,
            generation,
            flight,
        }));
    }

    /// Waits for a chunk and takes the calls that it completes off the session.
    fn land(&mut self, sent: Sent) {
        let (shared, generation) = (self.shared, sent.generation);
        let arrived = arrive(shared, sent.flight, |state, now| {
            gone(state, generation, now)
        });
        let Some(outcome) = arrived else {
            return; // Closed, which rejects the calls.
        };
        let mut state = shared.lock();
        let landing = Landing {
            batch: sent.batch,
            generation,
            outcome,
        };
        let settlement = state.driver.landed(landing, shared.clock.now());
        let Some(mut settlement) = settlement else {
            // Closed in the meantime, or to be sent again.
            return;
        };
        let next = std::mem::take(&mut settlement.next);
        self.settle(state, settlement);
        self.flights.extend(next.into_iter().map(|flight| Sent {
            batch: sent.batch,
            generation,
            flight,
        }));
    }

    /// Takes calls that are answered off the session, to be told when nothing is to be sent.
    fn settle(&mut self, mut state: Guard<'_>, settlement: Settlement) {
        let Settlement {
            answers, outcome, ..
        } = settlement;
        let State {
            answers: callers,
            spare,
            ..
        } = &mut *state;
        let parts = answers.into_iter().map(|part| {
            let begins = part.at == 0 && outcome.is_ok();
            let caller = callers.get(&part.ticket).filter(|_| begins);
            Part {
                begun: caller.map(|caller| caller.words(spare, part.total)),
                caller: match part.is_last() || outcome.is_err() {
                    true => callers.remove(&part.ticket),
                    false => None,
                },
                answer: part,
            }
        });
        let parts = parts.collect();
        let facts = state.driver.session.take_facts();
        self.shared.tell_waiting(state);
        self.landed.push_back(Landed {
            parts,
            outcome,
            facts,
        });
    }
}

/// The worker has nothing on hand.
fn wake(shared: &Shared, state: &mut State) {
    state.driver.session.free_released();
    state.driver.wake(shared.clock.now());
}

/// Why nothing more comes of a device of this life, if nothing does.
fn gone(state: &mut State, generation: Generation, now: Millis) -> Option<Error> {
    state.driver.look(now);
    let is_gone = state.driver.is_gone(generation);
    is_gone.then(|| Error::DeviceLost("it is gone, or answered nothing for too long".into()))
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

/// How long to sleep. Who wakes too early looks again, so what is longer than a clock
/// can count, as a wait without an end is, is cut.
fn pause(now: Millis, until: Millis) -> Duration {
    Duration::from_secs_f64(((until.0 - now.0) / 1e3).clamp(0.0, LONGEST_S))
}

/// Answers somebody who waits for no words.
fn answer(mut state: Guard<'_>, ticket: Ticket, outcome: Result<(), Error>) {
    let caller = state.answers.remove(&ticket);
    drop(state);
    if let Some(caller) = caller {
        caller.send(outcome.map(|()| Words::Floats(Vec::new())));
    }
}
