//! The arena pool: arenas of settled batches, kept for the next ones.
//!
//! Others decide which batch gets an arena, and when the pool is emptied.

use crate::tensor::Arena;

/// Arenas that are kept: as many as batches usually are in flight.
pub(super) const MOST_SPARE: usize = 4;

/// Arenas without a batch.
#[derive(Debug, Default)]
pub(super) struct ArenaPool {
    spare: Vec<Arena>,
}

impl ArenaPool {
    /// An arena for the next batch: the one that was kept last, or one without memory.
    pub(super) fn take(&mut self) -> Arena {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps an arena, unless there are enough. More are only needed while a device is lost
    /// or slow.
    pub(super) fn keep(&mut self, mut arena: Arena) {
        if self.spare.len() < MOST_SPARE {
            arena.clear();
        }
        if self.spare.len() < MOST_SPARE && arena.capacity() > 0 {
            self.spare.push(arena);
        }
    }

    /// Sees to it that the next arena has room for so many words; `false` where there is no
    /// memory for them.
    pub(super) fn reserve(&mut self, words: u32) -> bool {
        let mut next = self.take();
        let has_room = next.reserve(words);
        self.spare.push(next);
        has_room
    }

    /// Frees what is kept.
    pub(super) fn clear(&mut self) {
        self.spare.clear();
    }

    /// The arenas that are kept.
    pub(super) fn spare(&self) -> &[Arena] {
        &self.spare
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    /// An arena with an operand in it.
    fn used() -> Arena {
        let mut arena = Arena::default();
        assert!(arena.reserve(4));
        arena.push(&[1; 4]);
        arena
    }

    #[test]
    fn arenas_are_kept_empty_and_no_more_than_enough() {
        let mut pool = ArenaPool::default();
        pool.keep(Arena::default());
        assert!(pool.spare().is_empty(), "an arena without memory");
        for _ in 0..=MOST_SPARE {
            pool.keep(used());
        }
        assert_eq!(pool.spare().len(), MOST_SPARE);
        assert!(pool.spare().iter().all(Arena::is_empty));
        assert!(pool.take().capacity() > 0);
        pool.clear();
        assert_eq!(pool.take().capacity(), 0);
    }

    #[test]
    fn room_is_made_in_the_arena_that_is_taken_next() {
        let mut pool = ArenaPool::default();
        assert!(pool.reserve(100) && pool.reserve(10));
        assert_eq!(pool.spare().len(), 1);
        assert!(pool.take().capacity() >= 100);
    }
}
