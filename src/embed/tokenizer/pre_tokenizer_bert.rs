//! How a normalized text is split into pieces, where only BERT's pre-tokenizer is known.

use super::fields::Fields;
use super::pieces::Pieces;
use crate::embed::json::Value;
use crate::error::Error;

/// What the letters of a vocabulary stand for.
pub(super) enum Alphabet {
    Characters,
}

pub(super) enum PreTokenizer {
    Bert,
}

impl PreTokenizer {
    /// The pre-tokenizer that a part of a file describes.
    pub(super) fn read(value: &Value) -> Result<PreTokenizer, Error> {
        let part = Fields::new("pre_tokenizer", value);
        match part.kind() {
            Some("BertPreTokenizer") => Ok(PreTokenizer::Bert),
            _ => Err(part.unknown()),
        }
    }

    /// What the letters of the vocabulary stand for.
    pub(super) fn alphabet(&self) -> Alphabet {
        Alphabet::Characters
    }

    /// Whether pieces depend on where they are from.
    pub(super) fn needs_origins(&self) -> bool {
        false
    }

    /// Splits pieces further.
    pub(super) fn split(&self, pieces: &mut Pieces) {
        pieces.split_as_bert();
    }
}
