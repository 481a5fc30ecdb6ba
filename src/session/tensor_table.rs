//! The tensors of a session: who still reads each, and where its newest words lie.
//!
//! Words themselves are the devices', and their source is the face's. Nothing is copied
//! or freed here: the table says when it is time.

use crate::plan::ShardedTensor;
use crate::tensor::Packing;

/// The tensors of a session, by their numbers.
#[derive(Debug, Default)]
pub(super) struct TensorTable {
    held: Vec<Held>,
    /// Numbers that can be given again.
    free: Vec<u32>,
    /// Words that the processor beside the device has.
    mirrored: usize,
    /// Bytes that the device has of them.
    pub(super) resident: u64,
    /// Those that lie there in parts.
    sharded: Vec<ShardedTensor>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Pending calls that read it.
    readers: u32,
    is_held: bool,
    packing: Option<Packing>,
    residency: Residency,
    /// Words of the copy that calls on the processor beside the device may read, once the
    /// tensor is filled; 0 where there is none.
    mirrored: usize,
}

/// Where the newest words of a tensor lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Residency {
    /// Nowhere: the tensor was not filled since the device is in use.
    #[default]
    Nowhere,
    /// On the device, in one buffer or in parts.
    Device,
    /// So many words on the processor beside the device alone, until the device needs
    /// them.
    Host(usize),
}

/// Words of a tensor, and of all of them, that the processor beside a GPU gets
/// as well: 1 MiB, and 32 MiB. What is larger pulls its calls to the GPU.
pub(super) const MIRRORED: usize = 1 << 18;
const MIRRORED_IN_ALL: usize = 1 << 23;

impl TensorTable {
    /// A number for a new tensor.
    pub(super) fn hold(&mut self) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.held.push(Held::default());
            u32::try_from(self.held.len() - 1).expect("fewer than 2^31 tensors")
        });
        self.held[number as usize] = Held {
            is_held: true,
            ..Held::default()
        };
        number
    }

    /// The numbers that tensors have, or had.
    pub(super) fn numbers(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.held.len()).expect("fewer than 2^31 tensors")
    }

    /// How the device keeps a tensor's floats, if they are packed.
    pub(super) fn packing(&self, tensor: u32) -> Option<Packing> {
        self.held[tensor as usize].packing
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> usize {
        self.held.len()
    }

    /// Whether there is a tensor of this number.
    pub(super) fn is_held(&self, tensor: u32) -> bool {
        let held = self.held.get(tensor as usize);
        held.is_some_and(|held| held.is_held)
    }

    /// Its data is on the device.
    pub(super) fn fill(&mut self, tensor: u32, packing: Option<Packing>) {
        let held = &mut self.held[tensor as usize];
        held.residency = Residency::Device;
        held.packing = packing;
    }

    /// Its words are on the processor beside the device alone for now.
    pub(super) fn defer(&mut self, tensor: u32, words: usize) {
        self.held[tensor as usize].residency = Residency::Host(words);
    }

    /// Words that the device is still to get, if it lacks a tensor.
    pub(super) fn deferred(&self, tensor: u32) -> Option<usize> {
        match self.held.get(tensor as usize)?.residency {
            Residency::Host(words) => Some(words),
            Residency::Nowhere | Residency::Device => None,
        }
    }

    /// Whether the processor beside the device is to have so many words of it.
    pub(super) fn mirror(&mut self, tensor: u32, words: usize) -> bool {
        let held = &mut self.held[tensor as usize];
        let others = self.mirrored - held.mirrored;
        let fits = words <= MIRRORED && others + words <= MIRRORED_IN_ALL;
        if fits {
            held.mirrored = words;
            self.mirrored = others + words;
        }
        fits
    }

    /// Those that lie on the device in parts.
    pub(super) fn sharded(&self) -> &[ShardedTensor] {
        &self.sharded
    }

    /// A tensor lies in parts from here on.
    pub(super) fn part(&mut self, sharded: ShardedTensor) {
        self.sharded.push(sharded);
    }

    /// Forgets that a tensor lies in parts, and returns the numbers of these parts.
    pub(super) fn unpart(&mut self, tensor: u32) -> Vec<u32> {
        let at = self.sharded.iter().position(|own| own.tensor == tensor);
        at.map_or(Vec::new(), |at| self.sharded.swap_remove(at).shards)
    }

    /// No more calls may read the processor's copy.
    pub(super) fn unmirror(&mut self, tensor: u32) {
        let words = std::mem::take(&mut self.held[tensor as usize].mirrored);
        self.mirrored -= words;
    }

    /// Whether the processor beside the device has its data as well.
    pub(super) fn is_mirrored(&self, tensor: u32) -> bool {
        let held = &self.held[tensor as usize];
        held.mirrored > 0 && held.residency != Residency::Nowhere
    }

    /// Words that the device is still to get of all of them, by how it keeps each.
    pub(super) fn coming(&self) -> impl Iterator<Item = (u32, Option<Packing>, u32)> {
        (0..).zip(&self.held).map(|(tensor, held)| {
            let words = self.deferred(tensor).unwrap_or(0);
            let words = u32::try_from(words).unwrap_or(u32::MAX);
            let words = held.packing.map_or(words, |packing| packing.words(words));
            (tensor, held.packing, words)
        })
    }

    /// Nothing is on the device any more.
    pub(super) fn lose(&mut self) {
        self.resident = 0;
        for held in &mut self.held {
            held.residency = Residency::Nowhere;
        }
    }

    /// Whether calls find its data.
    pub(super) fn is_filled(&self, tensor: u32) -> bool {
        self.held[tensor as usize].residency != Residency::Nowhere
    }

    /// A call reads it from now on.
    pub(super) fn read(&mut self, tensor: u32) {
        self.held[tensor as usize].readers += 1;
    }

    /// Whether a pending call reads it.
    pub(super) fn is_read(&self, tensor: u32) -> bool {
        self.held[tensor as usize].readers > 0
    }

    /// A call reads it no more; `true` when nobody needs it.
    pub(super) fn done(&mut self, tensor: u32) -> bool {
        self.held[tensor as usize].readers -= 1;
        self.is_over(tensor)
    }

    /// Its owner needs it no more; `true` when nobody does.
    pub(super) fn release(&mut self, tensor: u32) -> bool {
        if !self.is_held(tensor) {
            return false;
        }
        self.held[tensor as usize].is_held = false;
        self.is_over(tensor)
    }

    fn is_over(&mut self, tensor: u32) -> bool {
        let Held {
            readers, is_held, ..
        } = self.held[tensor as usize];
        let is_over = readers == 0 && !is_held;
        if is_over {
            self.held[tensor as usize].residency = Residency::Nowhere;
            self.free.push(tensor);
        }
        is_over
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/tensor_table.rs"]
mod tests;
