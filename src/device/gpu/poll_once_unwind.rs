//! One poll of a device in programs whose panics unwind.
//!
//! wgpu's poll panics when the GPU driver reports a lost device. None of wgpu's locks are held
//! then, and the callback for the loss has run. So the panic is caught, and means a lost
//! device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::{Patience, Polled, Poller};

/// Polls once. A callback of the program that panics in here counts as the loss of the
/// device: the state of wgpu is unknown then, and on another device no call loses its answer.
pub(super) fn poll_once(poller: &Poller, patience: &Patience) -> Polled {
    let poll = |kind| poller.device.poll(kind);
    let kind = match patience {
        Patience::None => wgpu::PollType::Poll,
        Patience::Until(submission, time) => wgpu::PollType::Wait {
            submission_index: submission.clone(),
            timeout: Some(*time),
        },
    };
    caught(|| match poll(kind) {
        // The device refused this submission, so no wait for it would end.
        Err(wgpu::PollError::WrongSubmissionIndex(..)) => {
            let _ = poll(wgpu::PollType::Poll); // A poll without a wait cannot time out.
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(_) | Err(wgpu::PollError::Timeout) => {}
    })
}

pub(super) fn caught(poll: impl FnOnce()) -> Polled {
    match catch_unwind(AssertUnwindSafe(poll)) {
        Ok(()) => Polled::Working,
        Err(_) => Polled::Lost,
    }
}
