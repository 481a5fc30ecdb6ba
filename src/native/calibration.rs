//! Measures what each device takes, once for each adapter of a process, while
//! a session that chooses between devices has nothing else to do.

use std::sync::{Mutex, PoisonError};

use super::shared::{Guard, Shared};
use super::worker::arrive;
use crate::error::Error;
use crate::session::Model;

/// What was measured so far, by adapter and driver.
static KNOWN: Mutex<Vec<(String, Model)>> = Mutex::new(Vec::new());

/// The calibration of one session.
#[derive(Debug)]
pub(super) struct Calibration {
    adapter: String,
    /// Whether it is still to begin.
    is_needed: bool,
    is_running: bool,
}

impl Calibration {
    /// Goes by what the process knows of the session's adapter.
    pub(super) fn new(shared: &Shared) -> Self {
        let mut state = shared.lock();
        let info = state.session.info();
        let adapter = [info.adapter, info.driver].join(" ");
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.iter().find(|(other, _)| *other == adapter);
        if let Some((_, model)) = known {
            state.session.set_model(*model);
        }
        let model = state.session.model();
        Calibration {
            adapter,
            is_needed: model.is_some_and(|(_, is_calibrated)| !is_calibrated),
            is_running: false,
        }
    }

    /// A batch was answered: the program has what it came for.
    pub(super) fn answered(&mut self, shared: &Shared) {
        if std::mem::take(&mut self.is_needed) {
            shared.lock().session.calibrate();
            self.is_running = true;
        }
    }

    /// Whether there is something to measure.
    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Measures one sample, a few milliseconds at most.
    pub(super) fn step<'a>(&mut self, shared: &'a Shared, mut state: Guard<'a>) -> Guard<'a> {
        let start = shared.clock.now();
        if let Some(sample) = state.session.next_sample() {
            let generation = state.session.generation();
            drop(state);
            let outcome = arrive(shared, sample);
            let took = shared.clock.now().0 - start.0;
            state = shared.lock();
            if let Some(Err(Error::DeviceLost(_))) = &outcome {
                state.session.lose(generation);
            }
            let is_measured = matches!(outcome, Some(Ok(_)));
            state
                .session
                .note_sample(if is_measured { took } else { f64::INFINITY });
            return state;
        }
        self.is_running = false;
        if let Some((model, true)) = state.session.model() {
            let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            known.push((self.adapter.clone(), model));
        }
        state
    }
}
