//! Waits for work on the device in the browser, where the event loop runs callbacks and
//! nothing has to be polled.

use futures_channel::oneshot::{Canceled, Receiver};

use super::DeviceErrors;
use crate::error::Error;

/// Waits for the work of one device.
#[derive(Clone, Debug)]
pub(super) struct Poller {
    device: wgpu::Device,
    errors: DeviceErrors,
}

impl Poller {
    pub(super) fn new(device: &wgpu::Device, _queue: &wgpu::Queue, errors: &DeviceErrors) -> Self {
        Poller {
            device: device.clone(),
            errors: errors.clone(),
        }
    }

    /// `DeviceLost` once the device is lost.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.errors.check()
    }

    /// The device that is waited for.
    pub(super) fn device(&self) -> &wgpu::Device {
        &self.device
    }

    /// Waits until a callback has sent `told`.
    pub(super) async fn finish<T>(
        &self,
        _submission: Option<wgpu::SubmissionIndex>,
        told: Receiver<T>,
    ) -> Result<T, Canceled> {
        told.await
    }
}

/// Browsers give no reason, and wgpu's texts for other platforms would be a tenth of the
/// package's size.
pub(super) fn reason(_error: impl std::error::Error) -> String {
    "the browser refused".into()
}
