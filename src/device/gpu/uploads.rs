//! How operands reach the device: large ones through buffers that stay mapped
//! between pieces, because a queue's own write copies them once more.
//!
//! Nothing here ever waits. A piece that finds no mapped buffer goes through the
//! queue, and leaves a buffer for the next one of its size.

use std::cell::Cell;

use super::pool::{Pool, SMALLEST};
use super::ring::Ring;
use crate::plan::Run;
use crate::tensor::{Arena, Span, WORD};

#[cfg(not(target_arch = "wasm32"))]
#[path = "fill_native.rs"]
mod fill;
#[cfg(target_arch = "wasm32")]
#[path = "fill_web.rs"]
mod fill;

/// Bytes from which a mapped buffer is worth its map.
const STAGED: u64 = 192 << 10;

/// So many pieces later a buffer is mapped no further than they needed.
const PIECES: u32 = 8;

/// Bytes of mapped buffers that are kept at most.
const KEPT: u64 = 32 << 20;

/// The mapped buffers. Invariant: an idle one is mapped as far as the ring knows.
#[derive(Debug)]
pub(super) struct Uploads {
    pool: Pool,
    ring: Ring,
    extent: Cell<Extent>,
}

/// How far buffers are mapped: a browser sends all that was, written to or not.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// Bytes of the largest of the last pieces, and of those before them.
    most: u64,
    before: u64,
    /// How many the last ones are.
    pieces: u32,
}

impl Extent {
    /// With one more piece.
    fn and(self, bytes: u64) -> Extent {
        if self.pieces < PIECES {
            return Extent {
                most: self.most.max(bytes),
                pieces: self.pieces + 1,
                ..self
            };
        }
        Extent {
            most: bytes,
            before: self.most,
            pieces: 1,
        }
    }

    fn bytes(self) -> u64 {
        self.most.max(self.before).next_multiple_of(SMALLEST)
    }
}

/// Writes to a mapped buffer.
type Fill<'a> = dyn Fn(&wgpu::Buffer) -> Result<(), wgpu::MapRangeError> + 'a;

/// Operands that were written to a mapped buffer.
#[must_use = "its copy is to be encoded, and its buffer mapped again"]
pub(super) struct Written {
    buffer: wgpu::Buffer,
    bytes: u64,
}

impl Uploads {
    pub(super) fn new(pool: Pool) -> Self {
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        Uploads {
            ring: Ring::new(pool.clone(), usage),
            pool,
            extent: Cell::default(),
        }
    }

    /// Copies runs of the arena to the start of a mapped buffer, if they are many
    /// bytes and there is such a buffer.
    pub(super) fn write(&self, arena: &Arena, runs: &[Run], bytes: u64) -> Option<Written> {
        self.write_with(bytes, &|buffer| fill::fill((buffer, bytes), (arena, runs)))
    }

    /// The same for what lies elsewhere: `fill` copies it to the buffer.
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

    /// Maps a buffer for the next such piece, where this one found none; a new one, if
    /// need be. No buffer has more bytes than `limit`.
    pub(super) fn prepare(&self, device: &wgpu::Device, (bytes, limit): (u64, u64)) {
        if bytes < STAGED {
            return;
        }
        if let Some(buffer) = self.ring.take_any(bytes) {
            buffer.unmap();
            self.map(buffer);
        } else if self.wants(bytes) {
            let size = bytes.next_multiple_of(SMALLEST).min(limit);
            self.map(self.ring.make(device, (bytes, size)));
        }
    }

    /// Whether a piece of so many bytes makes nothing.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.ring.fits(bytes) || !self.wants(bytes)
    }

    /// Destroys what is not in use.
    pub(super) fn trim(&self) {
        self.ring.trim();
    }

    /// Destroys what is not in use, and the rest when it returns.
    pub(super) fn destroy(&self) {
        self.ring.destroy();
    }

    /// Takes back what was submitted.
    pub(super) fn reclaim(&self, written: Written) {
        self.map(written.buffer);
    }

    /// Whether a buffer of so many bytes may be made.
    fn wants(&self, bytes: u64) -> bool {
        let most = KEPT.min(self.pool.spare());
        // What is made for speed alone leaves room for what is needed.
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
    /// Encodes the copy to where the operands belong.
    pub(super) fn copy_to(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        (target, at): (&wgpu::Buffer, u64),
    ) {
        encoder.copy_buffer_to_buffer(&self.buffer, 0, target, at, self.bytes);
    }
}

/// Shows `visit` what of the arena goes where, in bytes of the target.
pub(super) fn each_slice(arena: &Arena, runs: &[Run], visit: &mut dyn FnMut(u32, &[u8])) {
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
