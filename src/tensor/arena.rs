//! The host arena: the copy of every input of one batch, and the source of
//! truth for it until the batch settles.
//!
//! Words are appended, never moved: an address given once stays right, so the
//! arena can be uploaded as it lies. It knows nothing of calls.
//!
//! Arenas may share what lies in them: nothing is appended to memory that two see.

use std::sync::Arc;

use super::{ALIGN, aligned};

/// Words of a chunk, or of a part of one that holds a larger call: 1 MiB, so that a
/// usual frame is one write. All of one size, so that memory which one arena gave
/// back fits the next: the browser's never shrinks, and holes would add up.
const CHUNK: u32 = 1 << 18;

/// A run of words in an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Address of the first word.
    pub at: u32,
    /// Number of words.
    pub words: u32,
}

/// Append-only memory in chunks that keep their place.
#[derive(Debug, Default)]
pub struct Arena {
    chunks: Vec<Chunk>,
    /// Empty ones, for what comes.
    spare: Vec<Chunk>,
    /// Words that were in use when it was last cleared, and that it kept then.
    before: u32,
    kept: u32,
}

#[derive(Debug)]
struct Chunk {
    memory: Arc<Box<[u32]>>,
    /// Address of the chunk's first word.
    base: u32,
    /// Words taken; a multiple of [`ALIGN`](super::ALIGN).
    used: u32,
}

impl Chunk {
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

/// Memory for so many words, in whole chunks, if there is so much.
fn allocate(words: u32) -> Option<Arc<Box<[u32]>>> {
    let capacity = (words as usize).max(1);
    let capacity = capacity.checked_next_multiple_of(CHUNK as usize)?;
    let mut memory = Vec::new();
    memory.try_reserve_exact(capacity).ok()?;
    memory.resize(capacity, 0);
    Some(Arc::new(memory.into_boxed_slice()))
}

impl Arena {
    /// Words by which one grows at least.
    pub const CHUNK: u32 = CHUNK;

    /// Words in use, which is also the address of the next one.
    pub fn len(&self) -> u32 {
        self.chunks
            .last()
            .map_or(0, |chunk| chunk.base + chunk.used)
    }

    /// Whether nothing was taken yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words allocated; its part of those that it shares.
    pub fn capacity(&self) -> u64 {
        let own = |chunk: &Chunk| {
            let holders = Arc::strong_count(&chunk.memory) as u64;
            u64::from(chunk.capacity()) / holders
        };
        self.chunks.iter().chain(&self.spare).map(own).sum()
    }

    /// Another arena of the same words, each where it is in this one.
    pub fn share(&self) -> Arena {
        let chunks = self.chunks.iter().filter(|chunk| chunk.used > 0);
        let chunks = chunks.map(|chunk| Chunk {
            memory: Arc::clone(&chunk.memory),
            ..*chunk
        });
        Arena {
            chunks: chunks.collect(),
            ..Arena::default()
        }
    }

    /// The free words behind the last one taken; `take` claims from its start.
    pub fn free(&mut self) -> &mut [u32] {
        match self.chunks.last_mut() {
            Some(chunk) if !chunk.is_shared() => {
                let used = chunk.used as usize;
                &mut chunk.memory()[used..]
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
            .chunks
            .last()
            .is_some_and(|chunk| chunk.room() >= words)
        {
            return true;
        }
        let spare = self
            .spare
            .iter()
            .position(|chunk| chunk.capacity() >= words);
        let memory = match spare {
            Some(spare) => Some(self.spare.swap_remove(spare).memory),
            None => allocate(words),
        };
        let Some(memory) = memory else {
            return false;
        };
        // An empty chunk that is too small would only be a hole.
        self.chunks.pop_if(|chunk| chunk.used == 0);
        self.chunks.push(Chunk {
            memory,
            base,
            used: 0,
        });
        true
    }

    /// Whether [`Arena::free`] is memory of its own, which can go to another arena.
    pub fn is_free_apart(&self) -> bool {
        self.chunks.last().is_some_and(|chunk| chunk.used == 0)
    }

    /// Gives [`Arena::free`], of which so many words were written, to an empty arena: the
    /// memory itself if it is apart, or a copy of the words, which must be reserved there.
    pub fn hand_over(&mut self, words: u32, next: &mut Arena) {
        match self.chunks.pop_if(|chunk| chunk.used == 0) {
            Some(chunk) => {
                next.spare.append(&mut next.chunks);
                next.chunks.push(Chunk { base: 0, ..chunk });
            }
            None => {
                let written = &self.free()[..words as usize];
                next.free()[..written.len()].copy_from_slice(written);
            }
        }
    }

    /// Claims the first `words` of [`Arena::free`], which must be reserved.
    pub fn take(&mut self, words: u32) -> Span {
        let chunk = self.chunks.last_mut().expect("reserved before taking");
        assert!(aligned(words) <= chunk.room(), "reserved before taking");
        let at = chunk.base + chunk.used;
        chunk.used += aligned(words);
        Span { at, words }
    }

    /// Appends `words`; the address of the copy.
    pub fn push(&mut self, words: &[u32]) -> Span {
        let count = u32::try_from(words.len()).expect("an arena holds fewer than 2^32 words");
        assert!(self.reserve(count), "there is memory for what is pushed");
        self.free()[..words.len()].copy_from_slice(words);
        self.take(count)
    }

    /// The words of `span`, which lies in one chunk because it was taken whole.
    pub fn read(&self, span: Span) -> &[u32] {
        &self.tail(span.at)[..span.words as usize]
    }

    /// Shows `visit` the words of a run that was taken in parts, in order.
    pub fn each_slice(&self, span: Span, visit: &mut dyn FnMut(&[u32])) {
        let end = span.at + span.words;
        for chunk in &self.chunks {
            let from = span.at.max(chunk.base);
            let to = end.min(chunk.base + chunk.used);
            if from < to {
                let start = (from - chunk.base) as usize;
                visit(&chunk.memory[start..start + (to - from) as usize]);
            }
        }
    }

    /// The words from an address on, to the end of what was taken with it.
    pub fn tail(&self, at: u32) -> &[u32] {
        let after = self.chunks.partition_point(|chunk| chunk.base <= at);
        let Some(chunk) = after.checked_sub(1).map(|at| &self.chunks[at]) else {
            return &[]; // What was shared while it was empty has no chunks.
        };
        &chunk.memory[(at - chunk.base) as usize..chunk.used as usize]
    }

    /// The same for writing, what was taken since the arena was shared.
    pub fn write(&mut self, span: Span) -> &mut [u32] {
        let after = self.chunks.partition_point(|chunk| chunk.base <= span.at);
        let chunk = &mut self.chunks[after - 1];
        let start = (span.at - chunk.base) as usize;
        &mut chunk.memory()[start..start + span.words as usize]
    }

    /// Forgets everything from an address on, a multiple of [`ALIGN`](super::ALIGN).
    pub fn truncate(&mut self, words: u32) {
        while self.chunks.last().is_some_and(|chunk| chunk.base > words) {
            self.chunks.pop();
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.used = chunk.used.min(words - chunk.base);
        }
    }

    /// Gives back what was only taken to be forgotten.
    pub fn trim(&mut self) {
        if self.chunks.len() > 1 {
            self.chunks.pop_if(|chunk| chunk.used == 0);
        }
    }

    /// Address and words of each chunk in use, in order, without gaps.
    pub fn pieces(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.chunks
            .iter()
            .filter(|chunk| chunk.used > 0)
            .map(|chunk| (chunk.base, &chunk.memory[..chunk.used as usize]))
    }

    /// Forgets the contents. What two batches in a row needed is held, in the chunks
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
        self.chunks.append(&mut self.spare);
        self.chunks.retain(|chunk| {
            let is_too_large = chunk.capacity() / 4 > either.max(CHUNK / 4);
            let is_wanted = kept == 0 || kept < most;
            let is_kept = is_wanted && !is_too_large && !chunk.is_shared();
            kept += u64::from(if is_kept { chunk.capacity() } else { 0 });
            is_kept
        });
        for chunk in &mut self.chunks {
            (chunk.base, chunk.used) = (0, 0);
        }
        self.spare = self.chunks.split_off(self.chunks.len().min(1));
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
        assert!(arena.chunks.len() > 1, "the test needs several chunks");
        for (span, i) in spans {
            assert!(arena.read(span).iter().all(|word| *word == i), "call {i}");
            assert_eq!(span.at % ALIGN, 0, "call {i}");
        }
        let whole: u32 = arena.pieces().map(|(_, words)| words.len() as u32).sum();
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
        assert_eq!(arena.capacity(), u64::from(CHUNK), "its own chunk");
        assert_eq!(arena.push(&[5; 8]).at, 0);
        assert_eq!(other.capacity(), held + u64::from(CHUNK));
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
        assert_eq!(arena.capacity(), u64::from(CHUNK));
    }

    #[test]
    fn the_last_words_that_have_addresses_are_taken_and_none_behind() {
        let end = u32::MAX - 3;
        let chunk = |base, words| Chunk {
            memory: allocate(words).expect("memory"),
            base,
            used: 0,
        };
        // The chunk at the end and the spare one both have memory behind the last address.
        for left in [8, CHUNK - 8, CHUNK + 8] {
            let mut arena = Arena {
                chunks: vec![chunk(end - left, CHUNK)],
                spare: vec![chunk(0, 2 * CHUNK)],
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
        for before in [0, 4, CHUNK] {
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
            let own = u64::from(before.next_multiple_of(CHUNK));
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
        arena.push(&vec![1; 10 * CHUNK as usize]);
        for held in [10 * CHUNK, 10 * CHUNK, 0, CHUNK] {
            arena.clear();
            assert_eq!(arena.capacity(), u64::from(held));
            arena.push(&[2; 4]);
        }
    }

    #[test]
    fn cleared_arena_holds_what_it_needs_again_and_again() {
        const SMALL: u32 = 200_000;
        const LARGE: u32 = 3_000_000;
        let large = LARGE.next_multiple_of(CHUNK);
        let cases: [(&[u32], u32); 6] = [
            (&[SMALL, SMALL], CHUNK),
            (&[SMALL, LARGE], CHUNK),
            (&[SMALL, LARGE, LARGE], large),
            (&[LARGE, LARGE, SMALL, LARGE], large),
            (&[LARGE, LARGE, SMALL], large),
            (&[LARGE, LARGE, SMALL, SMALL], CHUNK),
        ];
        for (counts, expected) in cases {
            assert_eq!(capacity_after(counts), u64::from(expected), "{counts:?}");
        }
    }
}
