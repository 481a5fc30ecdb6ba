//! The threads that compile kernels, and tell the worker of each.
//!
//! The session decides which kernels are compiled, and what becomes of them.

use std::sync::Arc;
use std::time::Duration;

use super::platform::{block_on, spawn};
use super::shared::Shared;
use super::supervision::{Ended, supervise};
use crate::device::Generation;

/// Starts this many threads that compile kernels.
pub(super) fn start(shared: &Arc<Shared>, generation: Generation, compilers: usize) {
    for _ in 0..compilers {
        let own = Arc::clone(shared);
        let job = move || {
            if supervise(&own, || compile(&own, generation)) == Ended::InPanic {
                own.lock().compiles.give_up(generation);
                own.state.work.notify_all();
            }
        };
        if let Err(error) = spawn(job) {
            shared.close(&error);
        }
    }
}

/// Compiles kernels until there are none, and tells the worker of each. This runs on a thread of
/// its own, because GPU drivers take their time.
fn compile(shared: &Shared, generation: Generation) {
    loop {
        let next = shared.lock().compiles.next(generation);
        let Some(work) = next else {
            shared.state.work.notify_all();
            return;
        };
        let compiled = block_on(work);
        let mut state = shared.lock();
        if state.closed.is_none() {
            let now = shared.clock.now();
            state.driver.adopt(generation, compiled, now);
            drop(state);
            shared.state.work.notify_one();
        }
    }
}

/// Waits until no kernel is being compiled, because compilers use the device. A compiler that takes
/// longer than a device may owe an answer keeps the device until it is done.
pub(super) fn wait(shared: &Shared) {
    let start = shared.clock.now();
    let mut state = shared.lock();
    let waiting = state.compiles.clear();
    while state.compiles.is_at_work() {
        let waited = shared.clock.now().0 - start.0;
        let waited = Duration::from_secs_f64(waited.max(0.0) / 1e3);
        let Some(left) = shared.stall.checked_sub(waited) else {
            break;
        };
        state = state.sleep(&shared.state.work, Some(left));
    }
    drop(state);
    drop(waiting);
}
