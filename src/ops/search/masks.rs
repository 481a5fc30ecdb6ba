//! Masks: which ids of an index a search may find.

use super::{Vectors, rounded};
use crate::graph::searching::{Mask, NOBODY};

impl Vectors {
    /// The form of masks: a bit for each id that was given, unless this takes more words than a
    /// list of the allowed ids. A mask thus grows with the vectors, however high ids are.
    pub fn form_of_masks(&self) -> Mask {
        let bits = rounded(self.next.div_ceil(32));
        let ids = rounded(u32::try_from(self.count()).unwrap_or(NOBODY));
        Mask {
            words: bits.min(ids),
            is_listed: ids < bits,
        }
    }

    /// The mask of these ids.
    pub fn mask(&self, ids: impl Iterator<Item = u32>) -> Vec<u32> {
        let form = self.form_of_masks();
        if form.is_listed {
            let mut mask: Vec<u32> = ids.filter(|id| self.has(*id)).collect();
            mask.sort_unstable();
            mask.dedup();
            mask.resize(form.words as usize, NOBODY);
            return mask;
        }
        let mut mask = vec![0; form.words as usize];
        for id in ids {
            if let Some(word) = mask.get_mut(id as usize / 32) {
                *word |= 1 << (id % 32);
            }
        }
        mask
    }

    /// The mask of the ids whose bits are set.
    pub fn mask_of_bits(&self, bits: &[u32]) -> Vec<u32> {
        let form = self.form_of_masks();
        if form.is_listed {
            let is_set = |id: &u32| {
                let word = bits.get(*id as usize / 32);
                word.is_some_and(|word| word >> (id % 32) & 1 != 0)
            };
            return self.mask(self.all().filter(is_set));
        }
        let mut mask = bits[..bits.len().min(form.words as usize)].to_vec();
        mask.resize(form.words as usize, 0);
        mask
    }
}
