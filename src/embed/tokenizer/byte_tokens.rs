//! The tokens that stand for single bytes.

use super::byte_letters::letter;
use super::vocabulary::Vocabulary;

/// The places of the tokens of the 256 bytes, as far as there are such tokens.
pub(super) struct Bytes(Vec<Option<u32>>);

impl Bytes {
    /// No tokens.
    pub(super) fn none() -> Bytes {
        Bytes(vec![None; 256])
    }

    /// The tokens `<0x00>` to `<0xFF>`.
    pub(super) fn named(vocabulary: &Vocabulary) -> Bytes {
        let digit = |four: u8| char::from_digit(four.into(), 16).unwrap_or_default();
        let name = |byte: u8| {
            let digits =
                [digit(byte >> 4), digit(byte & 15)].map(|digit| digit.to_ascii_uppercase());
            ['<', '0', 'x', digits[0], digits[1], '>']
                .iter()
                .collect::<String>()
        };
        Bytes(
            (0..=255)
                .map(|byte| vocabulary.place(name(byte).as_bytes()))
                .collect(),
        )
    }

    /// The tokens of the letters of byte-level vocabularies.
    pub(super) fn letters(vocabulary: &Vocabulary) -> Bytes {
        let place = |byte| vocabulary.place(letter(byte).encode_utf8(&mut [0; 4]).as_bytes());
        Bytes((0..=255).map(place).collect())
    }

    pub(super) fn token(&self, byte: u8) -> Option<u32> {
        self.0[usize::from(byte)]
    }

    /// Whether all bytes of a text have tokens.
    pub(super) fn has(&self, text: &[u8]) -> bool {
        text.iter().all(|byte| self.token(*byte).is_some())
    }

    /// The tokens of a text's bytes.
    pub(super) fn of<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = u32> + 'a {
        text.iter().filter_map(|byte| self.token(*byte))
    }

    /// The first byte without a token.
    pub(super) fn missing(&self) -> Option<u8> {
        (0..=255).find(|byte| self.token(*byte).is_none())
    }
}
