//! In the browser the event loop runs callbacks; there is nothing to poll.

/// Returns at once; the map's promise settles by itself.
pub(super) fn finish(_device: &wgpu::Device) {}
