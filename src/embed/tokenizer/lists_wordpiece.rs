//! The long list of a model's file where only WordPiece is known: tokens with their ids.

use super::fields::unsupported;
use super::vocabulary::Vocabulary;
use crate::error::Error;

#[derive(Default)]
pub(super) struct Lists {
    pub(super) vocabulary: Vocabulary,
}

impl Lists {
    /// Refuses Unigram.
    pub(super) fn push_scored(&mut self, _: &str, _: f64) -> Result<(), Error> {
        Err(unsupported("vocab", "with scores"))
    }

    /// Refuses BPE.
    pub(super) fn begin_merges(&mut self) -> Result<(), Error> {
        Err(unsupported("model", "with merges"))
    }

    /// Refuses BPE.
    pub(super) fn push_merge(&mut self, _: &str, _: &str) -> Result<(), Error> {
        self.begin_merges()
    }

    /// Nothing had to wait.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
