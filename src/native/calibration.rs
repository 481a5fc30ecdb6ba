//! What was measured on each adapter of a process: cost models, and the values that were tuned by
//! what batches took.
//!
//! When a model is measured, the driver says, and when a value is tuned, the session.

use std::sync::{Mutex, PoisonError};

use super::shared::Shared;
use super::state::State;
use crate::session::{Kept, Model};

/// What is known of an adapter.
#[derive(Debug, Default)]
struct Known {
    /// The names of the adapter and of its GPU driver.
    adapter: String,
    model: Option<Model>,
    tuning: Option<Kept>,
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// Gives a session what is known of its adapter, and has the session measure a cost model where
/// none is; the adapter's name.
pub(super) fn begin(shared: &Shared) -> String {
    let mut state = shared.lock();
    let driver = &mut state.driver;
    let info = driver.session.info();
    let adapter = [info.adapter, info.driver].join(" ");
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.iter().find(|known| known.adapter == adapter) {
        if let Some(model) = known.model {
            driver.session.set_model(model);
        }
        if let Some(tuning) = known.tuning {
            driver.session.restore_tuning(&tuning);
        }
    }
    if let Some((_, false)) = driver.session.model() {
        driver.calibrate_after_answer();
    }
    adapter
}

/// Keeps for later sessions what a session has measured and tuned.
pub(super) fn remember(state: &State, adapter: &str) {
    let session = &state.driver.session;
    let measured = session.model().filter(|(_, is_measured)| *is_measured);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let at = match known.iter().position(|known| known.adapter == adapter) {
        Some(at) => at,
        None => {
            known.push(Known {
                adapter: adapter.into(),
                ..Known::default()
            });
            known.len() - 1
        }
    };
    let known = &mut known[at];
    known.model = measured.map(|(model, _)| model).or(known.model);
    known.tuning = Some(session.kept_tuning());
}
