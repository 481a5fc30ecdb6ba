//! The host arena: the copy of every input of one batch, and the source of
//! truth for it until the batch settles.
//!
//! Words are appended, never moved: an address given once stays right, so the
//! arena can be uploaded as it lies. It knows nothing of calls.
//!
//! Arenas may share what lies in them: nothing is appended to memory that two see.

use std::sync::Arc;

use super::{ALIGN, aligned};

/// Words of a region, 1 MiB, so that the upload of a usual frame is one write. A region that
/// holds a larger call has a multiple. Memory that one arena gave back therefore fits the
/// next: WebAssembly memory never shrinks, and holes would add up.
const GROWTH: u32 = 1 << 18;

/// A run of words in an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Address of the first word.
    pub at: u32,
    /// Number of words.
    pub words: u32,
}

/// Append-only memory in regions that keep their place.
#[derive(Debug, Default)]
pub struct Arena {
    regions: Vec<Region>,
    /// Empty ones, for what comes.
    spare: Vec<Region>,
    /// Words that were in use when it was last cleared, and that it kept then.
    before: u32,
    kept: u32,
}

#[derive(Debug)]
struct Region {
    memory: Arc<Box<[u32]>>,
    /// Address of the region's first word.
    base: u32,
    /// Words taken; a multiple of [`ALIGN`](super::ALIGN).
    used: u32,
}

impl Region {
    /// Words that can still be taken: those that have memory and an address.
    fn room(&self) -> u32 {
        let addresses = u32::MAX / ALIGN * ALIGN - self.base;
        match self.is_shared() {
            true => 0,
            false => self.capacity().min(addresses) - self.used,
        }
    }

    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.memory) > 1
    }

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

/// Memory for so many words, in whole steps of [`GROWTH`], if there is so much.
fn allocate(words: u32) -> Option<Arc<Box<[u32]>>> {
    let capacity = (words as usize).max(1);
    let capacity = capacity.checked_next_multiple_of(GROWTH as usize)?;
    let mut memory = Vec::new();
    memory.try_reserve_exact(capacity).ok()?;
    memory.resize(capacity, 0);
    Some(Arc::new(memory.into_boxed_slice()))
}

impl Arena {
    /// Words by which an arena grows at least, and a multiple of which each region has.
    pub const GROWTH: u32 = GROWTH;

    /// Words in use, which is also the address of the next one.
    pub fn len(&self) -> u32 {
        self.regions
            .last()
            .map_or(0, |region| region.base + region.used)
    }

    /// Whether nothing was taken yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words allocated; its part of those that it shares.
    pub fn capacity(&self) -> u64 {
        let own = |region: &Region| {
            let holders = Arc::strong_count(&region.memory) as u64;
            u64::from(region.capacity()) / holders
        };
        self.regions.iter().chain(&self.spare).map(own).sum()
    }

    /// Another arena of the same words, each where it is in this one.
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

    /// The free words behind the last one taken; `take` claims from its start.
    pub fn free(&mut self) -> &mut [u32] {
        match self.regions.last_mut() {
            Some(region) if !region.is_shared() => {
                let used = region.used as usize;
                &mut region.memory()[used..]
            }
            _ => &mut [],
        }
    }

    /// Makes [`Arena::free`] hold at least `words`. `false` where there is no memory for
    /// them, or no address: nothing has changed then.
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
        // An empty region that is too small would only be a hole.
        self.regions.pop_if(|region| region.used == 0);
        self.regions.push(Region {
            memory,
            base,
            used: 0,
        });
        true
    }

    /// Whether [`Arena::free`] is memory of its own, which can go to another arena.
    pub fn is_free_apart(&self) -> bool {
        self.regions.last().is_some_and(|region| region.used == 0)
    }

    /// Gives [`Arena::free`], of which so many words were written, to an empty arena: the
    /// memory itself if it is apart, or a copy of the words, which must be reserved there.
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

    /// Appends `words`; the address of the copy.
    pub fn push(&mut self, words: &[u32]) -> Span {
        let count = u32::try_from(words.len()).expect("an arena holds fewer than 2^32 words");
        assert!(self.reserve(count), "there is memory for what is pushed");
        self.free()[..words.len()].copy_from_slice(words);
        self.take(count)
    }

    /// The words of `span`, which lies in one region because it was taken whole.
    pub fn read(&self, span: Span) -> &[u32] {
        &self.tail(span.at)[..span.words as usize]
    }

    /// Shows `visit` the words of a run that was taken in parts, in order.
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

    /// The words from an address on, to the end of what was taken with it.
    pub fn tail(&self, at: u32) -> &[u32] {
        let after = self.regions.partition_point(|region| region.base <= at);
        let Some(region) = after.checked_sub(1).map(|at| &self.regions[at]) else {
            return &[]; // What was shared while it was empty has no regions.
        };
        &region.memory[(at - region.base) as usize..region.used as usize]
    }

    /// The same for writing, what was taken since the arena was shared.
    pub fn write(&mut self, span: Span) -> &mut [u32] {
        let after = self
            .regions
            .partition_point(|region| region.base <= span.at);
        let region = &mut self.regions[after - 1];
        let start = (span.at - region.base) as usize;
        &mut region.memory()[start..start + span.words as usize]
    }

    /// Forgets everything from an address on, a multiple of [`ALIGN`](super::ALIGN).
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

    /// Gives back what was only taken to be forgotten.
    pub fn trim(&mut self) {
        if self.regions.len() > 1 {
            self.regions.pop_if(|region| region.used == 0);
        }
    }

    /// Forgets the contents. What two batches in a row needed is held, in the regions
    /// that it lay in; what only one did is given back, because a burst may not come
    /// again. So is what others still see.
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
            let is_too_large = region.capacity() / 4 > either.max(GROWTH / 4);
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
mod tests {
    use super::super::ALIGN;
    use super::*;

    #[test]
    fn addresses_stay_right_while_chunks_are_added() {
        let mut arena = Arena::default();
        let spans: Vec<(Span, u32)> = (0..9_u32)
            .map(|i| (arena.push(&vec![i; 40_001 * i as usize + 3]), i))
            .collect();
        assert!(arena.regions.len() > 1, "the test needs several regions");
        for (span, i) in spans {
            assert!(arena.read(span).iter().all(|word| *word == i), "call {i}");
            assert_eq!(span.at % ALIGN, 0, "call {i}");
        }
        let whole: u32 = arena.regions.iter().map(|region| region.used).sum();
        assert_eq!(whole, arena.len(), "the upload has no holes");
    }

    #[test]
    fn truncated_arena_holds_what_lies_before() {
        let mut arena = Arena::default();
        let first = arena.push(&[1; 200_000]);
        let second = arena.push(&[2; 200_000]);
        arena.push(&[3; 600_000]);
        arena.truncate(second.at + second.words);
        assert_eq!(arena.len(), 400_000);
        assert!(arena.read(first).iter().all(|word| *word == 1));
        assert!(arena.read(second).iter().all(|word| *word == 2));
        assert_eq!(arena.push(&[4]).at, 400_000);
    }

    #[test]
    fn shared_words_stay_and_are_held_once() {
        let mut arena = Arena::default();
        let first = arena.push(&[1; 200_000]);
        arena.push(&[2; 200_000]);
        let held = arena.capacity();
        let mut other = arena.share();
        assert_eq!(arena.capacity() + other.capacity(), held);
        // Each appends to memory of its own, at the same address.
        let [own, others] = [(&mut arena, 3), (&mut other, 4)].map(|(arena, value)| {
            assert!(arena.free().is_empty());
            arena.push(&[value; 8])
        });
        assert_eq!(own, others);
        assert_eq!((arena.read(own)[7], other.read(others)[7]), (3, 4));
        assert_eq!(other.read(first), arena.read(first));

        // What one forgets is the other's alone.
        arena.clear();
        assert_eq!(arena.capacity(), u64::from(GROWTH), "its own region");
        assert_eq!(arena.push(&[5; 8]).at, 0);
        assert_eq!(other.capacity(), held + u64::from(GROWTH));
        assert!(other.read(first).iter().all(|word| *word == 1));
        other.truncate(others.at);
        other.trim();
        assert_eq!(other.push(&[6; 8]).at, others.at);
        assert_eq!(other.capacity(), held, "it goes on where only it is");
    }

    #[test]
    fn an_arena_shared_while_it_is_empty_reads_as_empty() {
        let mut arena = Arena::default();
        assert!(arena.reserve(8));
        let nothing = arena.take(0);
        for arena in [Arena::default(), arena.share()] {
            assert!(arena.tail(nothing.at).is_empty());
            assert!(arena.read(nothing).is_empty());
        }
    }

    #[test]
    fn what_has_no_address_is_refused_and_changes_nothing() {
        let mut arena = Arena::default();
        arena.push(&[1; 8]);
        let room = arena.free().len();
        for words in [u32::MAX, u32::MAX - 3, u32::MAX - 7] {
            assert!(!arena.reserve(words));
            assert_eq!(arena.free().len(), room);
        }
        assert_eq!(arena.push(&[2; 8]).at, 8);
        assert_eq!(arena.capacity(), u64::from(GROWTH));
    }

    #[test]
    fn the_last_words_that_have_addresses_are_taken_and_none_behind() {
        let end = u32::MAX - 3;
        let region = |base, words| Region {
            memory: allocate(words).expect("memory"),
            base,
            used: 0,
        };
        // The region at the end and the spare one both have memory behind the last address.
        for left in [8, GROWTH - 8, GROWTH + 8] {
            let mut arena = Arena {
                regions: vec![region(end - left, GROWTH)],
                spare: vec![region(0, 2 * GROWTH)],
                ..Arena::default()
            };
            assert!(!arena.reserve(left + 4), "{left} words are left");
            assert!(arena.reserve(left));
            let span = arena.take(left);
            assert_eq!((span.at, arena.len()), (end - left, end));
            assert!(!arena.reserve(4));
        }
        assert_eq!([end - 1, end, u32::MAX].map(super::aligned), [end; 3]);
    }

    #[test]
    fn room_is_handed_over_with_what_was_written_there() {
        for before in [0, 4, GROWTH] {
            let (mut arena, mut next) = (Arena::default(), Arena::default());
            next.push(&[9; 100]);
            next.clear();
            arena.push(&vec![1; before as usize]);
            assert!(arena.reserve(8) && next.reserve(8));
            arena.free()[..8].fill(2);
            let is_apart = before != 4;
            assert_eq!(arena.is_free_apart(), is_apart);
            let held = arena.capacity() + next.capacity();
            arena.hand_over(8, &mut next);
            assert_eq!(arena.capacity() + next.capacity(), held);
            let own = u64::from(before.next_multiple_of(GROWTH));
            assert_eq!(arena.capacity(), own);
            let span = next.take(8);
            assert_eq!((span.at, next.read(span)), (0, &[2; 8][..]));
            assert_eq!(arena.push(&[3; 4]).at, before);
        }
    }

    /// Fills and clears an arena for each count of words; what it holds then.
    fn capacity_after(counts: &[u32]) -> u64 {
        let mut arena = Arena::default();
        for count in counts {
            for _ in 0..count / 100_000 {
                arena.push(&[7; 100_000]);
            }
            arena.clear();
            assert!(arena.is_empty());
        }
        arena.capacity()
    }

    #[test]
    fn memory_of_one_large_call_is_given_back() {
        let mut arena = Arena::default();
        arena.push(&vec![1; 10 * GROWTH as usize]);
        for held in [10 * GROWTH, 10 * GROWTH, 0, GROWTH] {
            arena.clear();
            assert_eq!(arena.capacity(), u64::from(held));
            arena.push(&[2; 4]);
        }
    }

    #[test]
    fn cleared_arena_holds_what_it_needs_again_and_again() {
        const SMALL: u32 = 200_000;
        const LARGE: u32 = 3_000_000;
        let large = LARGE.next_multiple_of(GROWTH);
        let cases: [(&[u32], u32); 6] = [
            (&[SMALL, SMALL], GROWTH),
            (&[SMALL, LARGE], GROWTH),
            (&[SMALL, LARGE, LARGE], large),
            (&[LARGE, LARGE, SMALL, LARGE], large),
            (&[LARGE, LARGE, SMALL], large),
            (&[LARGE, LARGE, SMALL, SMALL], GROWTH),
        ];
        for (counts, expected) in cases {
            assert_eq!(capacity_after(counts), u64::from(expected), "{counts:?}");
        }
    }
}
