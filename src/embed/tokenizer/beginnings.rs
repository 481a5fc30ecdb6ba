//! Finds all tokens that a text begins with, the shortest first, and knows when there are no more.

use super::vocabulary::{BEGINNING, SEED, Vocabulary, extend};

/// What is known of the beginning of a text.
pub(super) enum Match {
    None,
    /// A longer text may be a token.
    Beginning,
    Token(u32),
}

impl Vocabulary {
    /// Notes all beginnings of a token, so that [`Vocabulary::matches`] knows where to end.
    pub(super) fn push_beginnings(&mut self, token: &str) {
        let (bytes, mut hash) = (token.as_bytes(), SEED);
        for (at, byte) in bytes.iter().enumerate().take(bytes.len().saturating_sub(1)) {
            hash = extend(hash, byte);
            if !token.is_char_boundary(at + 1) {
                continue;
            }
            self.reserve();
            let mut slot = self.first(hash);
            while self.slots[slot].1 != 0 && self.slots[slot].0 != hash {
                slot = self.next(slot);
            }
            if self.slots[slot].1 == 0 {
                self.slots[slot] = (hash, BEGINNING);
                self.used += 1;
            }
        }
    }

    /// What is known of a text with this hash, whose beginnings were noted.
    pub(super) fn matches(&self, hash: u32, text: &[u8]) -> Match {
        let (mut at, mut is_beginning) = (self.first(hash), false);
        while self.slots[at].1 != 0 {
            if self.holds(at, hash, &[], text) {
                return Match::Token(self.slots[at].1 - 1);
            }
            is_beginning |= self.slots[at].0 == hash;
            at = self.next(at);
        }
        match is_beginning {
            true => Match::Beginning,
            false => Match::None,
        }
    }
}
