//! The buffers that kernels bind: one for each slot, and those of tensors.
//!
//! When to trim is not known here.

use super::pool::{Pool, class};
use crate::plan::Slot;

/// Up to so many bytes a tensor's buffer waits for the next tensor of its number.
const SMALL: u64 = 4096;

/// Buffers that wait.
const IDLE: usize = 16;

/// A buffer for each slot of a plan.
#[derive(Debug)]
pub(super) struct Memory {
    pool: Pool,
    slots: Vec<Option<wgpu::Buffer>>,
    /// Tensors that stay, by number.
    pub(super) tensors: Vec<Option<Kept>>,
    /// Small buffers of tensors that are gone, by their numbers. One comes back with
    /// all that binds it, so that what is small and new each frame creates nothing.
    idle: Vec<(u32, wgpu::Buffer)>,
    /// Buffers to be freed by [`Memory::free_released`], by the numbers of their tensors.
    released: Vec<(u32, Kept)>,
}

/// The buffer of a tensor.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) buffer: wgpu::Buffer,
    /// Whether somebody else made it, and will destroy it.
    pub(super) is_lent: bool,
    /// Whether it was handed out, so that nothing else may lie in it.
    pub(super) is_shown: bool,
}

impl Kept {
    fn own(buffer: wgpu::Buffer) -> Kept {
        Kept {
            buffer,
            is_lent: false,
            is_shown: false,
        }
    }
}

impl Memory {
    pub(super) fn new(pool: Pool) -> Self {
        Memory {
            pool,
            slots: Vec::new(),
            tensors: Vec::new(),
            idle: Vec::new(),
            released: Vec::new(),
        }
    }

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
            self.pool.destroy(&old);
        }
        let sizes = (bytes, class(bytes).min(limit));
        let uses = wgpu::BufferUsages::STORAGE
            | if slot == Slot::INPUTS {
                wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST
            } else {
                wgpu::BufferUsages::COPY_SRC
            };
        self.slots[index] = Some(self.pool.make(device, sizes, uses));
        true
    }

    /// Bytes that a slot needs beyond those that it has.
    pub(super) fn lacks(&self, slot: Slot, bytes: u64) -> u64 {
        let buffer = self.slots.get(slot.0 as usize).and_then(Option::as_ref);
        let has = buffer.map_or(0, wgpu::Buffer::size);
        if has >= bytes {
            return 0;
        }
        class(bytes).saturating_sub(has)
    }

    /// Whether a slot holds `bytes` as it is.
    pub(super) fn fits(&self, slot: Slot, bytes: u64) -> bool {
        let buffer = self.slots.get(slot.0 as usize).and_then(Option::as_ref);
        buffer.is_some_and(|buffer| buffer.size() >= bytes)
    }

    /// The buffer of a slot that was grown before, or of a tensor that is there.
    pub(super) fn buffer(&self, slot: Slot) -> &wgpu::Buffer {
        let buffer = match slot.tensor() {
            Some(tensor) => self.tensor(tensor),
            None => self.slots[slot.0 as usize].as_ref(),
        };
        buffer.expect("made before it is used")
    }

    /// The buffer of a tensor, if it is there.
    pub(super) fn tensor(&self, tensor: u32) -> Option<&wgpu::Buffer> {
        self.kept(tensor).map(|kept| &kept.buffer)
    }

    /// Bytes of a tensor's buffer, if it is there and our own.
    pub(super) fn tensor_bytes(&self, tensor: u32) -> u64 {
        let own = self.kept(tensor).filter(|kept| !kept.is_lent);
        own.map_or(0, |kept| kept.buffer.size())
    }

    /// The same, with all that is known of it.
    pub(super) fn kept(&self, tensor: u32) -> Option<&Kept> {
        self.tensors.get(tensor as usize).and_then(Option::as_ref)
    }

    /// A buffer for a tensor; `true` if it is a new one.
    pub(super) fn keep(&mut self, device: &wgpu::Device, tensor: u32, bytes: u64) -> bool {
        // Kernels read four words at a time.
        let size = bytes.max(1).next_multiple_of(16);
        let waiting = self.idle.iter().position(|(number, _)| *number == tensor);
        let waiting = waiting.map(|at| self.idle.swap_remove(at).1);
        if let Some(buffer) = waiting {
            if buffer.size() == size {
                self.put(tensor, Kept::own(buffer));
                return false;
            }
            self.pool.destroy(&buffer);
        }
        let uses = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_DST
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::VERTEX
            | wgpu::BufferUsages::INDEX;
        self.discard(tensor);
        let buffer = self.pool.make(device, (size, size), uses);
        self.put(tensor, Kept::own(buffer));
        true
    }

    /// Frees the buffer of a tensor, if it is there.
    pub(super) fn discard(&mut self, tensor: u32) {
        let kept = self.tensors.get_mut(tensor as usize).and_then(Option::take);
        self.drop_kept(kept);
    }

    /// Makes a buffer that of a tensor without one.
    pub(super) fn put(&mut self, tensor: u32, kept: Kept) {
        let index = tensor as usize;
        if index >= self.tensors.len() {
            self.tensors.resize(index + 1, None);
        }
        self.tensors[index] = Some(kept);
    }

    /// A tensor is gone: its buffer waits for [`Memory::free_released`], or for the next
    /// tensor of its number. This changes records only, and enters no driver.
    pub(super) fn release(&mut self, tensor: u32) {
        let kept = self.tensors.get_mut(tensor as usize).and_then(Option::take);
        let Some(kept) = kept else {
            return;
        };
        if kept.is_lent || kept.is_shown || kept.buffer.size() > SMALL {
            return self.leave(tensor, kept);
        }
        self.idle.push((tensor, kept.buffer));
        if self.idle.len() > IDLE {
            let (oldest, buffer) = self.idle.remove(0);
            self.leave(oldest, Kept::own(buffer));
        }
    }

    /// Leaves a buffer to [`Memory::free_released`]. It counts as freed from here on.
    fn leave(&mut self, tensor: u32, kept: Kept) {
        if !kept.is_lent {
            self.pool.forget(&kept.buffer);
        }
        self.released.push((tensor, kept));
    }

    /// Whether a buffer waits to be freed.
    pub(super) fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// Frees the buffers of tensors that are gone; their numbers.
    pub(super) fn free_released(&mut self) -> Vec<u32> {
        let released = std::mem::take(&mut self.released);
        let free = |(tensor, kept): (u32, Kept)| {
            if !kept.is_lent {
                kept.buffer.destroy();
            }
            tensor
        };
        released.into_iter().map(free).collect()
    }

    fn drop_kept(&mut self, kept: Option<Kept>) {
        if let Some(Kept {
            buffer,
            is_lent: false,
            ..
        }) = kept
        {
            self.pool.destroy(&buffer);
        }
    }

    /// Frees the slots, and what waits.
    pub(super) fn trim(&mut self) {
        let idle = std::mem::take(&mut self.idle).into_iter();
        let slots = std::mem::take(&mut self.slots).into_iter().flatten();
        for buffer in slots.chain(idle.map(|(_, buffer)| buffer)) {
            self.pool.destroy(&buffer);
        }
    }

    pub(super) fn destroy(&mut self) {
        self.trim();
        self.free_released();
        for kept in std::mem::take(&mut self.tensors) {
            self.drop_kept(kept);
        }
    }
}
