//! Staging buffers: buffers that the host maps, each used by one launch at a time and kept for
//! later ones.
//!
//! There are two rings: results are read through one, operands are written through the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::buffer_pool::{BufferPool, Size};

/// A ring of staging buffers. Clones are the same ring.
#[derive(Clone, Debug)]
pub(super) struct StagingRing {
    pool: BufferPool,
    usage: wgpu::BufferUsages,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Each with how many of its bytes are mapped, or need no map.
    idle: Vec<(wgpu::Buffer, u64)>,
    /// Bytes of all buffers of the ring.
    bytes: u64,
    is_destroyed: bool,
}

impl StagingRing {
    /// A ring of buffers for one usage.
    pub(super) fn new(pool: BufferPool, usage: wgpu::BufferUsages) -> Self {
        let state = Arc::default();
        StagingRing { pool, usage, state }
    }

    /// The idle buffer with the fewest usable bytes that are at least `bytes`.
    pub(super) fn take(&self, bytes: u64) -> Option<wgpu::Buffer> {
        self.take_by(bytes, |(_, usable)| *usable)
    }

    /// The smallest idle buffer of at least `bytes`, usable or not.
    pub(super) fn take_any(&self, bytes: u64) -> Option<wgpu::Buffer> {
        self.take_by(bytes, |(buffer, _)| buffer.size())
    }

    fn take_by(
        &self,
        bytes: u64,
        has: impl Fn(&(wgpu::Buffer, u64)) -> u64,
    ) -> Option<wgpu::Buffer> {
        let mut state = self.lock();
        let mut best: Option<(u64, usize)> = None;
        for (index, idle) in state.idle.iter().enumerate() {
            let has = has(idle);
            if has >= bytes && best.is_none_or(|(least, _)| has < least) {
                best = Some((has, index));
            }
        }
        best.map(|(_, index)| state.idle.swap_remove(index).0)
    }

    /// A new buffer, in use.
    pub(super) fn make(&self, device: &wgpu::Device, size: Size) -> wgpu::Buffer {
        let mut state = self.lock();
        // Launches have outgrown a smaller buffer: the new one takes its place.
        let is_small = |(buffer, _): &(wgpu::Buffer, u64)| buffer.size() < size.allocated;
        if let Some(small) = state.idle.iter().position(is_small) {
            let (small, _) = state.idle.swap_remove(small);
            self.destroy_one(&mut state, &small);
        }
        state.bytes += size.allocated;
        self.pool.make(device, size, self.usage)
    }

    /// Takes a buffer back, of which `usable` bytes are mapped, or need no map.
    pub(super) fn give(&self, buffer: wgpu::Buffer, usable: u64) {
        let mut state = self.lock();
        if state.is_destroyed {
            self.destroy_one(&mut state, &buffer);
        } else {
            state.idle.push((buffer, usable));
        }
    }

    /// Destroys a buffer that is in use, instead of taking it back.
    pub(super) fn discard(&self, buffer: &wgpu::Buffer) {
        self.destroy_one(&mut self.lock(), buffer);
    }

    /// Whether an idle buffer has `bytes`.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        let state = self.lock();
        state.idle.iter().any(|(buffer, _)| buffer.size() >= bytes)
    }

    /// Bytes of all buffers, in use or idle.
    pub(super) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Destroys the idle buffers, and the others as they come back.
    pub(super) fn destroy(&self) {
        self.lock().is_destroyed = true;
        self.trim();
    }

    /// Destroys the idle buffers.
    pub(super) fn trim(&self) {
        let mut state = self.lock();
        for (buffer, _) in std::mem::take(&mut state.idle) {
            self.destroy_one(&mut state, &buffer);
        }
    }

    fn destroy_one(&self, state: &mut State, buffer: &wgpu::Buffer) {
        state.bytes -= buffer.size();
        self.pool.destroy(buffer);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
