//! Natively callbacks run inside `poll`, and nobody else calls it.

use std::time::{Duration, Instant};

/// How long to spin before sleeping until the GPU interrupts. A sleep costs some
/// hundred microseconds on a server, which is more than a small batch takes.
const SPIN: Duration = Duration::from_micros(1000);

/// Waits until everything submitted is done and its callbacks have run.
pub(super) fn finish(device: &wgpu::Device) {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a wait spins changes no result"
    )]
    let start = Instant::now();
    while start.elapsed() < SPIN {
        match device.poll(wgpu::PollType::Poll) {
            Ok(status) if status.is_queue_empty() => return,
            Ok(_) => std::thread::yield_now(),
            Err(_) => break,
        }
    }
    // A failed poll means a lost device; the map's own callback reports it.
    let _ = device.poll(wgpu::PollType::wait_indefinitely());
}

/// Why the platform refused something.
pub(super) fn reason(error: impl std::error::Error) -> String {
    error.to_string()
}
