//! One poll of a device in programs whose panics abort.
//!
//! wgpu's poll panics when the GPU driver reports a lost device, which would end the program. An
//! empty submission polls the device as well: it runs the callbacks that are due, and the
//! loss is told by the device's own callback. It cannot wait, so this sleeps.

use std::time::Duration;

use super::{Patience, Polled, Poller};

/// Sleep before a poll that may block.
const PAUSE: Duration = Duration::from_micros(200);

/// Polls once. A loss is reported to the device's [`DeviceErrors`](super::DeviceErrors).
pub(super) fn poll_once(poller: &Poller, patience: &Patience) -> Polled {
    if let Patience::Until(_, time) = patience {
        std::thread::sleep(PAUSE.min(*time));
    }
    poller.queue.submit([]);
    Polled::Working
}
