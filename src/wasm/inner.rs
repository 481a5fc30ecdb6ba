//! The browser's face of a driver: does what the driver says, by background tasks and timers.
//!
//! What is done next, the driver decides. What JavaScript may call is in `mod.rs`, and what
//! JavaScript is told in `notice`; devices are opened by `recovery`.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

use js_sys::Function;
use wasm_bindgen::prelude::*;

use super::config;
use super::header::Header;
use super::report;
use super::table::Table;
use super::timer::{sleep, start, within};
use crate::batch::{Millis, Priority, Ticket};
use crate::device::{AnyDevice, Compile, Engine, Flight, Generation, GpuOptions};
use crate::driver::{Driver, Landing, Work};
use crate::error::Error;
use crate::session::{Answered, Launch, Session, Submission};

/// The longest timer, in milliseconds. Some programs do not end while a timer runs, and batches
/// land long before they are overdue.
const LONGEST_TIMER: f64 = 1000.0;

/// Milliseconds within which a timer of one rings in a thread that has nothing else to do:
/// browsers stretch timers that follow each other to four.
const PROMPT_MS: f64 = 8.0;

/// The return value of a method that failed.
const FAILED: f64 = -1.0;

/// What JavaScript's methods and the background tasks share.
pub(super) struct Inner {
    pub(super) driver: RefCell<Driver<AnyDevice>>,
    pub(super) header: Header,
    /// When the newest batch got its first call.
    pub(super) opened: Cell<Millis>,
    pub(super) table: RefCell<Table>,
    /// `(table, count, source, message, last)`; see [`Table`].
    pub(super) settle: RefCell<Option<Function>>,
    /// `(event, message)`: `Notify` in `pkg-template/src/core/core.ts`.
    pub(super) notify: RefCell<Option<Function>>,
    /// Called when measuring the cost model has ended.
    pub(super) calibrated: RefCell<Option<Function>>,
    /// Why the last method failed.
    pub(super) failure: RefCell<JsValue>,
    /// Whether TypeScript fills the tensors of another device later than it was told of the
    /// device.
    pub(super) is_waiting: Cell<bool>,
    /// The engine that another device is opened for after a loss.
    pub(super) engine: config::Engine,
    pub(super) gpu_options: GpuOptions,
    /// Milliseconds that a GPU may take to open.
    pub(super) stall_ms: f64,
    /// When the driver is asked next, if nothing happens before.
    pub(super) alarm: Cell<f64>,
}

impl Inner {
    /// The session, for calls and questions.
    pub(super) fn session(&self) -> RefMut<'_, Session<AnyDevice>> {
        RefMut::map(self.driver.borrow_mut(), |driver| &mut driver.session)
    }

    /// The return value of a method on the hot path.
    pub(super) fn number(&self, result: Result<u32, Error>) -> f64 {
        result.map_or_else(
            |error| {
                self.failure.replace(error.into());
                FAILED
            },
            f64::from,
        )
    }

    pub(super) fn reserve(&self, words: f64) -> Result<(), Error> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a saturated number is too large"
        )]
        let words = words as u64;
        self.header.point_at(self.session().room(words)?);
        Ok(())
    }

    pub(super) fn submit(
        self: &Rc<Self>,
        priority: Priority,
        engine: Option<Engine>,
        submission: &Submission,
    ) -> Result<Ticket, Error> {
        let mut session = self.session();
        // Only a batch's oldest call is timed, because a clock costs as much as a call, and
        // calls of other priorities than normal, which are rare. A call that finds its batch
        // full opens the next batch with the time of that one.
        if priority != Priority::Normal || session.is_open_empty() {
            self.opened.set(report::now());
        }
        let accepted = session.submit_with(priority, engine, submission, self.opened.get());
        let is_ready = session.is_ready();
        self.header.point_at(session.free_room());
        drop(session);
        if is_ready {
            self.pump(); // A full queue is flushed, also where the call was refused.
        }
        let accepted = accepted?;
        if let Some(older) = accepted.superseded {
            self.refuse(&[older], &Error::Superseded);
        }
        Ok(accepted.ticket)
    }

    /// Does the driver's work until the driver sleeps.
    pub(super) fn pump(self: &Rc<Self>) {
        loop {
            // In the head of the match the borrow would last through all arms.
            let work = self.driver.borrow_mut().next(report::now());
            match work {
                Work::Launch(launch) => self.follow(launch),
                Work::Settle(settlement) => self.answer(&settlement),
                Work::Compile {
                    generation,
                    compiles,
                } => self.compile(generation, compiles),
                Work::Answer(answered) => self.answer_soon(answered),
                Work::Tell(news) => self.tell(news),
                Work::Replace { pauses } => {
                    self.notify(
                        "lost",
                        "the GPU device was lost; pending calls wait for the next one",
                    );
                    self.open(pauses);
                }
                Work::Look { pauses } => self.open(pauses),
                Work::Probe { generation, flight } => self.probe(generation, flight),
                Work::EndCalibration => self.tell_calibrated(),
                // The browser's face has frames, and keeps no memory besides the session's.
                Work::Gather | Work::Trim => {}
                Work::Sleep { until } => {
                    self.sleep(until);
                    break;
                }
            }
        }
        self.follow_room();
    }

    /// Does the driver's work where TypeScript did not ask for it by a call or `flush`.
    pub(super) fn pump_unasked(self: &Rc<Self>) {
        let in_flight = || self.session().in_flight();
        let before = in_flight();
        self.pump();
        // TypeScript does not know yet that batches were sent.
        if in_flight() > before {
            self.notify("sent", "");
        }
    }

    /// Answers tickets that wait for no words, after the caller has returned: TypeScript may not
    /// know the newest of them yet.
    fn answer_soon(self: &Rc<Self>, Answered { tickets, outcome }: Answered) {
        let inner = Rc::clone(self);
        start(async move {
            match outcome {
                Ok(()) => inner.accept(&tickets),
                Err(error) => inner.refuse(&tickets, &error),
            }
        });
    }

    /// Awaits a batch's flights in the background.
    fn follow(self: &Rc<Self>, mut launch: Launch) {
        if launch.has_cpu_share {
            let mut driver = self.driver.borrow_mut();
            driver.compute(&mut launch, report::now());
        }
        let inner = Rc::clone(self);
        let (batch, generation) = (launch.batch, launch.generation);
        let mut flights = VecDeque::from(launch.flights);
        start(async move {
            // One task awaits all flights, so that they land in order.
            while let Some(flight) = flights.pop_front() {
                let outcome = flight.await;
                flights.extend(inner.land(Landing {
                    batch,
                    generation,
                    outcome,
                }));
            }
        });
    }

    fn land(self: &Rc<Self>, landing: Landing) -> Vec<Flight> {
        let settlement = self.driver.borrow_mut().settle(landing, report::now());
        let is_answered = settlement.is_some();
        let next = settlement.map(|settlement| {
            self.answer(&settlement);
            settlement.next
        });
        if self.session().take_retuned() {
            self.notify("tuned", "");
        }
        self.pump();
        if !is_answered {
            self.notify("returned", "");
        }
        next.unwrap_or_default()
    }

    /// Awaits compilations in the background.
    fn compile(self: &Rc<Self>, generation: Generation, compiles: Vec<Compile>) {
        for work in compiles {
            let inner = Rc::clone(self);
            start(async move {
                let compiled = work.await;
                let now = report::now();
                let mut driver = inner.driver.borrow_mut();
                driver.adopt(generation, compiled, now);
                drop(driver);
                inner.pump_unasked();
            });
        }
    }

    /// Awaits a probe in the background.
    fn probe(self: &Rc<Self>, generation: Generation, mut flight: Flight) {
        let inner = Rc::clone(self);
        start(async move {
            // A page that is busy notices late that a probe is done, and what it measures is the
            // page: frame after frame, and in each round again.
            let mut late_ms = 0.0;
            let outcome = loop {
                let since = report::now();
                let outcome = within(1.0, &mut flight).await;
                let waited = report::now().0 - since.0;
                if waited > PROMPT_MS {
                    late_ms += waited;
                }
                if let Some(outcome) = outcome {
                    break outcome;
                }
                if inner.driver.borrow().is_gone(generation) {
                    break Err(Error::DeviceLost(String::new()));
                }
                // Without another submission some browsers notice late that a probe is done.
                inner.nudge();
            };
            let now = report::now();
            inner.driver.borrow_mut().note_probe(&outcome, late_ms, now);
            inner.pump_unasked();
        });
    }

    /// Sets the alarm by which the driver is asked again at this moment.
    fn sleep(self: &Rc<Self>, until: Option<Millis>) {
        let Some(Millis(until)) = until.filter(|until| until.0 < self.alarm.get()) else {
            return; // An earlier alarm is set.
        };
        self.alarm.set(until);
        // The alarm does not keep a session that nobody has any more.
        let session = Rc::downgrade(self);
        start(async move {
            while let Some(inner) = session.upgrade() {
                if inner.alarm.get() != until {
                    return; // An earlier alarm has replaced this one.
                }
                let now = report::now();
                let left = until - now.0;
                if left <= 0.0 {
                    inner.alarm.set(f64::INFINITY);
                    inner.driver.borrow_mut().wake(now);
                    return inner.pump_unasked();
                }
                drop(inner);
                // Timers ring a fraction of a millisecond early.
                sleep(left.clamp(1.0, LONGEST_TIMER)).await;
            }
        });
    }

    /// Gives up a call; `true` if it was pending.
    pub(super) fn abort(self: &Rc<Self>, ticket: Ticket) -> bool {
        let found = self.session().abort(ticket);
        self.follow_room();
        // Other calls may have waited for a tensor that this call would have written.
        if found && self.session().is_ready() {
            self.pump_soon();
        }
        found
    }

    /// Does the driver's work in a task of its own, after the caller has returned.
    pub(super) fn pump_soon(self: &Rc<Self>) {
        let inner = Rc::clone(self);
        start(async move { inner.pump_unasked() });
    }

    /// Submits nothing, so that the browser notices sooner what is done.
    pub(super) fn nudge(&self) {
        if let AnyDevice::Gpu(gpu) = self.session().device_mut() {
            gpu.nudge();
        }
    }

    pub(super) fn follow_room(&self) {
        let mut session = self.session();
        self.header.point_at(session.free_room());
        self.header.count_flights(session.in_flight());
        self.header.count_owed(session.owed());
    }
}
