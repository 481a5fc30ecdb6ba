//! Waits for work on the device natively: callbacks run inside of a poll, and only this
//! module polls.
//!
//! A poll never panics and never blocks for longer than [`SLICE`]: wgpu holds a lock while it
//! waits, and everything that destroys a buffer needs that lock.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_channel::oneshot::{Canceled, Receiver};

use super::{DeviceErrors, Gpu};
use crate::error::Error;

#[cfg(panic = "abort")]
#[path = "poll_once_abort.rs"]
mod poll_once;
#[cfg(panic = "unwind")]
#[path = "poll_once_unwind.rs"]
mod poll_once;

// Tests unwind, so the twin for aborting programs is compiled for tests besides.
#[cfg(all(test, panic = "unwind"))]
#[path = "poll_once_abort.rs"]
mod poll_once_abort;

/// How long to spin before sleeping until the GPU interrupts. A sleep costs some hundred
/// microseconds on a server, which is longer than a small batch takes.
const SPIN: Duration = Duration::from_micros(1000);

/// The longest that one poll blocks.
const SLICE: Duration = Duration::from_millis(2);

/// What a poll finds out. Whether the awaited work is done is told by its callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Polled {
    Working,
    Lost,
}

/// How long a poll may block.
#[derive(Clone, Debug)]
enum Patience {
    /// The poll does not wait.
    None,
    /// The poll waits until a submission is done, the last one if none is named, or the time is over.
    Until(Option<wgpu::SubmissionIndex>, Duration),
}

/// Waits for the work of one device. Clones wait for the same device.
#[derive(Clone, Debug)]
pub(super) struct Poller {
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: DeviceErrors,
}

impl Poller {
    pub(super) fn new(device: &wgpu::Device, queue: &wgpu::Queue, errors: &DeviceErrors) -> Self {
        Poller {
            device: device.clone(),
            queue: queue.clone(),
            errors: errors.clone(),
        }
    }

    /// `DeviceLost` once the device is lost.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.errors.check()
    }

    /// The device that is polled.
    pub(super) fn device(&self) -> &wgpu::Device {
        &self.device
    }

    /// Waits until a submission is done, the last one if none is named, and its callback has
    /// sent `told`. `Err` where the callback never comes, after a loss of the device.
    ///
    /// Each poll of this future blocks for a slice at most, so that its executor can do other
    /// work in between.
    pub(super) async fn finish<T>(
        &self,
        submission: Option<wgpu::SubmissionIndex>,
        told: Receiver<T>,
    ) -> Result<T, Canceled> {
        let poll = |patience| poll_once::poll_once(self, &patience);
        finish(poll, submission, told, &self.errors).await
    }
}

impl Gpu {
    /// Resolves once everything that was submitted is done, or the device is lost.
    pub fn idle(&self) -> impl Future<Output = ()> + Send + 'static {
        let (sender, receiver) = futures_channel::oneshot::channel();
        let poller = self.poller.clone();
        poller.queue.on_submitted_work_done(move || {
            let _ = sender.send(()); // The future may have been dropped.
        });
        async move {
            // A lost device is idle, too.
            let _ = poller.finish(None, receiver).await;
        }
    }
}

async fn finish<T>(
    poll: impl Fn(Patience) -> Polled,
    submission: Option<wgpu::SubmissionIndex>,
    mut told: Receiver<T>,
    errors: &DeviceErrors,
) -> Result<T, Canceled> {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a wait spins changes no result"
    )]
    let start = Instant::now();
    loop {
        let spins = start.elapsed() < SPIN;
        let polled = poll(match spins {
            true => Patience::None,
            false => Patience::Until(submission.clone(), SLICE),
        });
        if let Some(result) = told.try_recv()? {
            return Ok(result);
        }
        if polled == Polled::Lost {
            errors.lose("the GPU driver reports a lost device");
        }
        // Callbacks for work run before the callback for the loss, so none comes any more.
        if errors.check().is_err() {
            return Err(Canceled);
        }
        if spins {
            std::thread::yield_now();
        } else {
            Turn::default().await;
        }
    }
}

/// Returns to the future's executor once, and is woken at once.
#[derive(Default)]
struct Turn {
    is_over: bool,
}

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// The platform's reason for a refusal.
pub(super) fn reason(error: impl std::error::Error) -> String {
    error.to_string()
}

#[cfg(test)]
#[path = "poll_tests.rs"]
mod tests;
