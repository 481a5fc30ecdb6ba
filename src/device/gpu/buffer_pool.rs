//! All buffers of a device: each is created, counted and destroyed here, none beyond the
//! memory budget.
//!
//! Sizes are rounded up to classes, four to a doubling: at most a fifth of a buffer is
//! rounding, and frames that grow soon create no more buffers. What a buffer is used for is
//! not known here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of the smallest class, so that small frames that grow create no buffers.
pub(super) const SMALLEST: u64 = 1 << 16;

/// What a pool holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) peak: u64,
    pub(super) buffers: u64,
    /// Bytes that were needed; the others are rounding.
    pub(super) live: u64,
}

/// The bytes of a buffer to be created.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Bytes that are needed.
    pub(super) needed: u64,
    /// Bytes that the buffer has: the same, or more by rounding.
    pub(super) allocated: u64,
}

impl Size {
    /// A buffer of exactly the bytes that are needed.
    pub(super) const fn exact(bytes: u64) -> Size {
        Size {
            needed: bytes,
            allocated: bytes,
        }
    }

    /// A buffer of the class that holds `bytes`, and of at most `limit`.
    pub(super) fn in_class(bytes: u64, limit: u64) -> Size {
        Size {
            needed: bytes,
            allocated: class(bytes).min(limit),
        }
    }
}

/// The buffers of one device. Clones are the same pool.
#[derive(Clone, Debug, Default)]
pub(super) struct BufferPool(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    held: Held,
    budget: u64,
    /// Buffers that are larger than needed, and by how many bytes.
    rounded: Vec<(wgpu::Buffer, u64)>,
}

impl Default for State {
    fn default() -> Self {
        State {
            held: Held::default(),
            budget: u64::MAX,
            rounded: Vec::new(),
        }
    }
}

impl BufferPool {
    /// Sets the memory budget, in bytes.
    pub(super) fn allow(&self, budget: u64) {
        self.lock().budget = budget;
    }

    /// Bytes that may be allocated now.
    pub(super) fn room(&self) -> u64 {
        let state = self.lock();
        state.budget.saturating_sub(state.held.bytes)
    }

    /// The most bytes of buffers that only spare copies or allocations.
    pub(super) fn spare(&self) -> u64 {
        self.lock().budget / 8
    }

    pub(super) fn held(&self) -> Held {
        self.lock().held
    }

    /// Creates a buffer.
    pub(super) fn make(
        &self,
        device: &wgpu::Device,
        size: Size,
        usage: wgpu::BufferUsages,
    ) -> wgpu::Buffer {
        let buffer = create(device, size.allocated, usage);
        let mut state = self.lock();
        let rounding = size.allocated - size.needed;
        if rounding > 0 {
            state.rounded.push((buffer.clone(), rounding));
        }
        let held = &mut state.held;
        held.bytes += size.allocated;
        held.live += size.needed;
        held.buffers += 1;
        held.peak = held.peak.max(held.bytes);
        buffer
    }

    /// Destroys a buffer. In the browser, dropping the handle would not free its memory.
    pub(super) fn destroy(&self, buffer: &wgpu::Buffer) {
        buffer.destroy();
        self.forget(buffer);
    }

    /// Stops counting a buffer that is about to be destroyed.
    pub(super) fn forget(&self, buffer: &wgpu::Buffer) {
        let mut state = self.lock();
        let rounded = state.rounded.iter().position(|(known, _)| known == buffer);
        let rounding = rounded.map_or(0, |at| state.rounded.swap_remove(at).1);
        let held = &mut state.held;
        held.bytes -= buffer.size();
        held.live -= buffer.size() - rounding;
        held.buffers -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a buffer that the pool does not count.
#[inline(never)] // An inlined copy at each caller costs the package bytes.
pub(super) fn create(device: &wgpu::Device, bytes: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage,
        mapped_at_creation: false,
    })
}

/// The bytes of the smallest class that holds `bytes`.
pub(super) fn class(bytes: u64) -> u64 {
    let bytes = bytes.max(SMALLEST);
    bytes.next_multiple_of(bytes.next_power_of_two() / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_a_quarter_larger_at_most() {
        for power in 17..40 {
            for bytes in [1 << power, (1 << power) + 4, (1 << power) * 2 - 4] {
                let size = class(bytes);
                assert!(
                    (bytes..=bytes + bytes / 4).contains(&size),
                    "{bytes}: {size}"
                );
                assert_eq!(class(size), size);
                assert_eq!(size % 16, 0);
            }
        }
        assert_eq!([0, 1, SMALLEST].map(class), [SMALLEST; 3]);
        let classes: std::collections::BTreeSet<u64> =
            (0..4096).map(|k| class((1 << 20) + k * 256)).collect();
        assert_eq!(classes.len(), 5, "four to a doubling, and its start");
    }
}
