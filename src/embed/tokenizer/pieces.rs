//! A text and the pieces that it is split into.
//!
//! Where texts are split is the matter of pre-tokenizers.

use std::ops::Range;

use super::text::{Follows, Text};
use super::unicode::characters;

/// A text and its pieces, in order. No piece is empty.
#[derive(Default)]
pub(super) struct Pieces {
    pub(super) text: Text,
    pub(super) ranges: Vec<Range<usize>>,
    /// What is used on the way.
    pub(super) spare: Text,
    pub(super) done: Vec<Range<usize>>,
}

impl Pieces {
    pub(super) fn new(follows: Follows) -> Pieces {
        Pieces {
            text: Text::new(follows),
            spare: Text::new(follows),
            ..Pieces::default()
        }
    }

    /// The text, and another one to work with.
    pub(super) fn texts(&mut self) -> (&mut Text, &mut Text) {
        (&mut self.text, &mut self.spare)
    }

    /// Splits at white space, and makes a piece of every punctuation mark.
    pub(super) fn split_as_bert(&mut self) {
        let (characters, done) = (characters(), &mut self.done);
        done.clear();
        for range in self.ranges.drain(..) {
            let mut start = range.start;
            for (at, c) in self.text.text[range.clone()].char_indices() {
                let facts = characters.facts(c);
                if !facts.is_space() && !facts.is_punctuation() {
                    continue;
                }
                let at = range.start + at;
                let behind = at + c.len_utf8();
                if start < at {
                    done.push(start..at);
                }
                if facts.is_punctuation() {
                    done.push(at..behind);
                }
                start = behind;
            }
            if start < range.end {
                done.push(start..range.end);
            }
        }
        std::mem::swap(&mut self.ranges, &mut self.done);
    }
}
