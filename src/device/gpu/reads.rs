//! How results reach the host: through a buffer that is mapped once they are
//! copied there.

use super::mapped::Mapped;
use super::meter::Stamps;
use super::poll::Poller;
use super::pool::{Pool, class};
use super::ring::Ring;
use super::{Faults, Flight, Readback, scopes};
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

impl Reads {
    pub(super) fn new(pool: Pool) -> Self {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        Reads {
            ring: Ring::new(pool, usage),
        }
    }

    /// A buffer of at least `bytes`, of which no buffer has more than `limit`.
    pub(super) fn take(&self, device: &wgpu::Device, bytes: u64, limit: u64) -> Staged {
        let idle = self.ring.take(bytes);
        let buffer =
            idle.unwrap_or_else(|| self.ring.make(device, (bytes, class(bytes).min(limit))));
        Staged {
            buffer: Some(buffer),
            ring: self.ring.clone(),
        }
    }

    /// Bytes that are to be made for results of `bytes`.
    pub(super) fn lacks(&self, bytes: u64) -> u64 {
        match self.ring.fits(bytes) {
            true => 0,
            false => class(bytes),
        }
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
        (poller, faults): (&Poller, &Faults),
    ) -> Flight {
        let (sender, receiver) = futures_channel::oneshot::channel();
        self.buffer()
            .map_async(wgpu::MapMode::Read, 0..bytes, move |result| {
                // The flight may have been dropped by a disposed session.
                let _ = sender.send(result);
            });
        let faults = faults.clone();
        let poller = poller.clone();
        Box::pin(async move {
            let mapped = poller.finish(Some(submission), receiver).await;
            faults.check()?;
            let is_mapped = matches!(mapped, Ok(Ok(())));
            match is_mapped
                .then(|| Mapped::new(self, bytes, stamps))
                .flatten()
            {
                Some(mapped) => Ok(Readback::Mapped(mapped)),
                // A device that is there has no memory to map it in.
                None => {
                    let error = Error::OutOfMemory("a read-back was refused".into());
                    Err(scopes::judge(&poller, error).await)
                }
            }
        })
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            buffer.unmap(); // Also takes back a map that is still asked for.
            let all = buffer.size();
            self.ring.give(buffer, all);
        }
    }
}
