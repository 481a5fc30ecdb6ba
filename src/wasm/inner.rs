//! A session in a page: it does what the driver says, by tasks in the background and
//! timers.
//!
//! What is done next is not decided here. What JavaScript may call is in `mod.rs`, what it
//! is told in `notice`; devices are opened by `recovery`.

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
use crate::batch::{Millis, Ticket};
use crate::device::{AnyDevice, Compile, Engine, Flight, Generation, GpuOptions};
use crate::driver::{Driver, Landing, Work};
use crate::error::Error;
use crate::session::{Launch, Session, Submission};

/// The longest timer, in milliseconds: what is on its way lands long before it is overdue,
/// and a timer keeps some programs from ending.
const LOOK: f64 = 1000.0;

/// What a failing method returns.
const FAILED: f64 = -1.0;

/// What the methods and the work in the background share.
pub(super) struct Inner {
    pub(super) driver: RefCell<Driver<AnyDevice>>,
    pub(super) header: Header,
    /// When the last batch got its first call.
    pub(super) opened: Cell<Millis>,
    pub(super) table: RefCell<Table>,
    /// `(table, count, source, message, last)`; see [`Table`].
    pub(super) settle: RefCell<Option<Function>>,
    /// `(event, message)`: what `Notify` of `pkg-template/src/core/core.ts` hears.
    pub(super) notify: RefCell<Option<Function>>,
    /// Called when the model is measured.
    pub(super) calibrated: RefCell<Option<Function>>,
    /// Why the last method failed.
    pub(super) failure: RefCell<JsValue>,
    /// What to ask for when the device is lost.
    pub(super) engine: config::Engine,
    pub(super) gpu_options: GpuOptions,
    /// Milliseconds that a GPU may take to open.
    pub(super) stall_ms: f64,
    /// When the driver is asked next, though nothing happens.
    pub(super) alarm: Cell<f64>,
}

impl Inner {
    /// The session, for calls and questions.
    pub(super) fn session(&self) -> RefMut<'_, Session<AnyDevice>> {
        RefMut::map(self.driver.borrow_mut(), |driver| &mut driver.session)
    }

    /// What a method of the hot path returns.
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
        engine: Option<Engine>,
        submission: &Submission,
    ) -> Result<Ticket, Error> {
        let mut session = self.session();
        // Only a batch's oldest call is timed: a clock costs as much as a call. One
        // that finds its batch full opens the next with the time of the last.
        if session.is_open_empty() {
            self.opened.set(report::now());
        }
        let accepted = session.submit_to(engine, submission, self.opened.get());
        let is_ready = session.is_ready();
        self.header.point_at(session.free_room());
        drop(session);
        if is_ready {
            self.pump(); // Full means flush, also for a newcomer that is refused.
        }
        let accepted = accepted?;
        if let Some(older) = accepted.superseded {
            self.refuse(&[older], &Error::Superseded);
        }
        Ok(accepted.ticket)
    }

    /// Does what there is to do, until there is nothing.
    pub(super) fn pump(self: &Rc<Self>) {
        loop {
            // A borrow in the match would last through its arms.
            let work = self.driver.borrow_mut().next(report::now());
            match work {
                Work::Launch(launch) => self.follow(launch),
                Work::Settle(settlement) => self.answer(&settlement),
                Work::Compile {
                    generation,
                    compiles,
                } => self.compile(generation, compiles),
                Work::Answer {
                    ticket,
                    outcome: Ok(()),
                } => self.accept(ticket),
                Work::Answer {
                    ticket,
                    outcome: Err(error),
                } => self.refuse(&[ticket], &error),
                Work::Tell(news) => self.tell(news),
                Work::Replace { pauses } => {
                    self.notify(
                        "lost",
                        "the GPU device was lost; pending calls wait for the next one",
                    );
                    self.open(pauses);
                }
                Work::Look { pauses } => self.open(pauses),
                Work::Sample { generation, flight } => self.sample(generation, flight),
                Work::Calibrated => self.tell_calibrated(),
                // All of the memory that is kept is the session's.
                Work::Gather | Work::Trim => {}
                Work::Sleep { until } => {
                    self.sleep(until);
                    break;
                }
            }
        }
        self.follow_room();
    }

    /// Does what there is to do, though no call and no `flush` came.
    pub(super) fn pump_unasked(self: &Rc<Self>) {
        let in_flight = || self.session().in_flight();
        let before = in_flight();
        self.pump();
        // Nobody else knows.
        if in_flight() > before {
            self.notify("sent", "");
        }
    }

    /// Waits for a batch in the background.
    fn follow(self: &Rc<Self>, mut launch: Launch) {
        if launch.has_cpu_share {
            let mut driver = self.driver.borrow_mut();
            driver.compute(&mut launch, report::now());
        }
        let inner = Rc::clone(self);
        let (batch, generation) = (launch.batch, launch.generation);
        let mut flights = VecDeque::from(launch.flights);
        start(async move {
            // One task for all of them, so that they land in order.
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
        let settlement = self.driver.borrow_mut().landed(landing, report::now());
        let is_answered = settlement.is_some();
        let next = settlement.map(|settlement| {
            self.answer(&settlement);
            settlement.next
        });
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
                driver.compiled(generation, compiled, now);
                drop(driver);
                inner.pump_unasked();
            });
        }
    }

    /// Waits for a sample in the background.
    fn sample(self: &Rc<Self>, generation: Generation, mut flight: Flight) {
        let inner = Rc::clone(self);
        start(async move {
            let outcome = loop {
                if let Some(outcome) = within(1.0, &mut flight).await {
                    break outcome;
                }
                if inner.driver.borrow().is_gone(generation) {
                    break Err(Error::DeviceLost(String::new()));
                }
                // Some browsers notice late that a sample is done, unless they are hurried.
                inner.nudge();
            };
            let now = report::now();
            inner.driver.borrow_mut().sampled(&outcome, now);
            inner.pump_unasked();
        });
    }

    /// Has the driver asked again at this moment.
    fn sleep(self: &Rc<Self>, until: Option<Millis>) {
        let Some(Millis(until)) = until.filter(|until| until.0 < self.alarm.get()) else {
            return; // It is asked before that already.
        };
        self.alarm.set(until);
        // A session that nobody has any more is not kept until then.
        let session = Rc::downgrade(self);
        start(async move {
            while let Some(inner) = session.upgrade() {
                if inner.alarm.get() != until {
                    return; // An earlier one has taken its place.
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
                sleep(left.clamp(1.0, LOOK)).await;
            }
        });
    }

    /// Gives a call up; `true` if it was pending.
    pub(super) fn abort(self: &Rc<Self>, ticket: Ticket) -> bool {
        let found = self.session().abort(ticket);
        self.follow_room();
        // Others may have waited for what the call would have written.
        if found && self.session().is_ready() {
            self.pump_soon();
        }
        found
    }

    /// Does what there is to do, when whoever asks for it has been told what came of that.
    pub(super) fn pump_soon(self: &Rc<Self>) {
        let inner = Rc::clone(self);
        start(async move { inner.pump_unasked() });
    }

    /// Submits nothing, to hurry what is on its way.
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
