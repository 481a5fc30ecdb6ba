//! How results reach the host: copied to a staging buffer, which is mapped once the submission
//! is done.

use super::buffer_pool::{BufferPool, Size, class};
use super::launch_timer::Timestamps;
use super::mapped::Mapped;
use super::poll::Poller;
use super::staging_ring::StagingRing;
use super::{Flight, Readback, error_scopes};
use crate::error::Error;

/// The staging buffers of results.
#[derive(Clone, Debug)]
pub(super) struct ReadBack {
    pub(super) ring: StagingRing,
}

/// A staging buffer in use. Dropping it gives the buffer back to the ring.
#[derive(Debug)]
pub(super) struct Staged {
    buffer: Option<wgpu::Buffer>,
    ring: StagingRing,
}

impl ReadBack {
    pub(super) fn new(pool: BufferPool) -> Self {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        ReadBack {
            ring: StagingRing::new(pool, usage),
        }
    }

    /// A staging buffer of at least `bytes`. No buffer may have more than `limit` bytes.
    pub(super) fn take(&self, device: &wgpu::Device, bytes: u64, limit: u64) -> Staged {
        let idle = self.ring.take(bytes);
        let buffer = idle.unwrap_or_else(|| self.ring.make(device, Size::in_class(bytes, limit)));
        Staged {
            buffer: Some(buffer),
            ring: self.ring.clone(),
        }
    }

    /// Bytes to be allocated so that results of `bytes` can be read.
    pub(super) fn lacks(&self, bytes: u64) -> u64 {
        match self.ring.fits(bytes) {
            true => 0,
            false => class(bytes),
        }
    }
}

/// What a submission copies to a staging buffer.
pub(super) struct Copied {
    /// The first bytes of the buffer, timestamps included.
    pub(super) bytes: u64,
    /// Where timestamps lie among these bytes.
    pub(super) stamps: Option<Timestamps>,
    pub(super) submission: wgpu::SubmissionIndex,
}

impl Staged {
    pub(super) fn buffer(&self) -> &wgpu::Buffer {
        self.buffer.as_ref().expect("held until dropped")
    }

    /// Maps what a submission copies here.
    pub(super) fn read(self, copied: Copied, poller: &Poller) -> Flight {
        let Copied {
            bytes,
            stamps,
            submission,
        } = copied;
        let (sender, receiver) = futures_channel::oneshot::channel();
        self.buffer()
            .map_async(wgpu::MapMode::Read, 0..bytes, move |result| {
                // The flight may have been dropped by a disposed session.
                let _ = sender.send(result);
            });
        let poller = poller.clone();
        Box::pin(async move {
            let mapped = poller.finish(Some(submission), receiver).await;
            poller.check()?;
            let is_mapped = matches!(mapped, Ok(Ok(())));
            match is_mapped
                .then(|| Mapped::new(self, bytes, stamps))
                .flatten()
            {
                Some(mapped) => Ok(Readback::Mapped(mapped)),
                // The device is not lost, so there was no memory for the mapped range.
                None => {
                    let error = Error::OutOfMemory("a read-back was refused".into());
                    Err(error_scopes::judge(&poller, error).await)
                }
            }
        })
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            buffer.unmap(); // Cancels a map that is still pending, too.
            let all = buffer.size();
            self.ring.give(buffer, all);
        }
    }
}
