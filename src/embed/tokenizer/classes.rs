//! The classes of characters that regular expressions name: letters, numbers, what words are made
//! of.
//!
//! The classes are those of `regex-syntax`, which Hugging Face's tokenizers use, and lie in `classes.bin`;
//! `tests/tokenizer/peer/tables.rs` writes it. White space is the standard library's, as there.

use std::sync::LazyLock;

use super::kinds::Kinds;
use super::table::Table;

static CLASSES: LazyLock<Classes> =
    LazyLock::new(|| Classes(Kinds::read(&mut Table::new(include_bytes!("classes.bin")))));

/// Whether [`is_word`] tells words from other signs.
pub(super) const KNOWS_WORDS: bool = true;

/// Whether a character is one of a word: `\w`.
pub(super) fn is_word(c: char) -> bool {
    classes().of(c).is_word()
}

/// The classes of all characters.
pub(super) fn classes() -> &'static Classes {
    &CLASSES
}

pub(super) struct Classes(Kinds);

/// The classes of a character.
#[derive(Clone, Copy, Default)]
pub(super) struct Class(u8);

impl Classes {
    pub(super) fn of(&self, c: char) -> Class {
        Class(self.0.of(c))
    }
}

impl Class {
    /// `\p{L}`.
    pub(super) fn is_letter(self) -> bool {
        self.0 & 1 != 0
    }

    /// `\p{N}`.
    pub(super) fn is_number(self) -> bool {
        self.0 & 2 != 0
    }

    /// `\w`.
    pub(super) fn is_word(self) -> bool {
        self.0 & 4 != 0
    }

    /// `\s`.
    pub(super) fn is_space(self) -> bool {
        self.0 & 8 != 0
    }
}
