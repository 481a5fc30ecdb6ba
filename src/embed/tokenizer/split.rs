//! Splits pieces of a text where something is found in them, as the behaviors of Hugging Face's
//! tokenizers say, and writes pieces anew.

use std::ops::Range;

use super::fields::Fields;
use super::patterns::Pattern;
use super::pieces::Pieces;
use super::text::Text;
use crate::error::Error;

/// What becomes of that at which a text is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behavior {
    Removed,
    Isolated,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

/// At which parts a text is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    /// At what is found.
    Match,
    /// At what lies between.
    Gap,
}

impl Delimiter {
    pub(super) fn read(part: Fields<'_>) -> Result<Delimiter, Error> {
        Ok(match part.flag("invert")? {
            Some(true) => Delimiter::Gap,
            _ => Delimiter::Match,
        })
    }
}

impl Behavior {
    pub(super) fn read(part: Fields<'_>) -> Result<Option<Behavior>, Error> {
        let Some(given) = part.get("behavior") else {
            return Ok(None);
        };
        Ok(Some(match given.as_text() {
            Some("Removed") => Behavior::Removed,
            Some("Isolated") => Behavior::Isolated,
            Some("MergedWithPrevious") => Behavior::MergedWithPrevious,
            Some("MergedWithNext") => Behavior::MergedWithNext,
            Some("Contiguous") => Behavior::Contiguous,
            _ => return Err(part.unsupported("behavior", given)),
        }))
    }
}

impl Pieces {
    /// Splits each piece where something is found in it.
    pub(super) fn split(
        &mut self,
        behavior: Behavior,
        search: impl Fn(&str, Range<usize>, &mut Vec<Found>),
    ) {
        let mut found = Vec::new();
        self.done.clear();
        for range in self.ranges.drain(..) {
            search(&self.text.text, range, &mut found);
            apply(behavior, &found, &mut self.done);
        }
        std::mem::swap(&mut self.ranges, &mut self.done);
    }

    pub(super) fn split_at(&mut self, behavior: Behavior, is: impl Fn(char) -> bool) {
        self.split(behavior, |text, piece, found| {
            search_characters(text, piece, found, &is);
        });
    }

    pub(super) fn split_by(&mut self, pattern: &Pattern, behavior: Behavior, delimiter: Delimiter) {
        self.split(behavior, |text, piece, found| {
            let within = &text[..piece.end];
            search(piece, found, |from| pattern.find(within, from));
            for (_, is_match) in found {
                *is_match ^= delimiter == Delimiter::Gap;
            }
        });
    }

    /// Writes each piece anew.
    pub(super) fn rewrite(&mut self, write: impl Fn(&Text, Range<usize>, &mut Text)) {
        self.spare.restart(&self.text);
        for range in &mut self.ranges {
            let start = self.spare.text.len();
            write(&self.text, range.clone(), &mut self.spare);
            *range = start..self.spare.text.len();
        }
        std::mem::swap(&mut self.text, &mut self.spare);
    }
}

/// A part of a text, and whether it is one at which the text is split.
type Found = (Range<usize>, bool);

/// Fills `found` with the matches in a part of a text and what lies between them. `find` gives
/// the next match from a byte on; none is empty.
fn search(
    part: Range<usize>,
    found: &mut Vec<Found>,
    mut find: impl FnMut(usize) -> Option<Range<usize>>,
) {
    found.clear();
    let mut at = part.start;
    while let Some(next) = find(at) {
        if at < next.start {
            found.push((at..next.start, false));
        }
        at = next.end;
        found.push((next, true));
    }
    if at < part.end {
        found.push((at..part.end, false));
    }
}

/// Fills `found` like [`search`], with each character of a kind as a match.
fn search_characters(
    text: &str,
    part: Range<usize>,
    found: &mut Vec<Found>,
    is: impl Fn(char) -> bool,
) {
    search(part.clone(), found, |from| {
        let rest = &text[from..part.end];
        let at = from + rest.find(&is)?;
        let c = text[at..].chars().next()?;
        Some(at..at + c.len_utf8())
    });
}

/// Appends the pieces that a text is split into.
fn apply(behavior: Behavior, found: &[Found], pieces: &mut Vec<Range<usize>>) {
    // Whether the part before is a match that what follows is merged with, or the other way round.
    let mut was_match = false;
    let before = pieces.len();
    for (part, is_match) in found {
        let joins = match behavior {
            Behavior::Removed | Behavior::Isolated => false,
            Behavior::Contiguous => *is_match == was_match,
            Behavior::MergedWithPrevious => *is_match && !was_match,
            Behavior::MergedWithNext => !*is_match && was_match,
        };
        was_match = *is_match;
        let has_last = pieces.len() > before;
        match pieces.last_mut().filter(|_| joins && has_last) {
            Some(last) => last.end = part.end,
            None if *is_match && behavior == Behavior::Removed => {}
            None => pieces.push(part.clone()),
        }
    }
}
