//! The long lists of a model's file, which are read straight into tables: tokens, with their ids or
//! scores, and merges.

use super::fields::wrong;
use super::joints::Joints;
use super::merges::Merges;
use super::text::number;
use super::vocabulary::Vocabulary;
use crate::error::Error;

#[derive(Default)]
pub(super) struct Lists {
    pub(super) vocabulary: Vocabulary,
    /// The score of each token, where the vocabulary has scores.
    pub(super) scores: Vec<f64>,
    /// None where the file has no list of merges.
    pub(super) merges: Option<Merges>,
    pub(super) joints: Joints,
    /// Merges that came before their tokens: two texts each, behind each of them a byte that is
    /// none of UTF-8.
    waiting: Vec<u8>,
    whole: Vec<u8>,
}

const END: u8 = 255;

impl Lists {
    /// Adds the token of the next id.
    pub(super) fn push_scored(&mut self, token: &str, score: f64) -> Result<(), Error> {
        self.vocabulary.push_beginnings(token);
        let id = number(self.vocabulary.len());
        self.vocabulary.push(token.as_bytes(), id);
        self.scores.push(score);
        Ok(())
    }

    /// Notes that there is a list of merges.
    pub(super) fn begin_merges(&mut self) -> Result<(), Error> {
        self.merges = Some(Merges::default());
        Ok(())
    }

    /// Adds the merge of the next rank.
    pub(super) fn push_merge(&mut self, left: &str, right: &str) -> Result<(), Error> {
        if self.vocabulary.len() > 0 {
            return self.merge(left.as_bytes(), right.as_bytes());
        }
        for text in [left, right] {
            self.waiting.extend(text.as_bytes());
            self.waiting.push(END);
        }
        Ok(())
    }

    fn merge(&mut self, left: &[u8], right: &[u8]) -> Result<(), Error> {
        self.joints.add(left, right);
        self.whole.clear();
        self.whole.extend(left);
        self.whole.extend(right);
        let place = |token: &[u8]| {
            self.vocabulary.place(token).ok_or_else(|| {
                let token = String::from_utf8_lossy(token);
                wrong(&["merges names '", &token, "', which vocab has not"])
            })
        };
        let (left, right, whole) = (place(left)?, place(right)?, place(&self.whole)?);
        self.merges.get_or_insert_default().push(left, right, whole);
        Ok(())
    }

    /// Takes what had to wait.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut texts = waiting.split(|byte| *byte == END);
        while let (Some(left), Some(right)) = (texts.next(), texts.next()) {
            self.merge(left, right)?;
        }
        Ok(())
    }
}
