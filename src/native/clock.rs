//! The native clock, the only place that asks what time it is.

use std::time::Instant;

use crate::batch::Millis;

/// Counts from its own start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "faces are where time comes in; this one never runs in a browser"
    )]
    pub(super) fn start() -> Self {
        Clock {
            start: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Millis {
        Millis(self.start.elapsed().as_secs_f64() * 1e3)
    }
}
