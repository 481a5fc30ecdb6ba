//! In the browser the event loop runs callbacks; there is nothing to poll.

use futures_channel::oneshot::{Canceled, Receiver};

/// Waits for what a callback tells.
pub(super) async fn finish<T>(
    _device: &wgpu::Device,
    _submission: wgpu::SubmissionIndex,
    told: Receiver<T>,
) -> Result<T, Canceled> {
    told.await
}

/// Browsers give no reason, and wgpu's texts for other platforms would be a
/// tenth of the package.
pub(super) fn reason(_error: impl std::error::Error) -> String {
    "the browser refused".into()
}
