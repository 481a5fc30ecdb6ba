//! Tensors that no buffer of the device holds, kept there in parts.
//!
//! Which of them a chunk reads is the planner's business, and their source the
//! face's.

use std::ops::Range;

use super::Session;
use crate::device::Device;
use crate::error::Error;
use crate::plan::{Parted, RecipeId};
use crate::tensor::{Packing, WORD};

/// What a tensor is filled with.
#[derive(Clone, Copy, Debug)]
pub struct Filling {
    /// How the device keeps it.
    pub packing: Option<Packing>,
    /// Words that are copied: packed already, or still to be packed.
    pub words: u32,
    /// Words that they are once unpacked, as the processor keeps them.
    pub unpacked: u32,
    /// Words of a row; 0 where all must lie in one buffer.
    pub row: u32,
}

impl Filling {
    /// The filling by words as the device keeps them.
    pub fn packed(packing: Option<Packing>, words: u32, row: u32) -> Filling {
        Filling {
            packing,
            words,
            unpacked: packing.map_or(words, |packing| packing.floats(words)),
            row,
        }
    }
}

/// Copies a range of a tensor's words to a device, as the tensor of a number.
type Copying<'a, D> = dyn Fn(&mut D, u32, Range<u32>) -> Result<(), Error> + 'a;

impl<D: Device> Session<D> {
    /// Copies a tensor to the device: in one buffer if it fits there, else in as many
    /// as it takes. `copy` copies a range of the words to the device as the tensor of
    /// this number. Packed ones lie in one buffer.
    ///
    /// # Errors
    ///
    /// Those of `copy`, [`Error::TooLarge`] where a few rows are more than a buffer
    /// holds, and [`Error::InvalidInput`] for a tensor that is not held.
    pub fn fill_rows(
        &mut self,
        tensor: u32,
        filling: Filling,
        copy: &Copying<'_, D>,
    ) -> Result<(), Error> {
        let Filling {
            packing,
            words,
            row,
            ..
        } = filling;
        self.check_tensor(tensor)?;
        self.unpart(tensor);
        let most = self.device.limits().max_side_bytes / u64::from(WORD);
        let each = match packing.is_none() && u64::from(words) > most {
            true => Parted::words_each(words, row, most),
            false => None,
        };
        let Some(each) = each else {
            let copy = |device: &mut D| copy(device, tensor, 0..words);
            return self.fill_with(tensor, filling, copy);
        };
        let mut parted = Parted {
            tensor,
            words: each,
            parts: Vec::new(),
        };
        let mut from = 0;
        let mut filled = Ok(());
        while from < words && filled.is_ok() {
            let part = self.hold();
            let end = words.min(from.saturating_add(each));
            parted.parts.push(part);
            filled = self.place_with(part, None, |device| copy(device, part, from..end));
            from = end;
        }
        self.tensors.part(parted);
        match filled {
            Ok(()) => self.tensors.fill(tensor, None),
            Err(_) => self.unpart(tensor),
        }
        filled
    }

    /// Frees the parts of a tensor, if it has some.
    pub(super) fn unpart(&mut self, tensor: u32) {
        for part in self.tensors.unpart(tensor) {
            self.release(part);
        }
    }

    /// Refuses a call that reads a tensor as a whole that lies in parts.
    pub(super) fn check_parts(&self, recipe: RecipeId, tensors: &[u32]) -> Result<(), Error> {
        let recipe = &self.structures.recipes()[recipe.0 as usize];
        for parted in self.tensors.parted() {
            let mut named = tensors.iter().enumerate();
            let reads = |(place, tensor): (usize, &u32)| {
                *tensor != parted.tensor || recipe.reads_parts(place, parted.words)
            };
            if named.all(reads) {
                continue;
            }
            let parts = parted.parts.iter();
            return Err(Error::TooLarge {
                what: "a tensor that is not read row by row",
                need: parts.map(|part| self.device.tensor_bytes(*part)).sum(),
                limit: self.device.limits().max_side_bytes,
            });
        }
        Ok(())
    }
}
