//! The native face of a driver: one thread that sends batches and settles calls.
//!
//! The worker waits for a GPU outside the lock, and copies results there too; the CPU share of a
//! batch is computed under the lock, as part of sending. What is done next, the driver decides.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::arrival::{Arrival, arrive, wait};
use super::calibration;
use super::compiles;
use super::delivery::{Delivery, Part};
use super::device_event::DeviceEvent;
use super::platform::{self, thread};
use super::recipient::Recipient;
use super::recovery::Opener;
use super::result_buffer::Words;
use super::shared::Shared;
use super::state::State;
use super::state_lock::Guard;
use super::supervision::supervise;
use super::watch;
use crate::batch::{BatchId, Due, Millis};
use crate::device::{Flight, Generation};
use crate::driver::{Landing, News, Work};
use crate::error::Error;
use crate::session::{Answered, Launch, Settlement};

/// Milliseconds without a new call that end a burst.
const LULL_MS: f64 = 0.02;

/// Milliseconds of the longest burst.
const BURST_MS: f64 = 0.5;

/// Seconds of the longest sleep: a day.
const LONGEST_S: f64 = 86_400.0;

/// Works until the session is closed, and then frees its devices.
pub(super) fn run(shared: &Arc<Shared>, opener: Opener) {
    supervise(shared, || work(shared, opener));
    // Whatever ended the work, the session is closed and all calls are answered.
    supervise(shared, || shared.close(&Error::Disposed));
    let devices = shared.take_devices();
    compiles::wait(shared);
    for device in devices {
        platform::free(device, shared.stall);
    }
    // A program may crash if it ends while one of its threads is in a GPU driver.
    let freeing = std::mem::take(&mut shared.lock().freeing);
    for device in freeing {
        device.wait(shared.longest_end());
    }
}

fn work(shared: &Arc<Shared>, opener: Opener) {
    let mut worker = Worker {
        adapter: calibration::begin(shared),
        shared,
        opener,
        flights: VecDeque::new(),
        deliveries: VecDeque::new(),
    };
    let mut begun = None;
    loop {
        // The next batch is sent first: the device computes it while results are copied.
        let goes_on = worker.drive();
        for delivery in worker.deliveries.drain(..) {
            let facts = delivery.facts;
            delivery.deliver(&mut begun);
            if let Some(facts) = facts {
                watch::tell_batch(shared, &facts);
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
    /// The adapter's name, by which what was measured on the adapter is kept.
    adapter: String,
    flights: VecDeque<Sent>,
    /// Answers that are still to be handed out.
    deliveries: VecDeque<Delivery>,
}

/// A chunk in flight.
struct Sent {
    batch: BatchId,
    generation: Generation,
    flight: Flight,
}

impl Worker<'_> {
    /// Does the driver's work until the driver sleeps and the worker has answers or flights on
    /// hand; without these the worker sleeps. `false` once the session is closed.
    fn drive(&mut self) -> bool {
        let shared = self.shared;
        let mut state = shared.lock();
        if self.is_idle() {
            wake(shared, &mut state);
        }
        loop {
            state = shared.expire(state);
            // Asked behind `expire`, which may have unlocked the state: of a session that is
            // closed by now nobody wakes the worker again.
            if state.closed.is_some() {
                return false;
            }
            let work = state.driver.next_by_policy(shared.clock.now());
            state = match work {
                Work::Sleep { .. } if !self.is_idle() => return true,
                Work::Sleep { until } => self.sleep(state, until),
                Work::Launch(mut launch) => {
                    if launch.has_cpu_share {
                        state.driver.compute(&mut launch, shared.clock.now());
                    }
                    self.follow(launch);
                    // What is in flight no longer waits.
                    shared.tell_waiting(state);
                    shared.lock()
                }
                Work::Settle(settlement) => {
                    self.settle(state, settlement);
                    shared.lock()
                }
                Work::Trim => {
                    state.spare.clear();
                    state
                }
                Work::EndCalibration => {
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
                Work::Answer(answered) => {
                    answer(shared, state, answered);
                    shared.lock()
                }
                other => {
                    drop(state);
                    self.work_unlocked(other);
                    shared.lock()
                }
            };
        }
    }

    /// Does work that needs no lock.
    fn work_unlocked(&mut self, work: Work) {
        let shared = self.shared;
        match work {
            Work::Gather => let_calls_gather(shared),
            Work::Tell(news) => {
                if news == News::Regained {
                    shared.mark_sound();
                }
                watch::tell_device(shared, news.into());
            }
            Work::Replace { pauses } => {
                shared.hand_over();
                watch::tell_device(shared, DeviceEvent::Lost);
                self.opener.open(shared, pauses);
            }
            Work::Look { pauses } => self.opener.open(shared, pauses),
            Work::Probe { generation, flight } => {
                let probed = arrive(shared, flight, |state, now| {
                    check_loss(state, generation, now)
                });
                if let Some(outcome) = probed {
                    let now = shared.clock.now();
                    shared.lock().driver.note_probe(&outcome, 0.0, now);
                }
            }
            _ => unreachable!("work that is done with the lock"),
        }
    }

    /// Whether the worker has neither flights to await nor answers to hand out.
    fn is_idle(&self) -> bool {
        self.flights.is_empty() && self.deliveries.is_empty()
    }

    /// Sleeps until something happens, or until this moment.
    fn sleep<'a>(&self, mut state: Guard<'a>, until: Option<Millis>) -> Guard<'a> {
        let shared = self.shared;
        let until = earlier(until, state.deadlines.next());
        let pause = until.map(|until| pause(shared.clock.now(), until));
        if pause.is_none_or(|pause| !pause.is_zero()) {
            state.asleep = true;
            state = state.sleep(&shared.state.work, pause);
            state.asleep = false;
        }
        wake(shared, &mut state);
        state
    }

    /// Takes the flights of a batch, to await them.
    fn follow(&mut self, launch: Launch) {
        let (batch, generation) = (launch.batch, launch.generation);
        let flights = launch.flights.into_iter();
        self.flights.extend(flights.map(|flight| Sent {
            batch,
            generation,
            flight,
        }));
    }

    /// Awaits a chunk, and settles its calls. What is to be sent meanwhile goes first.
    fn land(&mut self, mut sent: Sent) {
        let (shared, generation) = (self.shared, sent.generation);
        let arrival = wait(shared, &mut sent.flight, |state, now| {
            if let Some(why) = check_loss(state, generation, now) {
                return Some(Arrival::Landed(Err(why)));
            }
            let due = state.driver.session.due(now);
            matches!(due, Due::Now | Due::TaskEnd).then_some(Arrival::Interrupted)
        });
        let outcome = match arrival {
            Arrival::Landed(outcome) => outcome,
            Arrival::Closed => return, // That rejects the calls.
            Arrival::Interrupted => return self.flights.push_front(sent),
        };
        let mut state = shared.lock();
        let landing = Landing {
            batch: sent.batch,
            generation,
            outcome,
        };
        let settlement = state.driver.settle(landing, shared.clock.now());
        if state.driver.session.take_retuned() {
            calibration::remember(&state, &self.adapter);
        }
        let Some(mut settlement) = settlement else {
            // The session was closed meanwhile, or the chunk is sent again.
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

    /// Takes the answers of a chunk, to be handed out when nothing is to be sent.
    fn settle(&mut self, mut state: Guard<'_>, settlement: Settlement) {
        let Settlement {
            answers, outcome, ..
        } = settlement;
        if let Err(error) = &outcome {
            for part in &answers {
                state.note_failed(part.ticket, error);
            }
        }
        let State {
            answers: callers,
            spare,
            ..
        } = &mut *state;
        let parts = answers.into_iter().map(|part| {
            let begins = part.at == 0 && outcome.is_ok();
            let caller = callers.get_mut(&part.ticket).filter(|_| begins);
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
        self.deliveries.push_back(Delivery {
            parts,
            outcome,
            facts,
        });
    }
}

/// Frees released tensors, and tells the driver that the worker has nothing on hand.
fn wake(shared: &Shared, state: &mut State) {
    state.driver.session.free_released();
    state.driver.wake(shared.clock.now());
}

/// The error of a flight whose device is lost or stalls, if it is.
fn check_loss(state: &mut State, generation: Generation, now: Millis) -> Option<Error> {
    state.driver.check_stall(now);
    let is_gone = state.driver.is_gone(generation);
    is_gone.then(|| Error::DeviceLost("it is gone, or answered nothing for too long".into()))
}

/// Waits until no call has come for a moment, so that the calls of a burst share a batch. The
/// thread spins, because a sleep would be longer than the whole burst.
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

/// The earlier of two moments that there may be.
fn earlier(a: Option<Millis>, b: Option<Millis>) -> Option<Millis> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Millis(a.0.min(b.0))),
        (a, b) => a.or(b),
    }
}

/// How long to sleep until a moment, at most a day: a wait without an end is longer than a clock
/// can count, and a worker that wakes too early sleeps again.
fn pause(now: Millis, until: Millis) -> Duration {
    Duration::from_secs_f64(((until.0 - now.0) / 1e3).clamp(0.0, LONGEST_S))
}

/// Answers tickets that wait for no words.
fn answer(shared: &Shared, mut state: Guard<'_>, answered: Answered) {
    let Answered { tickets, outcome } = answered;
    let mut over = Vec::new();
    for ticket in &tickets {
        match &outcome {
            Ok(()) => over.extend(state.note_written(*ticket)),
            Err(error) => state.note_failed(*ticket, error),
        }
    }
    let known = tickets.iter().map(|ticket| state.answers.remove(ticket));
    let callers: Vec<Recipient> = known.flatten().collect();
    shared.tell_waiting(state);
    drop(over);
    for caller in callers {
        let outcome = outcome.clone();
        caller.send(outcome.map(|()| Words::Floats(Vec::new())));
    }
}
