//! Words that TypeScript reads without entering the core: where the next operands go, where the
//! room for them ends, and how many batches are in flight.

use std::cell::Cell;

/// The cursor and the limit as word indexes into wasm memory, how many batches are in flight, and
/// how many of these a GPU works on.
/// Invariant: the words themselves never move.
#[derive(Debug, Default)]
pub(super) struct Header {
    words: Box<[Cell<u32>; 4]>,
}

impl Header {
    /// Word index of the cursor; the others follow it.
    pub(super) fn address(&self) -> u32 {
        word_index(self.words.as_ptr())
    }

    /// Points at the free room of a batch.
    pub(super) fn point_at(&self, room: &[u32]) {
        let range = room.as_ptr_range();
        self.words[0].set(word_index(range.start));
        self.words[1].set(word_index(range.end));
    }

    /// Writes how many batches are in flight.
    pub(super) fn count_flights(&self, flights: usize) {
        self.words[2].set(count(flights));
    }

    /// Writes how many batches a GPU works on.
    pub(super) fn count_owed(&self, owed: usize) {
        self.words[3].set(count(owed));
    }
}

fn count(batches: usize) -> u32 {
    u32::try_from(batches).unwrap_or(u32::MAX)
}

/// The place of a word in wasm memory, which is 32 bits wide.
#[expect(
    clippy::cast_possible_truncation,
    reason = "an address on wasm32 has 32 bits"
)]
pub(super) fn word_index<T>(address: *const T) -> u32 {
    (address as usize / crate::tensor::WORD as usize) as u32
}
