//! Work whose panic closes the session, so that no call waits for ever.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::shared::Shared;
use crate::error::Error;

/// How supervised work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    WithItsWork,
    InPanic,
}

/// Closes the session if `work` panics, so that no call waits for ever.
pub(super) fn supervise(shared: &Shared, work: impl FnOnce()) -> Ended {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        let said = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let said = said.unwrap_or("no message");
        shared.close(&Error::Fatal(format!("the worker panicked: {said}")));
        return Ended::InPanic;
    }
    Ended::WithItsWork
}
