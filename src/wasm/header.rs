//! Two words that TypeScript reads at every call: where operands go, and how
//! far the room reaches.

use std::cell::Cell;

/// Cursor and limit as word indexes into wasm memory. Invariant: the words
/// themselves never move.
#[derive(Debug, Default)]
pub(super) struct Header {
    words: Box<[Cell<u32>; 2]>,
}

impl Header {
    /// Word index of the cursor; the limit follows it.
    pub(super) fn address(&self) -> u32 {
        word_index(self.words.as_ptr())
    }

    /// Points at the free room of a batch.
    pub(super) fn point_at(&self, room: &[u32]) {
        let range = room.as_ptr_range();
        self.words[0].set(word_index(range.start));
        self.words[1].set(word_index(range.end));
    }
}

/// The place of a word in wasm memory, which is 32 bits wide.
#[expect(
    clippy::cast_possible_truncation,
    reason = "an address on wasm32 has 32 bits"
)]
pub(super) fn word_index<T>(address: *const T) -> u32 {
    (address as usize / crate::tensor::WORD) as u32
}
