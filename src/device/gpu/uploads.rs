//! How operands reach the device: large uploads through staging buffers that are mapped
//! between launches, because the queue's own write copies the words once more.
//!
//! Nothing here ever waits. An upload that finds no mapped buffer goes through the queue, and
//! has a buffer mapped for the next upload of its size.

use std::cell::Cell;

use super::buffer_pool::{BufferPool, SMALLEST, Size};
use super::staging_ring::StagingRing;
use crate::plan::CopyRun;
use crate::tensor::{Arena, Span, WORD};

#[cfg(not(target_arch = "wasm32"))]
#[path = "mapped_write_native.rs"]
mod mapped_write;
#[cfg(target_arch = "wasm32")]
#[path = "mapped_write_web.rs"]
mod mapped_write;

/// Bytes from which writing to a mapped buffer is faster than the queue's write.
const STAGED: u64 = 192 << 10;

/// Uploads after which a shorter range is mapped, if none of them needed more.
const WINDOW: u32 = 8;

/// The most bytes of staging buffers for uploads.
const MOST: u64 = 32 << 20;

/// The staging buffers of uploads. Invariant: of an idle buffer as many bytes are mapped as the
/// ring says are usable.
#[derive(Debug)]
pub(super) struct Uploads {
    pool: BufferPool,
    ring: StagingRing,
    extent: Cell<Extent>,
}

/// How many bytes of a buffer are mapped: a browser sends the whole mapped range to the GPU's
/// process, whether it was written or not.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// Bytes of the largest upload of this window.
    most: u64,
    /// Bytes of the largest upload of the window before.
    before: u64,
    /// Uploads in this window so far.
    count: u32,
}

impl Extent {
    /// The extent after one more upload.
    fn and(self, bytes: u64) -> Extent {
        if self.count < WINDOW {
            return Extent {
                most: self.most.max(bytes),
                count: self.count + 1,
                ..self
            };
        }
        Extent {
            most: bytes,
            before: self.most,
            count: 1,
        }
    }

    fn bytes(self) -> u64 {
        self.most.max(self.before).next_multiple_of(SMALLEST)
    }
}

/// A function that writes to a mapped buffer.
type Fill<'a> = dyn Fn(&wgpu::Buffer) -> Result<(), wgpu::MapRangeError> + 'a;

/// A staging buffer that holds an upload.
#[must_use = "the copy is to be encoded, and the buffer mapped again"]
pub(super) struct Written {
    buffer: wgpu::Buffer,
    bytes: u64,
}

impl Uploads {
    pub(super) fn new(pool: BufferPool) -> Self {
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        Uploads {
            ring: StagingRing::new(pool.clone(), usage),
            pool,
            extent: Cell::default(),
        }
    }

    /// Copies runs of the arena to the start of a mapped buffer. `None` where the bytes are few,
    /// or no buffer is mapped.
    pub(super) fn write(&self, arena: &Arena, runs: &[CopyRun], bytes: u64) -> Option<Written> {
        self.write_with(bytes, &|buffer| {
            mapped_write::copy(buffer, bytes, arena, runs)
        })
    }

    /// Writes words from outside of an arena, which `fill` copies to a mapped buffer. `None` as
    /// for [`Uploads::write`].
    pub(super) fn write_with(&self, bytes: u64, fill: &Fill<'_>) -> Option<Written> {
        if bytes < STAGED {
            return None;
        }
        self.extent.set(self.extent.get().and(bytes));
        let buffer = self.ring.take(bytes)?;
        if fill(&buffer).is_err() {
            self.ring.discard(&buffer); // The device is lost.
            return None;
        }
        buffer.unmap();
        Some(Written { buffer, bytes })
    }

    /// Maps a buffer for the next upload of `bytes`, after one that found none; creates the
    /// buffer if need be. No buffer may have more than `limit` bytes.
    pub(super) fn prepare(&self, device: &wgpu::Device, bytes: u64, limit: u64) {
        if bytes < STAGED {
            return;
        }
        if let Some(buffer) = self.ring.take_any(bytes) {
            buffer.unmap();
            self.map(buffer);
        } else if self.wants(bytes) {
            let size = Size {
                needed: bytes,
                allocated: bytes.next_multiple_of(SMALLEST).min(limit),
            };
            self.map(self.ring.make(device, size));
        }
    }

    /// Whether an upload of `bytes` creates no buffer.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.ring.fits(bytes) || !self.wants(bytes)
    }

    /// Destroys the idle buffers.
    pub(super) fn trim(&self) {
        self.ring.trim();
    }

    /// Destroys the idle buffers, and the others as they come back.
    pub(super) fn destroy(&self) {
        self.ring.destroy();
    }

    /// Takes back a buffer whose copy was submitted.
    pub(super) fn reclaim(&self, written: Written) {
        self.map(written.buffer);
    }

    /// Whether a buffer of `bytes` may be created.
    fn wants(&self, bytes: u64) -> bool {
        let most = MOST.min(self.pool.spare());
        // Staging buffers only spare copies, so they leave most of the budget to others.
        bytes >= STAGED && self.ring.bytes() + bytes <= most && 4 * bytes <= self.pool.room()
    }

    fn map(&self, buffer: wgpu::Buffer) {
        let ring = self.ring.clone();
        let mapped = buffer.clone();
        let usable = self.extent.get().bytes().min(buffer.size());
        buffer.map_async(
            wgpu::MapMode::Write,
            0..usable,
            move |result| match result {
                Ok(()) => ring.give(mapped, usable),
                Err(_) => ring.discard(&mapped),
            },
        );
    }
}

impl Written {
    /// Encodes the copy to byte `at` of `target`.
    pub(super) fn copy_to(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        target: &wgpu::Buffer,
        at: u64,
    ) {
        encoder.copy_buffer_to_buffer(&self.buffer, 0, target, at, self.bytes);
    }
}

/// Calls `visit` with the bytes of each run, and their place in the target.
pub(super) fn each_slice(arena: &Arena, runs: &[CopyRun], visit: &mut dyn FnMut(u32, &[u8])) {
    for run in runs {
        let mut to = run.to;
        let span = Span {
            at: run.from,
            words: run.words,
        };
        arena.each_slice(span, &mut |words| {
            visit(to * WORD, bytemuck::cast_slice(words));
            #[expect(clippy::cast_possible_truncation, reason = "a part of a run")]
            let count = words.len() as u32;
            to += count;
        });
    }
}
