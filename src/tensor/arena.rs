//! The host arena: a copy of the operands of one batch, and the source of truth for these until
//! the batch settles.
//!
//! Words are appended and never moved, so that an address stays right and the arena can be
//! uploaded as it lies. An arena knows nothing of calls.
//!
//! Invariant: arenas may share regions, and nothing is appended to a region that two arenas
//! share.

use std::sync::Arc;

use super::{ALIGN, aligned};

/// A run of words in an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Address of the first word.
    pub at: u32,
    /// Number of words.
    pub words: u32,
}

impl Span {
    /// The indexes of the words.
    pub const fn range(self) -> std::ops::Range<usize> {
        self.at as usize..self.at as usize + self.words as usize
    }
}

/// Append-only memory in regions that keep their place.
#[derive(Debug, Default)]
pub struct Arena {
    regions: Vec<Region>,
    /// Empty regions, which are used before memory is allocated.
    spare: Vec<Region>,
    /// Words that were in use when the arena was last cleared.
    before: u32,
    /// Words that the arena held on to when it was last cleared.
    kept: u32,
}

/// A stretch of memory that was allocated at once.
#[derive(Debug)]
struct Region {
    memory: Arc<Box<[u32]>>,
    /// Address of the region's first word.
    base: u32,
    /// Words taken; a multiple of [`ALIGN`](super::ALIGN).
    used: u32,
}

impl Region {
    /// Words that can still be taken, because there is memory and an address for each.
    fn room(&self) -> u32 {
        let addresses = u32::MAX / ALIGN * ALIGN - self.base;
        match self.is_shared() {
            true => 0,
            false => self.capacity().min(addresses) - self.used,
        }
    }

    /// Whether another arena has the same memory.
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.memory) > 1
    }

    /// The memory for writing; empty if it is shared.
    fn memory(&mut self) -> &mut [u32] {
        Arc::get_mut(&mut self.memory).map_or(&mut [], |memory| memory)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "allocated from a u32 count"
    )]
    fn capacity(&self) -> u32 {
        self.memory.len() as u32
    }
}

/// Allocates so many words, rounded up to a multiple of [`Arena::GROWTH`]; `None` where there is
/// no memory.
fn allocate(words: u32) -> Option<Arc<Box<[u32]>>> {
    let capacity = (words as usize).max(1);
    let capacity = capacity.checked_next_multiple_of(Arena::GROWTH as usize)?;
    let mut memory = Vec::new();
    memory.try_reserve_exact(capacity).ok()?;
    memory.resize(capacity, 0);
    Some(Arc::new(memory.into_boxed_slice()))
}

impl Arena {
    /// Words by which an arena grows at least, 1 MiB, so that the upload of a usual frame is one
    /// write. A region has a multiple, so that memory which one arena gave back fits the next:
    /// WebAssembly memory never shrinks, and holes would add up.
    pub const GROWTH: u32 = 1 << 18;

    /// Words in use, which is also the address of the next word.
    pub fn len(&self) -> u32 {
        self.regions
            .last()
            .map_or(0, |region| region.base + region.used)
    }

    /// Whether nothing was taken yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words allocated; of regions that several arenas share, this arena's part.
    pub fn capacity(&self) -> u64 {
        let own = |region: &Region| {
            let holders = Arc::strong_count(&region.memory) as u64;
            u64::from(region.capacity()) / holders
        };
        self.regions.iter().chain(&self.spare).map(own).sum()
    }

    /// Another arena that shares the words of this one, at the same addresses.
    pub fn share(&self) -> Arena {
        let regions = self.regions.iter().filter(|region| region.used > 0);
        let regions = regions.map(|region| Region {
            memory: Arc::clone(&region.memory),
            ..*region
        });
        Arena {
            regions: regions.collect(),
            ..Arena::default()
        }
    }

    /// The free words behind the last one taken. [`Arena::take`] claims these from the start.
    pub fn free(&mut self) -> &mut [u32] {
        match self.regions.last_mut() {
            Some(region) if !region.is_shared() => {
                let used = region.used as usize;
                &mut region.memory()[used..]
            }
            _ => &mut [],
        }
    }

    /// Makes [`Arena::free`] at least `words` long. Returns `false` and changes nothing where
    /// there is no memory for so many words, or no address.
    #[must_use]
    pub fn reserve(&mut self, words: u32) -> bool {
        let base = self.len();
        let words = words.checked_next_multiple_of(ALIGN);
        let Some(words) = words.filter(|words| base.checked_add(*words).is_some()) else {
            return false;
        };
        if self
            .regions
            .last()
            .is_some_and(|region| region.room() >= words)
        {
            return true;
        }
        let spare = self
            .spare
            .iter()
            .position(|region| region.capacity() >= words);
        let memory = match spare {
            Some(spare) => Some(self.spare.swap_remove(spare).memory),
            None => allocate(words),
        };
        let Some(memory) = memory else {
            return false;
        };
        // An empty region that is too small would be a hole among the addresses.
        self.regions.pop_if(|region| region.used == 0);
        self.regions.push(Region {
            memory,
            base,
            used: 0,
        });
        true
    }

    /// Whether [`Arena::free`] is a whole region, which another arena can take.
    pub fn is_free_apart(&self) -> bool {
        self.regions.last().is_some_and(|region| region.used == 0)
    }

    /// Gives the first `words` of [`Arena::free`] to an empty arena: the region itself if nothing
    /// else is in it, otherwise a copy of the words, which must be reserved there.
    pub fn hand_over(&mut self, words: u32, next: &mut Arena) {
        match self.regions.pop_if(|region| region.used == 0) {
            Some(region) => {
                next.spare.append(&mut next.regions);
                next.regions.push(Region { base: 0, ..region });
            }
            None => {
                let written = &self.free()[..words as usize];
                next.free()[..written.len()].copy_from_slice(written);
            }
        }
    }

    /// Claims the first `words` of [`Arena::free`], which must be reserved.
    pub fn take(&mut self, words: u32) -> Span {
        let region = self.regions.last_mut().expect("reserved before taking");
        assert!(aligned(words) <= region.room(), "reserved before taking");
        let at = region.base + region.used;
        region.used += aligned(words);
        Span { at, words }
    }

    /// Appends a copy of `words`, and returns where it lies.
    pub fn push(&mut self, words: &[u32]) -> Span {
        let count = u32::try_from(words.len()).expect("an arena holds fewer than 2^32 words");
        assert!(self.reserve(count), "there is memory for what is pushed");
        self.free()[..words.len()].copy_from_slice(words);
        self.take(count)
    }

    /// The words of a span that was taken at once, and so lies in one region.
    pub fn read(&self, span: Span) -> &[u32] {
        &self.tail(span.at)[..span.words as usize]
    }

    /// Shows `visit` the words of a span that may have been taken in parts, in order.
    pub fn each_slice(&self, span: Span, visit: &mut dyn FnMut(&[u32])) {
        let end = span.at + span.words;
        for region in &self.regions {
            let from = span.at.max(region.base);
            let to = end.min(region.base + region.used);
            if from < to {
                let start = (from - region.base) as usize;
                visit(&region.memory[start..start + (to - from) as usize]);
            }
        }
    }

    /// The words from an address on, to the last one taken of that region.
    pub fn tail(&self, at: u32) -> &[u32] {
        let after = self.regions.partition_point(|region| region.base <= at);
        let Some(region) = after.checked_sub(1).map(|at| &self.regions[at]) else {
            return &[]; // An arena that shares an empty one has no regions.
        };
        &region.memory[(at - region.base) as usize..region.used as usize]
    }

    /// The words of a span for writing, if it was taken after the arena was last shared.
    pub fn write(&mut self, span: Span) -> &mut [u32] {
        let after = self
            .regions
            .partition_point(|region| region.base <= span.at);
        let region = &mut self.regions[after - 1];
        let start = (span.at - region.base) as usize;
        &mut region.memory()[start..start + span.words as usize]
    }

    /// Forgets all words from an address on, which must be a multiple of [`ALIGN`](super::ALIGN).
    pub fn truncate(&mut self, words: u32) {
        while self
            .regions
            .last()
            .is_some_and(|region| region.base > words)
        {
            self.regions.pop();
        }
        if let Some(region) = self.regions.last_mut() {
            region.used = region.used.min(words - region.base);
        }
    }

    /// Frees the last region if it is empty and not the only one.
    pub fn trim(&mut self) {
        if self.regions.len() > 1 {
            self.regions.pop_if(|region| region.used == 0);
        }
    }

    /// Forgets all words. The arena holds on to as much memory as two batches in a row needed;
    /// what only one batch needed is freed, because a burst may not come again. Shared regions
    /// are left to the other arenas.
    pub fn clear(&mut self) {
        let used = self.len();
        let both = used.min(self.before);
        let either = used.max(self.before);
        self.before = used;
        if both > self.kept {
            self.kept = both;
        } else if either < self.kept / 4 {
            self.kept = either;
        }
        let mut kept = 0;
        let most = u64::from(self.kept);
        self.regions.append(&mut self.spare);
        self.regions.retain(|region| {
            let is_too_large = region.capacity() / 4 > either.max(Arena::GROWTH / 4);
            let is_wanted = kept == 0 || kept < most;
            let is_kept = is_wanted && !is_too_large && !region.is_shared();
            kept += u64::from(if is_kept { region.capacity() } else { 0 });
            is_kept
        });
        for region in &mut self.regions {
            (region.base, region.used) = (0, 0);
        }
        self.spare = self.regions.split_off(self.regions.len().min(1));
    }
}

#[cfg(test)]
#[path = "arena_tests.rs"]
mod tests;
