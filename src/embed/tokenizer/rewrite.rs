//! Writes a text anew, character after character, and follows where characters are from.

use std::str::Chars;

use super::text::Text;

/// A text that becomes another one character after character.
///
/// New characters have the origins that Hugging Face's tokenizers give them: by how many characters
/// of the old text went before, whatever these were.
pub(super) struct Rewrite<'a> {
    from: &'a Text,
    to: &'a mut Text,
    /// What is not replaced yet.
    rest: Chars<'a>,
}

impl<'a> Rewrite<'a> {
    pub(super) fn new(from: &'a Text, to: &'a mut Text) -> Rewrite<'a> {
        to.restart(from);
        Rewrite {
            from,
            to,
            rest: from.text.chars(),
        }
    }

    /// Appends a character: `change` is 0 where it takes the place of the next one, 1 where it
    /// comes in addition to those before, and -n where it takes the place of 1 + n.
    pub(super) fn push(&mut self, c: char, change: isize) {
        if !self.to.is_aligned() {
            return self.to.text.push(c);
        }
        let at = self.at();
        let origin = match change > 0 {
            true => at
                .checked_sub(1)
                .map_or((0, 0), |before| self.from.origin(before)),
            false => self.from.origin(at),
        };
        self.to.push(c, origin);
        if change <= 0 {
            self.skip(1 + change.unsigned_abs());
        }
    }

    /// Leaves out the next characters of the old text.
    pub(super) fn skip(&mut self, characters: usize) {
        if self.to.is_aligned() && characters > 0 {
            self.rest.nth(characters - 1);
        }
    }

    fn at(&self) -> usize {
        self.from.text.len() - self.rest.as_str().len()
    }
}
