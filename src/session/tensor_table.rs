//! The tensors of a session: who still reads each, its place, and where its newest words lie.
//!
//! The words themselves are on the devices, and the face knows where the words came from.
//! Nothing is copied or freed here: the table says when it is time.

use super::residency::{MOST_COPIED, MOST_COPIED_IN_ALL, Residency};
use super::slabs::{LARGE, Place, Slabs};
use crate::plan::ShardedTensor;
use crate::tensor::Packing;

/// The tensors of a session, by their numbers.
#[derive(Debug, Default)]
pub(super) struct TensorTable {
    /// One for each number: of a tensor, of a slab, or of what is gone.
    entries: Vec<Entry>,
    /// Numbers of tensors and slabs that are gone, for the next ones.
    free: Vec<u32>,
    slabs: Slabs,
    /// How many tensors are on the host alone.
    deferred: usize,
    /// Words of all copies on the host.
    copied: usize,
    /// Bytes of the device's memory that tensors take.
    pub(super) resident_bytes: u64,
    /// The shards of each tensor that lies in shards, or did when the device was lost.
    sharded: Vec<ShardedTensor>,
}

/// What is known of one tensor. A slab is an entry that nobody holds, and lies in itself.
#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Place,
    /// Words of a slab, or of a tensor in a slab. Other tensors have as many as they are filled
    /// with.
    words: u32,
    /// Pending calls that read the tensor.
    readers: u32,
    /// Whether its owner still needs the tensor.
    is_held: bool,
    packing: Option<Packing>,
    residency: Residency,
}

/// What a device is still to get of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coming {
    pub(super) tensor: u32,
    pub(super) packing: Option<Packing>,
    /// Words as the device keeps them: packed, if they are.
    pub(super) words: u32,
}

impl TensorTable {
    /// A number for a new tensor with a buffer of its own.
    pub(super) fn hold(&mut self) -> u32 {
        let number = self.number();
        self.entries[number as usize].is_held = true;
        number
    }

    /// A number for a new tensor of so many words: in a slab if the tensor is small, but not in
    /// one that another of these tensors is in. A slab that has to be made has `slab` words.
    pub(super) fn hold_shared(&mut self, words: u32, apart: &[u32], slab: u32) -> u32 {
        if words >= LARGE || slab < LARGE {
            return self.hold();
        }
        let place = self.take(words, apart).or_else(|| {
            self.add_slab(slab);
            self.take(words, apart)
        });
        let number = self.hold();
        let entry = &mut self.entries[number as usize];
        entry.place = place.expect("a new slab has room");
        entry.words = words;
        number
    }

    /// A place in a slab that none of the other tensors is in.
    fn take(&mut self, words: u32, apart: &[u32]) -> Option<Place> {
        let TensorTable { entries, slabs, .. } = self;
        let is_in = |tensor: &u32, slab: u32| entries[*tensor as usize].place.home() == slab;
        slabs.take(words, |slab| !apart.iter().any(|other| is_in(other, slab)))
    }

    fn add_slab(&mut self, words: u32) {
        let slab = self.number();
        let entry = &mut self.entries[slab as usize];
        entry.place = Place::Slab { slab, at: 0 };
        entry.words = words;
        self.slabs.add(slab, words);
    }

    /// A number that nothing has, with an empty entry.
    fn number(&mut self) -> u32 {
        let number = self
            .free
            .pop()
            .unwrap_or_else(|| u32::try_from(self.entries.len()).expect("fewer than 2^31 tensors"));
        let entry = Entry {
            place: Place::Own { tensor: number },
            words: 0,
            readers: 0,
            is_held: false,
            packing: None,
            residency: Residency::default(),
        };
        match self.entries.get_mut(number as usize) {
            Some(free) => *free = entry,
            None => self.entries.push(entry),
        }
        number
    }

    /// Where a tensor lies in the buffers of devices.
    pub(super) fn place(&self, tensor: u32) -> Place {
        self.entry(tensor).place
    }

    /// The words of a tensor in a slab; `None` for one in a buffer of its own.
    pub(super) fn words_in_slab(&self, tensor: u32) -> Option<u32> {
        let Entry { place, words, .. } = *self.entry(tensor);
        matches!(place, Place::Slab { .. }).then_some(words)
    }

    /// The words of the slab that a place is in; 0 for a place in a buffer of its own.
    pub(super) fn slab_words(&self, place: Place) -> u32 {
        self.entry(place.home()).words
    }

    /// Whether a tensor's slab may be on the device, but not the tensor's words.
    pub(super) fn lacks_words(&self, tensor: u32) -> bool {
        self.words_in_slab(tensor).is_some() && !self.is_filled(tensor)
    }

    /// Gives up the place of a tensor that is gone. Returns the number of the buffer that nothing
    /// lies in any more, if there is one.
    pub(super) fn vacate(&mut self, tensor: u32) -> Option<u32> {
        let Entry { place, words, .. } = *self.entry(tensor);
        match place {
            Place::Own { tensor } => Some(tensor),
            Place::Slab { .. } => {
                let gone = self.slabs.give(place, words);
                self.forget_slab(gone)
            }
        }
    }

    /// Gives up the slab that is kept empty. Returns its number.
    pub(super) fn release_empty_slab(&mut self) -> Option<u32> {
        let gone = self.slabs.remove_empty();
        self.forget_slab(gone)
    }

    /// Forgets a slab that is no longer one, if there is such a slab, and returns its number.
    fn forget_slab(&mut self, gone: Option<u32>) -> Option<u32> {
        let number = gone?;
        self.entries[number as usize].place = Place::Own { tensor: number };
        self.free.push(number);
        gone
    }

    /// The numbers that tensors and slabs have, or had.
    pub(super) fn numbers(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.entries.len()).expect("fewer than 2^31 tensors")
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is a tensor of this number.
    pub(super) fn is_held(&self, tensor: u32) -> bool {
        let entry = self.entries.get(tensor as usize);
        entry.is_some_and(|entry| entry.is_held)
    }

    /// How the device keeps a tensor's floats, if they are packed.
    pub(super) fn packing(&self, tensor: u32) -> Option<Packing> {
        self.entry(tensor).packing
    }

    /// Where a tensor's newest words lie.
    pub(super) fn residency(&self, tensor: u32) -> Residency {
        self.entry(tensor).residency
    }

    /// A tensor was filled on the device, in one buffer, and nowhere else.
    pub(super) fn fill(&mut self, tensor: u32, packing: Option<Packing>) {
        self.entries[tensor as usize].packing = packing;
        self.put(tensor, Residency::Device);
    }

    /// A tensor was filled on the device in shards.
    pub(super) fn shard(&mut self, shards: ShardedTensor) {
        let tensor = shards.tensor;
        self.entries[tensor as usize].packing = None;
        self.put(tensor, Residency::Sharded);
        self.sharded.push(shards);
    }

    /// Forgets the shards of a tensor, and returns their numbers.
    pub(super) fn unshard(&mut self, tensor: u32) -> Vec<u32> {
        let at = self.sharded.iter().position(|own| own.tensor == tensor);
        let Some(at) = at else {
            return Vec::new();
        };
        if self.residency(tensor) == Residency::Sharded {
            self.put(tensor, Residency::default());
        }
        self.sharded.swap_remove(at).shards
    }

    /// The shards of each tensor that lies in shards.
    pub(super) fn sharded(&self) -> &[ShardedTensor] {
        &self.sharded
    }

    /// Whether the host may have a copy of a tensor's words, in the place of the copy that
    /// it has.
    pub(super) fn may_copy(&self, tensor: u32, words: usize) -> bool {
        let others = self.copied - self.residency(tensor).copied();
        words <= MOST_COPIED && others + words <= MOST_COPIED_IN_ALL
    }

    /// A tensor that is on the device was copied to the host as well.
    pub(super) fn copy(&mut self, tensor: u32, words: usize) {
        self.put(tensor, Residency::Both { words });
    }

    /// No more calls may read the host's copy, if there is one.
    pub(super) fn drop_copy(&mut self, tensor: u32) {
        let residency = match self.residency(tensor) {
            Residency::Nowhere { .. } => Residency::default(),
            Residency::Both { .. } => Residency::Device,
            Residency::Host { words, .. } => Residency::Host {
                words,
                is_readable: false,
            },
            alone => alone,
        };
        self.put(tensor, residency);
    }

    /// Whether calls on the CPU beside the device may read a tensor.
    pub(super) fn has_copy(&self, tensor: u32) -> bool {
        self.is_filled(tensor) && self.residency(tensor).copied() > 0
    }

    /// A tensor's words are on the host alone. Calls on the CPU may read them if they are few.
    pub(super) fn defer(&mut self, tensor: u32, words: usize, packing: Option<Packing>) {
        let is_readable = self.may_copy(tensor, words);
        self.entries[tensor as usize].packing = packing;
        self.put(tensor, Residency::Host { words, is_readable });
    }

    /// How many words of a tensor the device is still to get, where only the host has them.
    pub(super) fn deferred(&self, tensor: u32) -> Option<usize> {
        match self.entries.get(tensor as usize)?.residency {
            Residency::Host { words, .. } => Some(words),
            _ => None,
        }
    }

    /// The device has got the words of a tensor that were deferred.
    pub(super) fn bring(&mut self, tensor: u32) {
        let residency = match self.residency(tensor) {
            Residency::Host {
                words,
                is_readable: true,
            } => Residency::Both { words },
            _ => Residency::Device,
        };
        self.put(tensor, residency);
    }

    /// Each tensor with a buffer of its own, and each slab that tensors lie in, with what the
    /// device is still to get of it.
    pub(super) fn coming(&self) -> impl Iterator<Item = Coming> {
        (0..).zip(&self.entries).filter_map(|(number, entry)| {
            let words = match entry.place {
                Place::Own { .. } => self.deferred(number).unwrap_or(0),
                Place::Slab { slab, .. } if slab != number || self.slabs.is_empty(slab) => {
                    return None;
                }
                Place::Slab { .. } => entry.words as usize,
            };
            let words = u32::try_from(words).unwrap_or(u32::MAX);
            let packing = entry.packing;
            Some(Coming {
                tensor: number,
                packing,
                words: packing.map_or(words, |packing| packing.words(words)),
            })
        })
    }

    /// The tensors in a buffer that are on the host alone.
    pub(super) fn deferred_in(&self, home: u32) -> Vec<u32> {
        if self.deferred == 0 {
            return Vec::new();
        }
        match self.place(home) {
            Place::Own { .. } => self.deferred(home).map(|_| home).into_iter().collect(),
            Place::Slab { .. } => {
                let is_there = |tensor: &u32| self.place(*tensor).home() == home;
                let deferred = |tensor: &u32| self.deferred(*tensor).is_some();
                self.numbers().filter(is_there).filter(deferred).collect()
            }
        }
    }

    /// The device is lost, with every tensor on it.
    pub(super) fn lose(&mut self) {
        self.resident_bytes = 0;
        self.deferred = 0;
        for entry in &mut self.entries {
            entry.residency = Residency::Nowhere {
                kept: entry.residency.copied(),
            };
        }
    }

    /// Whether calls find a tensor's words.
    pub(super) fn is_filled(&self, tensor: u32) -> bool {
        !matches!(self.residency(tensor), Residency::Nowhere { .. })
    }

    /// One more pending call reads a tensor.
    pub(super) fn read(&mut self, tensor: u32) {
        self.entries[tensor as usize].readers += 1;
    }

    /// Whether a pending call reads a tensor.
    pub(super) fn is_read(&self, tensor: u32) -> bool {
        self.entry(tensor).readers > 0
    }

    /// One call less reads a tensor; `true` when nobody needs the tensor any more.
    pub(super) fn done(&mut self, tensor: u32) -> bool {
        self.entries[tensor as usize].readers -= 1;
        self.free_if_over(tensor)
    }

    /// The owner of a tensor gives it up; `true` when nobody needs it any more.
    pub(super) fn release(&mut self, tensor: u32) -> bool {
        if !self.is_held(tensor) {
            return false;
        }
        self.entries[tensor as usize].is_held = false;
        self.free_if_over(tensor)
    }

    /// Frees the number of a tensor without owner and readers: `true` where it did.
    fn free_if_over(&mut self, tensor: u32) -> bool {
        let Entry {
            readers, is_held, ..
        } = *self.entry(tensor);
        let is_over = readers == 0 && !is_held;
        if is_over {
            self.put(tensor, Residency::default());
            self.free.push(tensor);
        }
        is_over
    }

    fn entry(&self, tensor: u32) -> &Entry {
        &self.entries[tensor as usize]
    }

    /// Notes where a tensor's newest words lie from now on.
    fn put(&mut self, tensor: u32, residency: Residency) {
        let own = &mut self.entries[tensor as usize].residency;
        self.copied -= own.copied();
        self.copied += residency.copied();
        self.deferred -= usize::from(own.is_deferred());
        self.deferred += usize::from(residency.is_deferred());
        *own = residency;
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/tensor_table.rs"]
mod tests;
