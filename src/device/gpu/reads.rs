//! How results reach the host: through a buffer that is mapped once they are
//! copied there.

use super::mapped::Mapped;
use super::memory::{Held, SMALLEST};
use super::meter::Stamps;
use super::poll;
use super::ring::Ring;
use super::{Faults, Flight, Readback};
use crate::error::Error;

/// The buffers that results are mapped in.
#[derive(Clone, Debug)]
pub(super) struct Reads {
    pub(super) ring: Ring,
}

/// Such a buffer in use; it returns to the ring when this is dropped.
#[derive(Debug)]
pub(super) struct Staged {
    buffer: Option<wgpu::Buffer>,
    ring: Ring,
}

impl Default for Reads {
    fn default() -> Self {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        Reads {
            ring: Ring::new(usage),
        }
    }
}

impl Reads {
    /// A buffer of at least `bytes`.
    pub(super) fn take(&self, device: &wgpu::Device, bytes: u64) -> Staged {
        let size = bytes.max(SMALLEST).next_power_of_two();
        let idle = self.ring.take(bytes);
        let buffer = idle.unwrap_or_else(|| self.ring.make(device, size));
        Staged {
            buffer: Some(buffer),
            ring: self.ring.clone(),
        }
    }

    pub(super) fn held(&self) -> Held {
        self.ring.held()
    }
}

impl Staged {
    pub(super) fn buffer(&self) -> &wgpu::Buffer {
        self.buffer.as_ref().expect("held until dropped")
    }

    /// Maps the first `bytes`, which a submission fills, and where in them moments
    /// were written.
    pub(super) fn read(
        self,
        (bytes, stamps): (u64, Option<Stamps>),
        submission: wgpu::SubmissionIndex,
        (device, faults): (&wgpu::Device, &Faults),
    ) -> Flight {
        let (sender, receiver) = futures_channel::oneshot::channel();
        self.buffer()
            .map_async(wgpu::MapMode::Read, 0..bytes, move |result| {
                // The flight may have been dropped by a disposed session.
                let _ = sender.send(result);
            });
        let faults = faults.clone();
        let device = device.clone();
        Box::pin(async move {
            let mapped = poll::finish(&device, submission, receiver).await;
            faults.check()?;
            match mapped {
                Ok(Ok(())) => Ok(Readback::Mapped(Mapped::new(self, bytes, stamps)?)),
                Ok(Err(_)) | Err(_) => Err(Error::DeviceLost("a read-back was refused".into())),
            }
        })
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            buffer.unmap(); // Also takes back a map that is still asked for.
            self.ring.give(buffer);
        }
    }
}
