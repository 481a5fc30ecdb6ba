//! The one thread that sends batches and settles calls.
//!
//! It waits for a GPU outside the lock, and copies results out of the read-back
//! there too; what the processor has of a batch is computed under it, as part of
//! sending. When to send is not decided here.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use super::calibration::Calibration;
use super::call::Answer;
use super::outside::{self, block_on, spawn, thread};
use super::recovery::Recovery;
use super::shared::{Shared, State};
use super::watch;
use super::words::Words;
use crate::batch::{BatchId, Due, Millis};
use crate::device::{Flight, Generation, Readback};
use crate::error::Error;
use crate::session::{self, Facts, Launch, Settlement};

/// Milliseconds without a new call that end a burst, and the longest burst.
const LULL_MS: f64 = 0.02;
const BURST_MS: f64 = 0.5;

/// Milliseconds without a batch after which memory that is kept for the next is freed.
const IDLE_MS: f64 = 2000.0;

/// Seconds of the longest sleep: a day.
const LONGEST_S: f64 = 86_400.0;

/// Works until the session is closed, and frees its device then.
pub(super) fn run(shared: &Arc<Shared>, recovery: Recovery) {
    supervise(shared, || work(shared, recovery));
    // Whatever ended the work, each call is told, and what is broken is closed.
    supervise(shared, || shared.close(&Error::Disposed));
    let devices = shared.take_devices();
    wait_for_compilers(shared);
    for device in devices {
        outside::free(device, shared.stall);
    }
    // A program that ends while a thread of it is in a driver may end badly.
    let freeing = std::mem::take(&mut shared.lock().freeing);
    for device in freeing {
        device.wait(shared.stall);
    }
}

fn work(shared: &Arc<Shared>, mut recovery: Recovery) {
    let mut flights = VecDeque::new();
    let mut begun = None;
    let mut calibration = Calibration::new(shared);
    while wait_for_work(shared, &mut calibration) {
        recovery.look_after(shared);
        send(shared, &mut flights);
        while let Some(piece) = flights.pop_front() {
            let mut landed = land(shared, piece);
            flights.extend(landed.next.drain(..));
            if landed.outcome.is_ok() {
                calibration.answered(shared);
            }
            // Here too: while the processor has work, this loop may never end.
            recovery.look_after(shared);
            // Sent first: the device computes while results are copied.
            send(shared, &mut flights);
            let facts = landed.facts;
            landed.deliver(&mut begun);
            if let Some(facts) = facts {
                watch::tell(shared, &facts);
            }
        }
    }
    recovery.join(shared.stall);
}

/// How work came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    WithItsWork,
    InPanic,
}

/// Closes the session if `work` panics, so that no call waits for ever.
pub(super) fn supervise(shared: &Shared, work: impl FnOnce()) -> Ended {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        let said = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let said = said.unwrap_or("no message");
        shared.close(&Error::Fatal(format!("the worker panicked: {said}")));
        return Ended::InPanic;
    }
    Ended::WithItsWork
}

/// Sleeps until something is due; `false` once the session is closed.
fn wait_for_work(shared: &Shared, calibration: &mut Calibration) -> bool {
    let mut idle = None;
    let mut state = shared.lock();
    while state.closed.is_none() {
        state.session.free_released();
        if state.is_full() {
            state.session.flush();
        }
        let now = shared.clock.now();
        let stalls = stalls_at(shared, &state);
        if stalls.is_some_and(|stalls| stalls <= now) {
            let generation = state.session.generation();
            state.session.lose(generation);
        }
        let next_look = state.session.next_look();
        if state.session.is_unheard() || next_look.is_some_and(|moment| moment <= now) {
            return true; // Somebody is to look for a device.
        }
        let pause = match state.session.due(now) {
            Due::Now => return true,
            Due::TaskEnd => {
                drop(state);
                let_calls_gather(shared);
                return true;
            }
            Due::At(moment) => Some(pause(now, moment)),
            Due::Idle if calibration.is_running() => {
                state = calibration.step(shared, state);
                continue;
            }
            Due::Idle if state.session.may_trim() => {
                let until = *idle.get_or_insert(Millis(now.0 + IDLE_MS));
                if until <= now {
                    state.session.trim();
                    state.spare.clear();
                    continue;
                }
                Some(pause(now, until))
            }
            Due::Idle => None,
        };
        let moments = [next_look, stalls].into_iter().flatten();
        let pauses = moments.map(|moment| self::pause(now, moment));
        let pause = pauses.chain(pause).min();
        state.asleep = true;
        state = state.sleep(&shared.work, pause);
        state.asleep = false;
    }
    false
}

/// When what the device owes, a kernel that is being compiled for it included, will have
/// taken too long.
fn stalls_at(shared: &Shared, state: &State) -> Option<Millis> {
    if state.session.is_lost() {
        return None; // It owes nothing any more.
    }
    let oldest = state.session.oldest_in_flight()?;
    Some(Millis(oldest.0 + shared.stall.as_secs_f64() * 1e3))
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
    if works.is_empty() {
        return;
    }
    let compilers = state.compiles.add(generation, works);
    drop(state);
    for _ in 0..compilers {
        let own = Arc::clone(shared);
        let job = move || {
            if supervise(&own, || compile(&own, generation)) == Ended::InPanic {
                own.lock().compiles.give_up(generation);
                own.work.notify_all();
            }
        };
        if let Err(error) = spawn(job) {
            shared.close(&error);
        }
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
            caller.send(outcome.map(|()| Words::Floats(Vec::new())));
        }
    }
}

/// Compiles kernels as long as there are some, and tells the worker of each. On a thread
/// of its own, for drivers take their time.
fn compile(shared: &Shared, generation: Generation) {
    loop {
        let next = shared.lock().compiles.next(generation);
        let Some(work) = next else {
            shared.work.notify_all();
            return;
        };
        let compiled = block_on(work);
        let mut state = shared.lock();
        if state.closed.is_none() {
            let now = shared.clock.now();
            state.session.compiled(generation, compiled, now);
            drop(state);
            shared.work.notify_one();
        }
    }
}

/// Waits until no kernel is being compiled for the device, which its compilers use. One that
/// takes longer than a device may keeps it until it is done.
fn wait_for_compilers(shared: &Shared) {
    let start = shared.clock.now();
    let mut state = shared.lock();
    let waiting = state.compiles.clear();
    while state.compiles.is_at_work() {
        let waited = shared.clock.now().0 - start.0;
        let waited = Duration::from_secs_f64(waited.max(0.0) / 1e3);
        let Some(left) = shared.stall.checked_sub(waited) else {
            break;
        };
        state = state.sleep(&shared.work, Some(left));
    }
    drop(state);
    drop(waiting);
}

fn launch(shared: &Shared, flights: &mut VecDeque<Sent>) {
    let mut state = shared.lock();
    loop {
        let start = shared.clock.now();
        if state.session.take_over(start) {
            shared.recovered();
        }
        match state.session.due(start) {
            Due::TaskEnd => state.session.flush(),
            Due::Now => {
                let Some(launch) = state.session.launch(start) else {
                    return; // The device is lost.
                };
                let encoded = shared.clock.now();
                state.session.note_encode(encoded.0 - start.0);
                let Launch {
                    batch,
                    generation,
                    is_parted,
                    flights: own,
                } = launch;
                let sent = |flight| Sent {
                    batch,
                    generation,
                    flight,
                };
                flights.extend(own.into_iter().map(sent));
                if is_parted {
                    // The GPU is at work by now. It lands first: it is there already.
                    flights.push_front(sent(state.session.compute(batch)));
                    let took = shared.clock.now().0 - encoded.0;
                    state.session.note_compute(batch, took);
                }
            }
            Due::At(_) | Due::Idle => return,
        }
    }
}

/// Waits for what a device owes. One that takes too long is a lost one. `None` once the
/// session is closed: nobody waits for anything then.
pub(super) fn arrive(shared: &Shared, mut flight: Flight) -> Option<Result<Readback, Error>> {
    let start = shared.clock.now();
    // The flight of a GPU looks at it for a moment each time that it is polled.
    block_on(poll_fn(|context| {
        if let Poll::Ready(outcome) = flight.as_mut().poll(context) {
            return Poll::Ready(Some(outcome));
        }
        let mut state = shared.lock();
        if state.closed.is_some() {
            return Poll::Ready(None);
        }
        state.session.free_released();
        drop(state);
        let waited = shared.clock.now().0 - start.0;
        if waited > shared.stall.as_secs_f64() * 1e3 {
            let why = format!("it answered nothing for {waited:.0} ms");
            return Poll::Ready(Some(Err(Error::DeviceLost(why))));
        }
        Poll::Pending
    }))
}

/// Waits for a piece and takes the calls that it completes off the session.
fn land(shared: &Shared, sent: Sent) -> Landed {
    let Some(outcome) = arrive(shared, sent.flight) else {
        return Landed::nothing();
    };
    let mut state = shared.lock();
    let now = shared.clock.now();
    let (batch, generation) = (sent.batch, sent.generation);
    let own = (batch, generation);
    state.session.note_landing(own, &outcome, now);
    let settlement = state.session.settle(batch, generation, outcome);
    let Some(Settlement {
        answers,
        outcome,
        next,
        ..
    }) = settlement
    else {
        // Closed in the meantime, which rejected the calls, or to be sent again.
        return Landed::nothing();
    };
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
    let facts = state.session.take_facts();
    shared.tell_waiting(state);
    let next = next.into_iter().map(|flight| Sent {
        batch,
        generation,
        flight,
    });
    Landed {
        parts,
        outcome,
        facts,
        next: next.collect(),
    }
}

/// A piece that returned, its calls in submission order.
struct Landed {
    parts: Vec<Part>,
    outcome: Result<Readback, Error>,
    /// What the batch was, with its last piece, if anybody listens.
    facts: Option<Facts>,
    /// Pieces of the batch that were sent in its place.
    next: Vec<Sent>,
}

/// What there is for a call.
struct Part {
    answer: session::Answer,
    /// Where it goes with all behind it, if it is the first of its call.
    begun: Option<Words>,
    /// Who waits for it, if it is the last.
    caller: Option<Answer>,
}

impl Landed {
    /// No call has anything of it.
    fn nothing() -> Landed {
        Landed {
            parts: Vec::new(),
            outcome: Err(Error::Disposed),
            facts: None,
            next: Vec::new(),
        }
    }

    /// Gives each call its own copy of its result, or the piece's error. `begun` is
    /// the result of a call of which not all pieces are back: one at most, because
    /// the GPU's pieces arrive in order and only their ends are cut.
    fn deliver(self, begun: &mut Option<Words>) {
        let words = match &self.outcome {
            Ok(Readback::Host(words)) => words,
            Ok(Readback::Mapped(mapped)) => mapped.words(),
            Err(error) => {
                let callers = self.parts.into_iter().filter_map(|part| part.caller);
                return callers.for_each(|caller| caller.send(Err(error.clone())));
            }
        };
        for part in self.parts {
            let session::Answer {
                span, at, total, ..
            } = part.answer;
            // What the processor computed comes whole, between pieces of others.
            let mut whole = None;
            let result = match part.answer.is_whole() {
                true => &mut whole,
                false => &mut *begun,
            };
            if at == 0 {
                // Whatever was begun before was given up, failed or is sent again.
                *result = part.begun;
            }
            if let Some(result) = result {
                let start = span.at as usize;
                result.put(&words[start..start + span.words as usize], (at, total));
            }
            if let Some(caller) = part.caller
                && let Some(result) = result.take()
            {
                caller.send(Ok(result));
            }
        }
    }
}
