//! Slabs: buffers of the device that small tensors share, so that calls on different tensors bind
//! the same buffers, and merge.
//!
//! Numbers only: a slab has a number like a tensor's, and devices see it as one tensor. Which
//! tensors lie in slabs, and who fills them, is said elsewhere.

use crate::device::Device;
use crate::error::Error;
use crate::tensor::{Packing, Places};

/// Where a tensor lies for its whole life, whichever devices the session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a buffer of its own, which has the number of the tensor.
    Own {
        /// The number of the tensor.
        tensor: u32,
    },
    /// In the slab of this number.
    Slab {
        /// The number of the slab.
        slab: u32,
        /// The word of the slab where the tensor begins, a multiple of 64.
        at: u32,
    },
}

/// Words between two places in a slab: 256 bytes, the largest alignment that devices ask of the
/// offset of a binding.
pub(super) const GRAIN: u32 = 64;

/// Words from which on a tensor has a buffer of its own, 64 KiB.
pub(super) const LARGE: u32 = 1 << 14;

/// Words of a slab, 1 MiB, where the memory budget lets.
pub(super) const SLAB: u32 = 1 << 18;

impl Place {
    /// The number of the buffer that the tensor lies in.
    pub fn home(self) -> u32 {
        match self {
            Place::Own { tensor } => tensor,
            Place::Slab { slab, .. } => slab,
        }
    }

    /// The word of that buffer where the tensor begins.
    pub fn at(self) -> u32 {
        match self {
            Place::Own { .. } => 0,
            Place::Slab { at, .. } => at,
        }
    }

    /// Makes the tensor's slab on a device that lacks it, of so many words.
    ///
    /// # Errors
    ///
    /// The errors of [`Device::allocate`].
    pub(super) fn prepare(self, device: &mut impl Device, words: u32) -> Result<(), Error> {
        match self {
            Place::Slab { slab, .. } if device.tensor_bytes(slab) == 0 => {
                device.allocate(slab, words)
            }
            Place::Slab { .. } | Place::Own { .. } => Ok(()),
        }
    }

    /// Copies a tensor's words to a device that has the tensor's slab: packed floats, if there
    /// is a packing.
    ///
    /// # Errors
    ///
    /// The errors of [`Device::fill`].
    pub fn write(
        self,
        device: &mut impl Device,
        words: &[u32],
        packing: Option<Packing>,
    ) -> Result<(), Error> {
        match self {
            Place::Own { tensor } => device.fill(tensor, words, packing)?,
            Place::Slab { slab, at } => device.patch(slab, at, words),
        }
        Ok(())
    }
}

/// The slabs of a session.
#[derive(Debug, Default)]
pub(super) struct Slabs {
    all: Vec<Slab>,
}

#[derive(Debug)]
struct Slab {
    number: u32,
    words: u32,
    places: Places,
}

impl Slabs {
    /// A place for so many words, in the first slab with room that `suits` accepts by its number.
    pub(super) fn take(&mut self, words: u32, suits: impl Fn(u32) -> bool) -> Option<Place> {
        let slabs = self.all.iter_mut().filter(|slab| suits(slab.number));
        let taken = slabs.map(|slab| {
            let at = slab.places.take(padded(words), slab.words)?;
            let slab = slab.number;
            Some(Place::Slab { slab, at })
        });
        taken.flatten().next()
    }

    /// Adds an empty slab.
    pub(super) fn add(&mut self, number: u32, words: u32) {
        self.all.push(Slab {
            number,
            words,
            places: Places::default(),
        });
    }

    /// Gives back the place of a tensor of so many words. Returns the number of a slab that is no
    /// longer one: one empty slab is kept for the next tensors, so that tensors that come and go
    /// with each frame make no buffers.
    pub(super) fn give(&mut self, place: Place, words: u32) -> Option<u32> {
        let Place::Slab { slab: number, at } = place else {
            return None;
        };
        let own = self.all.iter_mut().find(|slab| slab.number == number)?;
        own.places.give(at, padded(words));
        let empty = self.all.iter().filter(|slab| slab.places.is_empty());
        if empty.count() < 2 {
            return None;
        }
        self.remove_empty()
    }

    /// Whether no tensor lies in a slab.
    pub(super) fn is_empty(&self, number: u32) -> bool {
        let mut slabs = self.all.iter();
        slabs.any(|slab| slab.number == number && slab.places.is_empty())
    }

    /// Removes an empty slab, and returns its number.
    pub(super) fn remove_empty(&mut self) -> Option<u32> {
        let last = self.all.iter().rposition(|slab| slab.places.is_empty())?;
        Some(self.all.remove(last).number)
    }
}

/// Words that a tensor takes of a slab.
fn padded(words: u32) -> u32 {
    words.max(1).next_multiple_of(GRAIN)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/slabs.rs"]
mod tests;
