//! How work on the device is waited for natively: callbacks run inside of a poll, and
//! nobody else polls.
//!
//! A look at the device never panics and never blocks for longer than [`SLICE`]: wgpu
//! holds a lock while it waits, and everything that destroys a buffer needs that lock.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_channel::oneshot::{Canceled, Receiver};

use super::{Faults, Gpu};

#[cfg(panic = "abort")]
#[path = "look_abort.rs"]
mod look;
#[cfg(panic = "unwind")]
#[path = "look_unwind.rs"]
mod look;

// Tests unwind, so the other twin is compiled for them by itself.
#[cfg(all(test, panic = "unwind"))]
#[path = "look_abort.rs"]
mod look_abort;

/// How long to spin before sleeping until the GPU interrupts. A sleep costs some
/// hundred microseconds on a server, which is more than a small batch takes.
const SPIN: Duration = Duration::from_micros(1000);

/// The longest that one look blocks.
const SLICE: Duration = Duration::from_millis(2);

/// What a look at the device brings. Whether the awaited work is done, its callback says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    Working,
    Lost,
}

/// How long a look may block.
#[derive(Clone, Debug)]
enum Patience {
    /// Not at all.
    None,
    /// Until this submission, or the last one if none is named, is done or the time is over.
    Until(Option<wgpu::SubmissionIndex>, Duration),
}

/// Waits for the work of one device; clones wait for the same device.
#[derive(Clone, Debug)]
pub(super) struct Poller {
    device: wgpu::Device,
    queue: wgpu::Queue,
    faults: Faults,
}

impl Poller {
    pub(super) fn new(device: &wgpu::Device, queue: &wgpu::Queue, faults: &Faults) -> Self {
        Poller {
            device: device.clone(),
            queue: queue.clone(),
            faults: faults.clone(),
        }
    }

    /// The device whose work it is.
    pub(super) fn device(&self) -> &wgpu::Device {
        &self.device
    }

    /// Waits until a submission, or the last one if none is named, is done and the callback
    /// that it lets run has told. `Err` where nothing will be told; with the loss of the
    /// device, its [`Faults`] know that.
    ///
    /// Each poll of this future blocks for a slice at most, so whoever drives it can look
    /// at other things in between.
    pub(super) async fn finish<T>(
        &self,
        submission: Option<wgpu::SubmissionIndex>,
        told: Receiver<T>,
    ) -> Result<T, Canceled> {
        let look = |patience| look::look((&self.device, &self.queue), &patience);
        finish(look, submission, told, &self.faults).await
    }
}

impl Gpu {
    /// Resolves once everything that was submitted is done, or the device is lost.
    pub fn idle(&self) -> impl Future<Output = ()> + Send + 'static {
        let (sender, receiver) = futures_channel::oneshot::channel();
        let poller = self.poller.clone();
        self.queue.on_submitted_work_done(move || {
            let _ = sender.send(()); // Nobody may wait any more.
        });
        async move {
            // What is lost does nothing more, either.
            let _ = poller.finish(None, receiver).await;
        }
    }
}

async fn finish<T>(
    look: impl Fn(Patience) -> Looked,
    submission: Option<wgpu::SubmissionIndex>,
    mut told: Receiver<T>,
    faults: &Faults,
) -> Result<T, Canceled> {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a wait spins changes no result"
    )]
    let start = Instant::now();
    loop {
        let spins = start.elapsed() < SPIN;
        let looked = look(match spins {
            true => Patience::None,
            false => Patience::Until(submission.clone(), SLICE),
        });
        if let Some(result) = told.try_recv()? {
            return Ok(result);
        }
        if looked == Looked::Lost {
            faults.lose("the driver reports a lost device");
        }
        // Callbacks for work are run before the one for the loss: none comes any more.
        if faults.check().is_err() {
            return Err(Canceled);
        }
        if spins {
            std::thread::yield_now();
        } else {
            Turn::default().await;
        }
    }
}

/// Lets whoever drives a future look at other things, and is woken at once.
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

/// Why the platform refused something.
pub(super) fn reason(error: impl std::error::Error) -> String {
    error.to_string()
}

#[cfg(test)]
#[path = "poll_tests.rs"]
mod tests;
