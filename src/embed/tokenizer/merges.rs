//! Which pairs of tokens become one, and in which order: the merges of a BPE.

use super::text::number;

/// A part of a pair's hash, and its rank plus one; 0 where there is none.
type Slot = (u32, u32);

/// All merges, found by the two tokens that they join.
pub(super) struct Merges {
    /// In the order of their ranks: two tokens, and that which they become.
    all: Vec<[u32; 3]>,
    slots: Vec<Slot>,
}

impl Default for Merges {
    fn default() -> Merges {
        Merges {
            all: Vec::new(),
            slots: vec![(0, 0); 16],
        }
    }
}

impl Merges {
    /// Adds the merge of the next rank. Of merges of equal pairs the last one counts.
    pub(super) fn push(&mut self, left: u32, right: u32, whole: u32) {
        self.all.push([left, right, whole]);
        let rank = number(self.all.len());
        // A quarter of the slots stays free.
        if 4 * self.all.len() > 3 * self.slots.len() {
            let slots = vec![(0, 0); 2 * self.slots.len()];
            let before = std::mem::replace(&mut self.slots, slots);
            for slot in before.into_iter().filter(|(_, rank)| *rank != 0) {
                let mut at = self.first(slot.0);
                while self.slots[at].1 != 0 {
                    at = self.next(at);
                }
                self.slots[at] = slot;
            }
        }
        let hash = hash(left, right);
        let at = self.slot(hash, left, right);
        self.slots[at] = (hash, rank);
    }

    fn first(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// The slot of a pair, or the free slot where it belongs.
    fn slot(&self, hash: u32, left: u32, right: u32) -> usize {
        let mut at = self.first(hash);
        loop {
            let (other, rank) = self.slots[at];
            if rank == 0 {
                return at;
            }
            if other == hash && self.all[rank as usize - 1][..2] == [left, right] {
                return at;
            }
            at = self.next(at);
        }
    }

    /// The rank of the merge of two tokens.
    pub(super) fn rank(&self, left: u32, right: u32) -> Option<u32> {
        let slot = self.slot(hash(left, right), left, right);
        self.slots[slot].1.checked_sub(1)
    }

    /// What the tokens of a merge become.
    pub(super) fn whole(&self, rank: u32) -> u32 {
        self.all[rank as usize][2]
    }
}

/// The finalizer of MurmurHash3 over both.
fn hash(left: u32, right: u32) -> u32 {
    let mut hash = left.wrapping_mul(0x9e37_79b1) ^ right.rotate_left(16);
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
