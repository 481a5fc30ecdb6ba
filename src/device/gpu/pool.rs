//! The device's memory as a whole: every buffer is made and destroyed here, and
//! none beyond the budget.
//!
//! Sizes are of classes, four to a doubling, so that what is rounded is a fifth
//! of a buffer at most, and a growing frame soon makes nothing. What a buffer is
//! for is not known here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Smallest buffer of a class, so that a growing frame settles at once.
pub(super) const SMALLEST: u64 = 1 << 16;

/// Bytes and buffers held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) peak: u64,
    pub(super) buffers: u64,
    /// Bytes that were asked for; the rest is rounding.
    pub(super) live: u64,
}

/// The buffers of one device; its clones are the same pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    held: Held,
    budget: u64,
    /// Buffers that are larger than what was asked for, and by how much.
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

impl Pool {
    /// Holds no more than so many bytes from here on.
    pub(super) fn allow(&self, budget: u64) {
        self.lock().budget = budget;
    }

    /// Bytes that may be made now.
    pub(super) fn room(&self) -> u64 {
        let state = self.lock();
        state.budget.saturating_sub(state.held.bytes)
    }

    /// The most bytes that buffers kept for speed alone may take.
    pub(super) fn spare(&self) -> u64 {
        self.lock().budget / 8
    }

    pub(super) fn held(&self) -> Held {
        self.lock().held
    }

    /// A buffer of `size` bytes, of which `asked` are needed.
    pub(super) fn make(
        &self,
        device: &wgpu::Device,
        (asked, size): (u64, u64),
        usage: wgpu::BufferUsages,
    ) -> wgpu::Buffer {
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        });
        let mut state = self.lock();
        if size > asked {
            state.rounded.push((buffer.clone(), size - asked));
        }
        let held = &mut state.held;
        held.bytes += size;
        held.live += asked;
        held.buffers += 1;
        held.peak = held.peak.max(held.bytes);
        buffer
    }

    /// Frees a buffer: a drop would not in the browser.
    pub(super) fn destroy(&self, buffer: &wgpu::Buffer) {
        buffer.destroy();
        self.forget(buffer);
    }

    /// Counts a buffer no more, which is about to be destroyed.
    pub(super) fn forget(&self, buffer: &wgpu::Buffer) {
        let mut state = self.lock();
        let rounded = state.rounded.iter().position(|(known, _)| known == buffer);
        let unasked = rounded.map_or(0, |at| state.rounded.swap_remove(at).1);
        let held = &mut state.held;
        held.bytes -= buffer.size();
        held.live -= buffer.size() - unasked;
        held.buffers -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The size of the class that holds so many bytes.
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
