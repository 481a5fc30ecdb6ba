//! Room in a session's queue, for one task to wait for.
//!
//! Who waits is recorded in `waiters`; whether there is room, the session says.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::shared::Shared;
use super::waiters::Waiter;
use crate::error::Error;

/// Room in the queue of one session, for one task to wait for. Dropped, it waits no more.
#[derive(Debug)]
pub(super) struct Room {
    shared: Arc<Shared>,
    waiter: Waiter,
}

impl Room {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Room {
            shared: Arc::clone(shared),
            waiter: Waiter::default(),
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether the queue has room; if not, the task that polls is told when it may have.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        self.shared.poll_room(&mut self.waiter, context)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.waiter.number.is_some() {
            let waker = self.shared.lock().waiting.leave(&self.waiter);
            drop(waker); // Outside the lock: the waker may be the last of its task.
        }
    }
}
