//! Natively callbacks run inside `poll`, and nobody else calls it.

/// Waits until everything submitted is done and its callbacks have run.
pub(super) fn finish(device: &wgpu::Device) {
    // A failed poll means a lost device; the map's own callback reports it.
    let _ = device.poll(wgpu::PollType::wait_indefinitely());
}

/// Why the platform refused something.
pub(super) fn reason(error: impl std::error::Error) -> String {
    error.to_string()
}
