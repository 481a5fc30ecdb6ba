//! Measures what each device takes, once for each adapter of a process, while
//! a session that chooses between devices has nothing else to do.

use std::sync::{Mutex, PoisonError};

use super::outside::{MutexGuard, block_on};
use super::shared::{Shared, State};
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
    pub(super) fn step<'a>(
        &mut self,
        shared: &'a Shared,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        let start = shared.clock.now();
        if let Some(sample) = state.session.next_sample() {
            drop(state);
            let outcome = block_on(sample);
            let took = shared.clock.now().0 - start.0;
            state = shared.lock();
            let failed = f64::INFINITY;
            state
                .session
                .note_sample(if outcome.is_ok() { took } else { failed });
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
