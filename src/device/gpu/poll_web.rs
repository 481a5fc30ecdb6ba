//! In the browser the event loop runs callbacks; there is nothing to poll.

/// Returns at once; the map's promise settles by itself.
pub(super) fn finish(_device: &wgpu::Device) {}

/// Browsers give no reason, and wgpu's texts for other platforms would be a
/// tenth of the package.
pub(super) fn reason(_error: impl std::error::Error) -> String {
    "the browser refused".into()
}
