//! The cost models that were measured, kept once for each adapter of a process.
//!
//! When a model is measured, the driver says.

use std::sync::{Mutex, PoisonError};

use super::shared::Shared;
use super::state::State;
use crate::session::Model;

/// The measured cost models, by adapter and GPU driver.
static KNOWN: Mutex<Vec<(String, Model)>> = Mutex::new(Vec::new());

/// Gives a session the cost model of its adapter, or has the session measure one; the adapter's
/// name.
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

/// Keeps a session's cost model for later sessions, if it was measured.
pub(super) fn remember(state: &State, adapter: &str) {
    if let Some((model, true)) = state.driver.session.model() {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((adapter.into(), model));
    }
}
