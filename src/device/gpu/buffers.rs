//! The buffers that kernels bind: one for each slot of a plan, and one for each tensor.
//!
//! When memory is trimmed is not decided here.

use std::num::NonZeroU64;

use super::buffer_pool::{BufferPool, Size, class};
use crate::plan::Slot;

/// Bytes of the largest buffer that is kept, when its tensor is gone, for the next tensor of the
/// same number.
const SMALL: u64 = 4096;

/// The most buffers that are kept so.
const IDLE: usize = 16;

/// The buffers of a device.
#[derive(Debug)]
pub(super) struct Buffers {
    pool: BufferPool,
    slots: Vec<Option<wgpu::Buffer>>,
    /// Resident tensors, by number.
    pub(super) tensors: Vec<Option<TensorBuffer>>,
    /// Small buffers of tensors that are gone, by the numbers of these tensors. The bind
    /// groups of such a buffer are kept too, so that small tensors that are made anew with
    /// each frame create nothing.
    idle: Vec<(u32, wgpu::Buffer)>,
    /// Buffers to be freed by [`Buffers::free_released`], by the numbers of their tensors.
    released: Vec<(u32, TensorBuffer)>,
}

/// The buffer of a tensor.
#[derive(Clone, Debug)]
pub(super) struct TensorBuffer {
    pub(super) buffer: wgpu::Buffer,
    pub(super) sharing: Sharing,
}

/// Who else knows a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Nobody.
    Private,
    /// The program has a handle of it, so no other tensor may ever lie in it.
    Exported,
    /// The program created it, and will destroy it.
    Imported(Part),
}

/// The part of an imported buffer that is bound for a tensor. Devices bind parts that begin at
/// a multiple of their alignment, and tensors may begin behind that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Bytes of the buffer in front of the part.
    pub(super) offset: u64,
    /// Bytes of the part.
    pub(super) bytes: u64,
    /// Elements of the part in front of the tensor, which addresses of the tensor skip.
    pub(super) skipped: u32,
}

impl TensorBuffer {
    fn private(buffer: wgpu::Buffer) -> TensorBuffer {
        TensorBuffer {
            buffer,
            sharing: Sharing::Private,
        }
    }

    /// Whether the program created the buffer.
    pub(super) fn is_imported(&self) -> bool {
        self.part().is_some()
    }

    /// The part of the buffer that is bound, if the program created the buffer.
    pub(super) fn part(&self) -> Option<Part> {
        match self.sharing {
            Sharing::Imported(part) => Some(part),
            Sharing::Private | Sharing::Exported => None,
        }
    }

    /// The buffer, for the program.
    pub(super) fn export(&mut self) -> &wgpu::Buffer {
        if self.sharing == Sharing::Private {
            self.sharing = Sharing::Exported;
        }
        &self.buffer
    }
}

impl Buffers {
    pub(super) fn new(pool: BufferPool) -> Self {
        Buffers {
            pool,
            slots: Vec::new(),
            tensors: Vec::new(),
            idle: Vec::new(),
            released: Vec::new(),
        }
    }

    /// Makes a slot hold `bytes`; `true` if the slot has a new buffer.
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
        let size = Size::in_class(bytes, limit);
        let uses = wgpu::BufferUsages::STORAGE
            | if slot == Slot::INPUTS {
                wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST
            } else {
                wgpu::BufferUsages::COPY_SRC
            };
        self.slots[index] = Some(self.pool.make(device, size, uses));
        true
    }

    /// Bytes to be allocated so that a slot holds `bytes`.
    pub(super) fn lacks(&self, slot: Slot, bytes: u64) -> u64 {
        let buffer = self.slots.get(slot.0 as usize).and_then(Option::as_ref);
        let has = buffer.map_or(0, wgpu::Buffer::size);
        if has >= bytes {
            return 0;
        }
        class(bytes).saturating_sub(has)
    }

    /// Whether the buffer of a slot holds `bytes`.
    pub(super) fn fits(&self, slot: Slot, bytes: u64) -> bool {
        let buffer = self.slots.get(slot.0 as usize).and_then(Option::as_ref);
        buffer.is_some_and(|buffer| buffer.size() >= bytes)
    }

    /// The buffer of a slot that was grown before, or of a tensor that exists.
    pub(super) fn buffer(&self, slot: Slot) -> &wgpu::Buffer {
        let buffer = match slot.tensor() {
            Some(tensor) => self.tensor(tensor),
            None => self.slots[slot.0 as usize].as_ref(),
        };
        buffer.expect("made before it is used")
    }

    /// What is bound for a slot that was grown before, or for a tensor that exists.
    pub(super) fn binding(&self, slot: Slot) -> wgpu::BindingResource<'_> {
        let part = self.part(slot);
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: self.buffer(slot),
            offset: part.map_or(0, |part| part.offset),
            size: part.and_then(|part| NonZeroU64::new(part.bytes)),
        })
    }

    /// The part that is bound for a slot, if the slot is that of an imported tensor.
    pub(super) fn part(&self, slot: Slot) -> Option<Part> {
        self.entry(slot.tensor()?)?.part()
    }

    /// The buffer of a tensor, if the tensor exists.
    pub(super) fn tensor(&self, tensor: u32) -> Option<&wgpu::Buffer> {
        self.entry(tensor).map(|entry| &entry.buffer)
    }

    /// Bytes of a tensor's buffer, if the tensor exists and its buffer was not imported.
    pub(super) fn tensor_bytes(&self, tensor: u32) -> u64 {
        let own = self.entry(tensor).filter(|entry| !entry.is_imported());
        own.map_or(0, |entry| entry.buffer.size())
    }

    /// The buffer of a tensor, and who else knows the buffer.
    pub(super) fn entry(&self, tensor: u32) -> Option<&TensorBuffer> {
        self.tensors.get(tensor as usize).and_then(Option::as_ref)
    }

    /// Makes a buffer for a tensor; `false` if an idle buffer is used again.
    pub(super) fn allocate(&mut self, device: &wgpu::Device, tensor: u32, bytes: u64) -> bool {
        // Kernels read four words at a time.
        let size = bytes.max(1).next_multiple_of(16);
        let waiting = self.idle.iter().position(|(number, _)| *number == tensor);
        let waiting = waiting.map(|at| self.idle.swap_remove(at).1);
        if let Some(buffer) = waiting {
            if buffer.size() == size {
                self.put(tensor, TensorBuffer::private(buffer));
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
        let buffer = self.pool.make(device, Size::exact(size), uses);
        self.put(tensor, TensorBuffer::private(buffer));
        true
    }

    /// Frees the idle buffer that waits for a tensor of this number, if there is one.
    pub(super) fn discard_idle(&mut self, tensor: u32) {
        let waiting = self.idle.iter().position(|(number, _)| *number == tensor);
        if let Some(at) = waiting {
            self.pool.destroy(&self.idle.swap_remove(at).1);
        }
    }

    /// Frees the buffer of a tensor, if the tensor exists.
    pub(super) fn discard(&mut self, tensor: u32) {
        let entry = self.tensors.get_mut(tensor as usize).and_then(Option::take);
        self.destroy_own(entry);
    }

    /// Gives a tensor its buffer.
    pub(super) fn put(&mut self, tensor: u32, entry: TensorBuffer) {
        let index = tensor as usize;
        if index >= self.tensors.len() {
            self.tensors.resize(index + 1, None);
        }
        self.tensors[index] = Some(entry);
    }

    /// Forgets a tensor. Its buffer is left to [`Buffers::free_released`], or to the next tensor
    /// of the same number. This changes records only, and enters no GPU driver.
    pub(super) fn release(&mut self, tensor: u32) {
        let entry = self.tensors.get_mut(tensor as usize).and_then(Option::take);
        let Some(entry) = entry else {
            return;
        };
        if entry.sharing != Sharing::Private || entry.buffer.size() > SMALL {
            return self.leave(tensor, entry);
        }
        self.idle.push((tensor, entry.buffer));
        if self.idle.len() > IDLE {
            let (oldest, buffer) = self.idle.remove(0);
            self.leave(oldest, TensorBuffer::private(buffer));
        }
    }

    /// Leaves a buffer to [`Buffers::free_released`]. The buffer counts as freed from now on.
    fn leave(&mut self, tensor: u32, entry: TensorBuffer) {
        if !entry.is_imported() {
            self.pool.forget(&entry.buffer);
        }
        self.released.push((tensor, entry));
    }

    /// Whether a buffer waits to be freed.
    pub(super) fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// Frees the buffers of tensors that are gone, and returns the numbers of these tensors.
    pub(super) fn free_released(&mut self) -> Vec<u32> {
        let released = std::mem::take(&mut self.released);
        let free = |(tensor, entry): (u32, TensorBuffer)| {
            if !entry.is_imported() {
                entry.buffer.destroy();
            }
            tensor
        };
        released.into_iter().map(free).collect()
    }

    /// Destroys a buffer that was not imported.
    fn destroy_own(&mut self, entry: Option<TensorBuffer>) {
        if let Some(own) = entry.filter(|entry| !entry.is_imported()) {
            self.pool.destroy(&own.buffer);
        }
    }

    /// Frees the buffers of slots and the idle ones.
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
        for entry in std::mem::take(&mut self.tensors) {
            self.destroy_own(entry);
        }
    }
}
