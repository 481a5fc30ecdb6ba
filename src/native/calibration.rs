//! What each device takes, known once for each adapter of a process.
//!
//! When that is measured is the driver's matter.

use std::sync::{Mutex, PoisonError};

use super::shared::Shared;
use super::state::State;
use crate::session::Model;

/// What was measured so far, by adapter and GPU driver.
static KNOWN: Mutex<Vec<(String, Model)>> = Mutex::new(Vec::new());

/// Has a session go by what the process knows of its adapter, or find it out. The adapter.
pub(super) fn begin(shared: &Shared) -> String {
    let mut state = shared.lock();
    let driver = &mut state.driver;
    let info = driver.session.info();
    let adapter = [info.adapter, info.driver].join(" ");
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.iter().find(|(other, _)| *other == adapter);
    if let Some((_, model)) = known {
        driver.session.set_model(*model);
    }
    if let Some((_, false)) = driver.session.model() {
        driver.calibrate_after_answer();
    }
    adapter
}

/// Remembers what was measured, if it was.
pub(super) fn remember(state: &State, adapter: &str) {
    if let Some((model, true)) = state.driver.session.model() {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((adapter.into(), model));
    }
}
