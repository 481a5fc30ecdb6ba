//! Natively callbacks run inside `poll`, and nobody else calls it.

use std::time::{Duration, Instant};

use futures_channel::oneshot::{Canceled, Receiver};

/// How long to spin before sleeping until the GPU interrupts. A sleep costs some
/// hundred microseconds on a server, which is more than a small batch takes.
const SPIN: Duration = Duration::from_micros(1000);

/// Waits until a submission is done and the callback that it lets run has told.
pub(super) async fn finish<T>(
    device: &wgpu::Device,
    submission: wgpu::SubmissionIndex,
    mut told: Receiver<T>,
) -> Result<T, Canceled> {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a wait spins changes no result"
    )]
    let start = Instant::now();
    while start.elapsed() < SPIN {
        // A failed poll means a lost device; the callback reports it.
        let polled = device.poll(wgpu::PollType::Poll);
        if let Some(result) = told.try_recv()? {
            return Ok(result);
        }
        if polled.is_err() {
            break;
        }
        std::thread::yield_now();
    }
    let _ = device.poll(wgpu::PollType::Wait {
        submission_index: Some(submission),
        timeout: None,
    });
    told.await
}

/// Why the platform refused something.
pub(super) fn reason(error: impl std::error::Error) -> String {
    error.to_string()
}
