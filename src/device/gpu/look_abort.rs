//! A look at a device in programs whose panics abort.
//!
//! wgpu's poll panics when the driver says that the device is lost, which would end the
//! program. To submit nothing looks at the device as well, runs the callbacks that are due,
//! and tells a loss by the callback for it. It cannot wait, so this sleeps.

use std::time::Duration;

use super::{Looked, Patience};

/// Between two looks that may block.
const PAUSE: Duration = Duration::from_micros(200);

/// The loss is told by the device's own callback, which [`Faults`](super::Faults) hears.
pub(super) fn look((_, queue): (&wgpu::Device, &wgpu::Queue), patience: &Patience) -> Looked {
    if let Patience::Until(_, time) = patience {
        std::thread::sleep(PAUSE.min(*time));
    }
    queue.submit([]);
    Looked::Working
}
