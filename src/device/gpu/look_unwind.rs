//! A look at a device in programs whose panics unwind.
//!
//! wgpu's poll panics when the driver says that the device is lost, with none of its locks
//! held and after the callback for the loss has run. So the panic is caught, and means a
//! lost device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::{Looked, Patience};

/// A callback of the program that panics in here counts as the loss of the device: what
/// wgpu then holds is unknown, and on another device no call loses its answer.
pub(super) fn look((device, _): (&wgpu::Device, &wgpu::Queue), patience: &Patience) -> Looked {
    let poll = |kind| device.poll(kind);
    let kind = match patience {
        Patience::None => wgpu::PollType::Poll,
        Patience::Until(submission, time) => wgpu::PollType::Wait {
            submission_index: submission.clone(),
            timeout: Some(*time),
        },
    };
    caught(|| match poll(kind) {
        // A submission that the device refused: there is nothing to sleep for.
        Err(wgpu::PollError::WrongSubmissionIndex(..)) => {
            let _ = poll(wgpu::PollType::Poll); // It cannot time out.
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(_) | Err(wgpu::PollError::Timeout) => {}
    })
}

pub(super) fn caught(poll: impl FnOnce()) -> Looked {
    match catch_unwind(AssertUnwindSafe(poll)) {
        Ok(()) => Looked::Working,
        Err(_) => Looked::Lost,
    }
}
