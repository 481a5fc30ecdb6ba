//! Buffers that the host maps, each used by one piece at a time and kept for the
//! next ones.
//!
//! There are two rings: results are read through the one, operands written
//! through the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::pool::Pool;

/// A ring; its clones are the same ring.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pool: Pool,
    usage: wgpu::BufferUsages,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<wgpu::Buffer>,
    /// Bytes of all its buffers.
    bytes: u64,
    destroyed: bool,
}

impl Ring {
    /// A ring of buffers for one usage.
    pub(super) fn new(pool: Pool, usage: wgpu::BufferUsages) -> Self {
        let state = Arc::default();
        Ring { pool, usage, state }
    }

    /// The smallest idle buffer of at least `bytes` and at most `most`, if there is one.
    pub(super) fn take(&self, bytes: u64, most: u64) -> Option<wgpu::Buffer> {
        let mut state = self.lock();
        let mut best: Option<(u64, usize)> = None;
        for (index, buffer) in state.idle.iter().enumerate() {
            let size = buffer.size();
            let holds = (bytes..=most).contains(&size);
            if holds && best.is_none_or(|(least, _)| size < least) {
                best = Some((size, index));
            }
        }
        best.map(|(_, index)| state.idle.swap_remove(index))
    }

    /// A new buffer of `size` bytes, of which `asked` are needed. It is in use.
    pub(super) fn make(&self, device: &wgpu::Device, (asked, size): (u64, u64)) -> wgpu::Buffer {
        let mut state = self.lock();
        // One that has become too small will not be needed again.
        if let Some(small) = state.idle.iter().position(|buffer| buffer.size() < size) {
            let small = state.idle.swap_remove(small);
            self.destroy_one(&mut state, &small);
        }
        state.bytes += size;
        self.pool.make(device, (asked, size), self.usage)
    }

    /// Takes a buffer back.
    pub(super) fn give(&self, buffer: wgpu::Buffer) {
        let mut state = self.lock();
        if state.destroyed {
            self.destroy_one(&mut state, &buffer);
        } else {
            state.idle.push(buffer);
        }
    }

    /// Destroys a buffer in use instead of taking it back.
    pub(super) fn discard(&self, buffer: &wgpu::Buffer) {
        self.destroy_one(&mut self.lock(), buffer);
    }

    /// Whether [`Ring::take`] finds one.
    pub(super) fn fits(&self, bytes: u64, most: u64) -> bool {
        let state = self.lock();
        let mut sizes = state.idle.iter().map(wgpu::Buffer::size);
        sizes.any(|size| (bytes..=most).contains(&size))
    }

    /// Bytes of its buffers, in use or not.
    pub(super) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Destroys what is not in use, and the rest when it returns.
    pub(super) fn destroy(&self) {
        self.lock().destroyed = true;
        self.trim();
    }

    /// Destroys what is not in use.
    pub(super) fn trim(&self) {
        let mut state = self.lock();
        for buffer in std::mem::take(&mut state.idle) {
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
