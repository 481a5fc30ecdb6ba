//! In the browser the event loop runs callbacks; there is nothing to poll.

use futures_channel::oneshot::{Canceled, Receiver};

use super::Faults;

/// Waits for the work of one device.
#[derive(Clone, Debug)]
pub(super) struct Poller {
    device: wgpu::Device,
}

impl Poller {
    pub(super) fn new(device: &wgpu::Device, _queue: &wgpu::Queue, _faults: &Faults) -> Self {
        let device = device.clone();
        Poller { device }
    }

    /// The device whose work it is.
    pub(super) fn device(&self) -> &wgpu::Device {
        &self.device
    }

    /// Waits for what a callback tells.
    pub(super) async fn finish<T>(
        &self,
        _submission: Option<wgpu::SubmissionIndex>,
        told: Receiver<T>,
    ) -> Result<T, Canceled> {
        told.await
    }
}

/// Browsers give no reason, and wgpu's texts for other platforms would be a
/// tenth of the package.
pub(super) fn reason(_error: impl std::error::Error) -> String {
    "the browser refused".into()
}
