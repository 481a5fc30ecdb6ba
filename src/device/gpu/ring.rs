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
    /// Each with how many of its bytes can be used as it is.
    idle: Vec<(wgpu::Buffer, u64)>,
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

    /// The idle buffer with the fewest bytes of use that are at least `bytes`, if there
    /// is one.
    pub(super) fn take(&self, bytes: u64) -> Option<wgpu::Buffer> {
        self.take_by(bytes, |(_, usable)| *usable)
    }

    /// The smallest idle buffer of at least `bytes`, whatever of it can be used.
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

    /// A new buffer of `size` bytes, of which `asked` are needed. It is in use.
    pub(super) fn make(&self, device: &wgpu::Device, (asked, size): (u64, u64)) -> wgpu::Buffer {
        let mut state = self.lock();
        // One that has become too small will not be needed again.
        let is_small = |(buffer, _): &(wgpu::Buffer, u64)| buffer.size() < size;
        if let Some(small) = state.idle.iter().position(is_small) {
            let (small, _) = state.idle.swap_remove(small);
            self.destroy_one(&mut state, &small);
        }
        state.bytes += size;
        self.pool.make(device, (asked, size), self.usage)
    }

    /// Takes a buffer back, of which so many bytes can be used as it is.
    pub(super) fn give(&self, buffer: wgpu::Buffer, usable: u64) {
        let mut state = self.lock();
        if state.destroyed {
            self.destroy_one(&mut state, &buffer);
        } else {
            state.idle.push((buffer, usable));
        }
    }

    /// Destroys a buffer in use instead of taking it back.
    pub(super) fn discard(&self, buffer: &wgpu::Buffer) {
        self.destroy_one(&mut self.lock(), buffer);
    }

    /// Whether an idle buffer has `bytes`.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        let state = self.lock();
        state.idle.iter().any(|(buffer, _)| buffer.size() >= bytes)
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
