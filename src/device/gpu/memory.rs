//! The device's buffers: one for each slot, and a ring for read-backs.
//!
//! Buffers grow to the next power of two and are destroyed by hand, because a
//! drop frees nothing in the browser. Trimming when idle is not done here.

use std::sync::{Arc, Mutex, PoisonError};

use crate::plan::Slot;

/// Smallest buffer, so that a growing frame settles at once.
const SMALLEST: u64 = 1 << 16;

/// Bytes and buffers held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) peak: u64,
    pub(super) buffers: u64,
}

impl Held {
    pub(super) fn plus(self, other: Held) -> Held {
        Held {
            bytes: self.bytes + other.bytes,
            peak: self.peak + other.peak,
            buffers: self.buffers + other.buffers,
        }
    }

    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.buffers += 1;
        self.peak = self.peak.max(self.bytes);
    }

    fn remove(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.buffers -= 1;
    }
}

/// A buffer for each slot of a plan.
#[derive(Debug, Default)]
pub(super) struct Memory {
    slots: Vec<Option<wgpu::Buffer>>,
    held: Held,
}

impl Memory {
    /// Makes a slot hold `bytes`; `true` if it has a new buffer.
    pub(super) fn grow(
        &mut self,
        device: &wgpu::Device,
        slot: Slot,
        bytes: u64,
        limit: u64,
    ) -> bool {
        let index = slot.0 as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, None);
        }
        if self.slots[index]
            .as_ref()
            .is_some_and(|buffer| buffer.size() >= bytes)
        {
            return false;
        }
        if let Some(old) = self.slots[index].take() {
            self.held.remove(old.size());
            old.destroy();
        }
        let size = bytes.max(SMALLEST).next_power_of_two().min(limit);
        let uses = wgpu::BufferUsages::STORAGE
            | if slot == Slot::INPUTS {
                wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST
            } else {
                wgpu::BufferUsages::COPY_SRC
            };
        self.slots[index] = Some(create(device, size, uses));
        self.held.add(size);
        true
    }

    /// Whether a slot holds `bytes` as it is.
    pub(super) fn fits(&self, slot: Slot, bytes: u64) -> bool {
        let buffer = self.slots.get(slot.0 as usize).and_then(Option::as_ref);
        buffer.is_some_and(|buffer| buffer.size() >= bytes)
    }

    /// The buffer of a slot that was grown before.
    pub(super) fn buffer(&self, slot: Slot) -> &wgpu::Buffer {
        self.slots[slot.0 as usize]
            .as_ref()
            .expect("grown before it is used")
    }

    pub(super) fn held(&self) -> Held {
        self.held
    }

    pub(super) fn destroy(&mut self) {
        for buffer in self.slots.drain(..).flatten() {
            self.held.remove(buffer.size());
            buffer.destroy();
        }
    }
}

/// Staging buffers that results are mapped in; each returns to the ring when
/// its [`Staged`] is dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads {
    ring: Arc<Mutex<Ring>>,
}

#[derive(Debug, Default)]
struct Ring {
    idle: Vec<wgpu::Buffer>,
    held: Held,
    destroyed: bool,
}

/// A staging buffer in use.
#[derive(Debug)]
pub(super) struct Staged {
    buffer: Option<wgpu::Buffer>,
    reads: Reads,
}

impl Reads {
    /// A staging buffer of at least `bytes`.
    pub(super) fn take(&self, device: &wgpu::Device, bytes: u64) -> Staged {
        let mut ring = self.lock();
        let fitting = ring.idle.iter().position(|buffer| buffer.size() >= bytes);
        let buffer = match fitting {
            Some(index) => ring.idle.swap_remove(index),
            None => {
                // One that has become too small will not be needed again.
                if let Some(small) = ring.idle.pop() {
                    ring.held.remove(small.size());
                    small.destroy();
                }
                let size = bytes.max(SMALLEST).next_power_of_two();
                ring.held.add(size);
                create(
                    device,
                    size,
                    wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                )
            }
        };
        Staged {
            buffer: Some(buffer),
            reads: self.clone(),
        }
    }

    /// Whether an idle staging buffer holds `bytes`.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.lock().idle.iter().any(|buffer| buffer.size() >= bytes)
    }

    pub(super) fn held(&self) -> Held {
        self.lock().held
    }

    /// Destroys what is not in use, now or when it returns.
    pub(super) fn destroy(&self) {
        self.lock().destroyed = true;
        self.trim();
    }

    /// Destroys what is not in use.
    pub(super) fn trim(&self) {
        let mut ring = self.lock();
        for buffer in std::mem::take(&mut ring.idle) {
            ring.held.remove(buffer.size());
            buffer.destroy();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Staged {
    pub(super) fn buffer(&self) -> &wgpu::Buffer {
        self.buffer.as_ref().expect("held until dropped")
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else {
            return;
        };
        buffer.unmap(); // Also takes back a map that is still asked for.
        let mut ring = self.reads.lock();
        if ring.destroyed {
            ring.held.remove(buffer.size());
            buffer.destroy();
        } else {
            ring.idle.push(buffer);
        }
    }
}

fn create(device: &wgpu::Device, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size,
        usage,
        mapped_at_creation: false,
    })
}
