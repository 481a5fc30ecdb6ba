//! WordPiece: words are split into pieces, the longest piece first.

use super::fields::Fields;
use super::output::Output;
use super::text::number;
use super::vocabulary::{SEED, Vocabulary, extend};
use crate::error::Error;

pub(super) struct WordPiece {
    pub(super) vocabulary: Vocabulary,
    /// The prefix in the vocabulary of pieces that do not begin a word.
    pub(super) prefix: Vec<u8>,
    pub(super) max_chars_per_word: usize,
    pub(super) unk: u32,
}

impl WordPiece {
    /// The model of a file's fields.
    pub(super) fn read(fields: Fields<'_>, vocabulary: Vocabulary) -> Result<WordPiece, Error> {
        let prefix = fields.text("continuing_subword_prefix")?.unwrap_or("##");
        let characters = fields.count("max_input_chars_per_word")?.unwrap_or(100);
        let unk = fields.text("unk_token")?.unwrap_or("[UNK]");
        let unk = vocabulary.needed(unk)?;
        Ok(WordPiece {
            unk: vocabulary.id(unk),
            vocabulary,
            prefix: prefix.into(),
            max_chars_per_word: characters as usize,
        })
    }

    /// Appends the pieces of a word, or the token of unknown words.
    pub(super) fn split(&self, word: &str, hashes: &mut Vec<u32>, out: &mut Output) {
        let is_long =
            word.len() > self.max_chars_per_word && word.chars().count() > self.max_chars_per_word;
        if is_long || !self.pieces(word.as_bytes(), hashes, out) {
            out.push(self.unk, (0, number(word.len())));
        }
    }

    /// Appends the pieces of a word, or nothing if it is not made of pieces.
    fn pieces(&self, word: &[u8], hashes: &mut Vec<u32>, out: &mut Output) -> bool {
        let before = out.len();
        let continuing = self.prefix.iter().fold(SEED, extend);
        let (mut prefix, mut seed): (&[u8], u32) = (&[], SEED);
        let mut rest = word;
        while !rest.is_empty() {
            hashes.clear();
            let mut hash = seed;
            hashes.extend(rest.iter().take(self.vocabulary.longest).map(|byte| {
                hash = extend(hash, byte);
                hash
            }));
            // No token ends within a character, so no piece does.
            let longest = (0..hashes.len()).rev().find_map(|last| {
                let place = self
                    .vocabulary
                    .place_of(hashes[last], prefix, &rest[..=last]);
                Some((last + 1, place?))
            });
            let Some((length, place)) = longest else {
                out.truncate(before);
                return false;
            };
            let start = number(word.len() - rest.len());
            out.push(self.vocabulary.id(place), (start, start + number(length)));
            rest = &rest[length..];
            (prefix, seed) = (&self.prefix, continuing);
        }
        true
    }
}
