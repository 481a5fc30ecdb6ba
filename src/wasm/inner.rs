//! A session and those who wait for it: calls go in, batches go out, and each
//! answer goes to TypeScript as one settle table.
//!
//! What JavaScript may call is in `mod.rs`; what becomes of a lost device in
//! `recovery`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use js_sys::Function;
use wasm_bindgen::prelude::*;

use super::config;
use super::header::Header;
use super::recovery::{self, Recovery};
use super::report;
use super::table::Table;
use crate::batch::{BatchId, Millis, Ticket};
use crate::device::{AnyDevice, Engine, Flight, Generation, GpuOptions, Readback};
use crate::error::Error;
use crate::session::{Session, Settlement, Submission};

/// Milliseconds between two looks whether nothing is on its way.
const IDLE: f64 = 20.0;

/// What a failing method returns.
const FAILED: f64 = -1.0;

/// What the methods and the work in the background share.
pub(super) struct Inner {
    pub(super) session: RefCell<Session<AnyDevice>>,
    pub(super) header: Header,
    /// When the last batch got its first call.
    pub(super) opened: Cell<Millis>,
    pub(super) table: RefCell<Table>,
    /// `(table, count, source, message, last)`; see [`Table`].
    pub(super) settle: RefCell<Option<Function>>,
    /// `(event, message)`: what `Notify` of `pkg-template/src/core.ts` hears.
    pub(super) notify: RefCell<Option<Function>>,
    /// Why the last method failed.
    pub(super) failure: RefCell<JsValue>,
    /// What to ask for when the device is lost.
    pub(super) engine: config::Engine,
    pub(super) gpu_options: GpuOptions,
    /// Milliseconds without an answer after which a GPU counts as lost.
    pub(super) stall_ms: f64,
    pub(super) recovery: Recovery,
}

impl Inner {
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
        let mut session = self.session.borrow_mut();
        self.header.point_at(session.room(words)?);
        Ok(())
    }

    pub(super) fn submit(
        self: &Rc<Self>,
        engine: Option<Engine>,
        submission: &Submission,
    ) -> Result<Ticket, Error> {
        let mut session = self.session.borrow_mut();
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

    /// Sends what is ready and waits for them in the background.
    pub(super) fn pump(self: &Rc<Self>) {
        loop {
            // A borrow in the condition would last through the body.
            let warmed = self.session.borrow_mut().warmed();
            let Some((ticket, outcome)) = warmed else {
                break;
            };
            match outcome {
                Ok(()) => self.accept(ticket),
                Err(error) => self.refuse(&[ticket], &error),
            }
        }
        loop {
            let start = report::now();
            let mut session = self.session.borrow_mut();
            if session.take_over(start) {
                drop(session);
                self.watch();
                self.notify("regained", "a GPU device is in use again");
                continue;
            }
            let Some(launch) = session.launch(start) else {
                break;
            };
            let encoded = report::now();
            session.note_encode(encoded.0 - start.0);
            let mut flights = VecDeque::from(launch.flights);
            if launch.is_parted {
                // The GPU is at work by now.
                flights.push_front(session.compute(launch.batch));
                session.note_compute(launch.batch, report::now().0 - encoded.0);
            }
            let is_relieved = session.take_fallback();
            drop(session);
            if is_relieved {
                self.notify(
                    "relieved",
                    "the GPU had no memory for a batch; the CPU answers it",
                );
            }
            let inner = Rc::clone(self);
            recovery::start(async move {
                // One task for all of them, so that they land in order.
                while let Some(flight) = flights.pop_front() {
                    let outcome = flight.await;
                    let next = inner.land(launch.batch, launch.generation, outcome);
                    flights.extend(next);
                }
            });
            self.look_after_flights();
        }
        self.compile();
        self.follow_room();
    }

    /// Awaits what launches have begun to compile, in the background.
    fn compile(self: &Rc<Self>) {
        let mut session = self.session.borrow_mut();
        let (works, generation) = (session.compiles(), session.generation());
        drop(session);
        if !works.is_empty() {
            self.look_after_flights();
        }
        for work in works {
            let inner = Rc::clone(self);
            recovery::start(async move {
                let compiled = work.await;
                let now = report::now();
                let mut session = inner.session.borrow_mut();
                session.compiled(generation, compiled, now);
                drop(session);
                inner.recover();
                inner.pump_unasked();
            });
        }
    }

    /// Sends what can go by now, though no call and no `flush` came.
    fn pump_unasked(self: &Rc<Self>) {
        let before = self.session.borrow().in_flight();
        self.pump();
        // Nobody else knows.
        if self.session.borrow().in_flight() > before {
            self.notify("sent", "");
        }
    }

    /// Gives a call up; `true` if it was pending.
    pub(super) fn abort(self: &Rc<Self>, ticket: Ticket) -> bool {
        let found = self.session.borrow_mut().abort(ticket);
        self.follow_room();
        // Others may have waited for what the call would have written.
        if found && self.session.borrow().is_ready() {
            let inner = Rc::clone(self);
            recovery::start(async move { inner.pump_unasked() });
        }
        found
    }

    pub(super) fn land(
        self: &Rc<Self>,
        batch: BatchId,
        generation: Generation,
        outcome: Result<Readback, Error>,
    ) -> Vec<Flight> {
        let mut session = self.session.borrow_mut();
        session.note_landing((batch, generation), &outcome, report::now());
        let settlement = session.settle(batch, generation, outcome);
        // Whoever is answered may ask whose answer it was.
        self.header.count_owed(session.owed());
        drop(session);
        let is_answered = settlement.is_some();
        let next = settlement.map(|settlement| {
            self.answer(&settlement);
            settlement.next
        });
        self.recover();
        self.pump();
        if !is_answered {
            self.notify("returned", "");
        }
        next.unwrap_or_default()
    }

    /// Measures the model while nothing is on its way.
    pub(super) async fn calibrate(self: &Rc<Self>, done: &Function) {
        loop {
            while self.session.borrow().in_flight() > 0 {
                recovery::sleep(IDLE).await;
            }
            let start = report::now();
            let generation = self.session.borrow().generation();
            let sample = self.session.borrow_mut().next_sample();
            let Some(mut sample) = sample else { break };
            let outcome = loop {
                if let Some(outcome) = recovery::within(1.0, &mut sample).await {
                    break outcome;
                }
                if report::now().0 - start.0 > self.stall_ms {
                    self.lose(generation);
                    break Err(Error::DeviceLost(String::new()));
                }
                // Some browsers notice late that a sample is done, unless they are hurried.
                self.nudge();
            };
            let took = report::now().0 - start.0;
            let is_well = outcome.is_ok() && self.session.borrow().in_flight() == 0;
            let took = if is_well { took } else { f64::INFINITY };
            self.session.borrow_mut().note_sample(took);
            recovery::sleep(0.0).await; // The page comes first.
        }
        // As in `settle`.
        if let Err(thrown) = done.call0(&JsValue::UNDEFINED) {
            report::complain(&thrown);
        }
    }

    /// Submits nothing, to hurry what is on its way.
    pub(super) fn nudge(&self) {
        if let AnyDevice::Gpu(gpu) = self.session.borrow_mut().device_mut() {
            gpu.nudge();
        }
    }

    /// Answers the calls of a piece.
    pub(super) fn answer(&self, settlement: &Settlement) {
        let mut table = self.table.take();
        let (source, message) = table.fill(&settlement.answers, &settlement.outcome);
        self.settle(table, &source, &message, settlement.is_last);
    }

    /// Rejects calls.
    pub(super) fn refuse(&self, tickets: &[Ticket], error: &Error) {
        let mut table = self.table.take();
        let message = table.fail(tickets, error);
        self.settle(table, &JsValue::NULL, &message, false);
    }

    /// Answers a ticket that has no result.
    fn accept(&self, ticket: Ticket) {
        let mut table = self.table.take();
        table.accept(ticket);
        self.settle(table, &JsValue::NULL, &JsValue::UNDEFINED, false);
    }

    /// Hands one settle table to TypeScript. No borrow is held meanwhile.
    #[expect(clippy::fn_params_excessive_bools, reason = "so JavaScript hears it")]
    pub(super) fn settle(&self, table: Table, source: &JsValue, message: &JsValue, is_last: bool) {
        let settle = self.settle.borrow().clone();
        // Without a function the session was disposed of, which answered everybody;
        // without an entry everybody had given up.
        if let Some(settle) = settle.filter(|_| is_last || table.entries() > 0) {
            let arguments = js_sys::Array::of5(
                &table.address().into(),
                &table.entries().into(),
                source,
                message,
                &is_last.into(),
            );
            // The face never throws from here; if it did, the next batch must go on.
            if let Err(thrown) = settle.apply(&JsValue::UNDEFINED, &arguments) {
                report::complain(&thrown);
            }
        }
        self.table.replace(table);
    }

    /// Tells TypeScript about the device. No borrow is held meanwhile.
    pub(super) fn notify(&self, event: &str, message: &str) {
        let notify = self.notify.borrow().clone();
        let told =
            notify.map(|notify| notify.call2(&JsValue::UNDEFINED, &event.into(), &message.into()));
        if let Some(Err(thrown)) = told {
            report::complain(&thrown);
        }
    }

    pub(super) fn follow_room(&self) {
        let mut session = self.session.borrow_mut();
        self.header.point_at(session.free_room());
        self.header.count_flights(session.in_flight());
        self.header.count_owed(session.owed());
    }
}
