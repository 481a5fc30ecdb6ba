//! What a text becomes before it is split, where only BERT's normalizer is known.

use super::bert::BertNormalizer;
use super::fields::Fields;
use super::text::Text;
use crate::embed::json::Value;
use crate::error::Error;

pub(super) enum Normalizer {
    Bert(BertNormalizer),
}

impl Normalizer {
    /// The normalizer that a part of a file describes.
    pub(super) fn read(value: &Value) -> Result<Normalizer, Error> {
        let part = Fields::new("normalizer", value);
        match part.kind() {
            Some("BertNormalizer") => Ok(Normalizer::Bert(BertNormalizer::read(part)?)),
            _ => Err(part.unknown()),
        }
    }

    /// Whether every text stays as it is.
    pub(super) fn is_none(&self) -> bool {
        false
    }

    /// Normalizes a text; `spare` is used on the way.
    pub(super) fn normalize(&self, text: &mut Text, spare: &mut Text) {
        let Normalizer::Bert(bert) = self;
        bert.normalize(text, spare);
        std::mem::swap(text, spare);
    }
}
