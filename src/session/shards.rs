//! Shards: tensors that no buffer of the device holds are kept there in several buffers.
//!
//! The planner knows which shards a chunk reads, and the face where the words of a tensor
//! come from.

use std::ops::Range;

use super::Session;
use super::slabs::Place;
use crate::device::Device;
use crate::error::Error;
use crate::plan::{RecipeId, ShardedTensor};
use crate::tensor::{Packing, WORD};

/// What a tensor is filled with.
#[derive(Clone, Copy, Debug)]
pub struct Filling {
    /// How the device keeps the words.
    pub packing: Option<Packing>,
    /// Words that are copied: packed already, or still to be packed.
    pub words: u32,
    /// Words once they are unpacked, as the CPU keeps them.
    pub unpacked: u32,
    /// Words of a row; 0 where all words must lie in one buffer.
    pub row: u32,
}

impl Filling {
    /// A filling by words as the device keeps them.
    pub fn packed(packing: Option<Packing>, words: u32, row: u32) -> Filling {
        Filling {
            packing,
            words,
            unpacked: packing.map_or(words, |packing| packing.floats(words)),
            row,
        }
    }
}

/// Copies a range of a tensor's words to a place on a device.
type Copying<'a, D> = dyn Fn(&mut D, Place, Range<u32>) -> Result<(), Error> + 'a;

impl<D: Device> Session<D> {
    /// Copies a tensor to the device: in one buffer if it fits there, otherwise in as many
    /// as it takes. `copy` copies a range of the words to a place on the device. A packed
    /// tensor lies in one buffer.
    ///
    /// # Errors
    ///
    /// The errors of `copy`, [`Error::TooLarge`] where a few rows are more than a buffer
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
        self.unshard(tensor);
        let most = self.devices.primary().limits().max_side_bytes / u64::from(WORD);
        let each = match packing.is_none() && u64::from(words) > most {
            true => ShardedTensor::words_each(words, row, most),
            false => None,
        };
        let Some(each) = each else {
            let copy = |device: &mut D, place| copy(device, place, 0..words);
            return self.fill_with(tensor, filling, copy);
        };
        let mut sharded = ShardedTensor {
            tensor,
            words: each,
            shards: Vec::new(),
        };
        let mut from = 0;
        let mut filled = Ok(());
        while from < words && filled.is_ok() {
            let part = self.hold();
            let end = words.min(from.saturating_add(each));
            sharded.shards.push(part);
            let place = Place::Own { tensor: part };
            filled = self.place_with(part, None, |device| copy(device, place, from..end));
            self.provenances.fill(part, end - from);
            from = end;
        }
        match filled {
            Ok(()) => {
                self.provenances.fill(tensor, words);
                self.tensors.shard(sharded);
            }
            Err(_) => self.release_shards(sharded.shards),
        }
        filled
    }

    /// Frees the shards of a tensor, if it has some.
    pub(super) fn unshard(&mut self, tensor: u32) {
        let shards = self.tensors.unshard(tensor);
        self.release_shards(shards);
    }

    fn release_shards(&mut self, shards: Vec<u32>) {
        for shard in shards {
            self.release(shard);
        }
    }

    /// Refuses a call that reads a tensor as a whole which lies in shards, or that writes it.
    pub(super) fn check_shards(&self, recipe: RecipeId, tensors: &[u32]) -> Result<(), Error> {
        let recipe = &self.programs.recipes()[recipe.0 as usize];
        for sharded in self.tensors.sharded() {
            let mut named = tensors.iter().enumerate();
            let reads = |(place, tensor): (usize, &u32)| {
                *tensor != sharded.tensor || recipe.reads_shards(place, sharded.words)
            };
            let is_written = recipe.written(tensors).any(|one| one == sharded.tensor);
            if named.all(reads) && !is_written {
                continue;
            }
            let parts = sharded.shards.iter();
            return Err(Error::TooLarge {
                what: match is_written {
                    true => "a tensor that is written",
                    false => "a tensor that is not read row by row",
                },
                need: parts
                    .map(|part| self.devices.primary().tensor_bytes(*part))
                    .sum(),
                limit: self.devices.primary().limits().max_side_bytes,
            });
        }
        Ok(())
    }
}
