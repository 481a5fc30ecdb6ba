//! A text on its way to tokens, and where each of its bytes is from.
//!
//! What a text becomes is the matter of normalizers and pre-tokenizers. Where it is from is kept
//! only where somebody asks for offsets.

use std::ops::Range;

/// The bytes of a text as given that a character stands for: from, to.
pub(super) type Origin = (u32, u32);

/// Whether it is followed where characters are from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Follows {
    #[default]
    Nothing,
    Origins,
}

/// A part of a text as it is given, or what became of it.
#[derive(Default)]
pub(super) struct Text {
    pub(super) text: String,
    /// For each byte the origin of its character; empty unless offsets are asked for.
    origins: Vec<Origin>,
    follows: Follows,
    /// Where the part begins in the text as given.
    pub(super) base: u32,
}

impl Text {
    /// An empty text.
    pub(super) fn new(follows: Follows) -> Text {
        Text {
            follows,
            ..Text::default()
        }
    }

    /// Becomes the part of a text as given that begins at `base`.
    pub(super) fn take(&mut self, part: &str, base: usize) {
        self.clear(number(base));
        self.text.push_str(part);
        if self.is_aligned() {
            for (at, c) in part.char_indices() {
                let from = self.base + number(at);
                let to = from + number(c.len_utf8());
                self.origins.extend((from..to).map(|_| (from, to)));
            }
        }
    }

    /// Becomes empty, to be filled with what a part at `base` becomes.
    fn clear(&mut self, base: u32) {
        self.text.clear();
        self.origins.clear();
        self.base = base;
    }

    /// Becomes empty, to be filled with what `from` becomes.
    pub(super) fn restart(&mut self, from: &Text) {
        self.clear(from.base);
    }

    pub(super) fn is_aligned(&self) -> bool {
        self.follows == Follows::Origins
    }

    pub(super) fn push(&mut self, c: char, origin: Origin) {
        self.text.push(c);
        if self.is_aligned() {
            self.origins.extend((0..c.len_utf8()).map(|_| origin));
        }
    }

    /// Appends a part of another text.
    pub(super) fn append(&mut self, from: &Text, part: Range<usize>) {
        self.text.push_str(&from.text[part.clone()]);
        if self.is_aligned() {
            self.origins.extend_from_slice(&from.origins[part]);
        }
    }

    /// A copy of a part of the text.
    pub(super) fn part(&self, part: Range<usize>) -> Text {
        let mut copy = Text::new(self.follows);
        copy.base = self.base + number(part.start);
        copy.append(self, part);
        copy
    }

    /// The origin of the character that a byte belongs to; any where no offsets are asked for.
    pub(super) fn origin(&self, byte: usize) -> Origin {
        self.origins.get(byte).copied().unwrap_or_default()
    }

    /// The bytes of the text as given that a token stands for. Offsets of tokenizers that drop
    /// characters may lie outside of the piece, and are then left as they are.
    pub(super) fn offsets(&self, piece: &Range<usize>, token: Origin) -> Origin {
        let (from, to) = (
            piece.start + token.0 as usize,
            piece.start + token.1 as usize,
        );
        let start = self.origin(piece.start).0;
        match from < to {
            false => (start + token.0, start + token.0),
            true if to > piece.end => token,
            true => (self.origin(from).0, self.origin(to - 1).1),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "no text of 4 GiB is split; offsets beyond would be wrong, not unsound"
)]
pub(super) fn number(at: usize) -> u32 {
    at as u32
}
