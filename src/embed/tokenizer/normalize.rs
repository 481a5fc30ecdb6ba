//! Normalizes a text as its vocabulary is spelled: without control characters, in lower case,
//! without accents.
//!
//! The result is that of `BertNormalizer` of Hugging Face's tokenizers, to the last character.
//! Nothing is split here.

use super::options::Options;
use super::unicode::Characters;

/// In the table of what each ASCII character becomes: the character is dropped.
const DROPPED: u8 = 128;

pub(super) struct Normalizer {
    pub(super) characters: Characters,
    ascii: [u8; 128],
    cleans: bool,
    parts_ideographs: bool,
    strips: bool,
    lowers: bool,
}

impl Normalizer {
    pub(super) fn new(options: &Options) -> Normalizer {
        let mut ascii = [0; 128];
        for (c, becomes) in (0..).zip(&mut ascii) {
            *becomes = match c {
                b'\t' | b'\n' | b'\r' if options.clean_text => b' ',
                0..32 | 127 if options.clean_text => DROPPED,
                _ if options.lowercase => c.to_ascii_lowercase(),
                _ => c,
            };
        }
        Normalizer {
            characters: Characters::new(),
            ascii,
            cleans: options.clean_text,
            parts_ideographs: options.handle_chinese_chars,
            strips: options.strip_accents.unwrap_or(options.lowercase),
            lowers: options.lowercase,
        }
    }

    /// Appends the normalized `text` to `out`.
    pub(super) fn normalize(&self, text: &str, out: &mut String) {
        // Characters whose canonical order is not settled yet, with their combining classes.
        let mut unordered = Vec::new();
        for c in text.chars() {
            match self.ascii.get(c as usize) {
                Some(&DROPPED) => {}
                Some(&becomes) => {
                    self.order(&mut unordered, out);
                    out.push(char::from(becomes));
                }
                None => self.normalize_wide(c, &mut unordered, out),
            }
        }
        self.order(&mut unordered, out);
    }

    #[inline(never)]
    fn normalize_wide(&self, c: char, unordered: &mut Vec<(u8, char)>, out: &mut String) {
        let facts = self.characters.facts(c);
        if self.cleans && (c == char::REPLACEMENT_CHARACTER || facts.is_other()) {
            return;
        }
        let is_space = self.cleans && facts.is_space();
        let is_apart = self.parts_ideographs && facts.is_ideograph();
        if is_space || is_apart {
            self.order(unordered, out);
            out.push(' ');
        }
        if !is_space {
            self.strip(c, unordered, out);
        }
        if is_apart {
            out.push(' ');
        }
    }

    fn strip(&self, c: char, unordered: &mut Vec<(u8, char)>, out: &mut String) {
        if !self.strips {
            return self.lower(c, out);
        }
        let facts = self.characters.facts(c);
        if facts.is_starter() {
            self.order(unordered, out);
        }
        if facts.is_mark() {
            return;
        }
        if facts.decomposes() {
            for part in self.characters.without_marks(c) {
                self.place(*part, unordered, out);
            }
        } else if let Some(parts) = jamo(c) {
            for part in parts.into_iter().flatten() {
                self.lower(part, out);
            }
        } else {
            self.place(c, unordered, out);
        }
    }

    /// Takes a character that is subject to the canonical order.
    fn place(&self, c: char, unordered: &mut Vec<(u8, char)>, out: &mut String) {
        let facts = self.characters.facts(c);
        if facts.is_starter() {
            self.order(unordered, out);
            self.lower(c, out);
        } else {
            unordered.push((self.characters.combining_class(facts), c));
        }
    }

    /// Appends the waiting characters, class after class, and within a class in their order. Each
    /// class that occurs takes a pass. Classes are few, so a character of a long run takes no
    /// longer than one of a short run. No waiting character has class 0.
    fn order(&self, unordered: &mut Vec<(u8, char)>, out: &mut String) {
        let mut done = 0;
        while let Some(next) = (unordered.iter().map(|(class, _)| *class))
            .filter(|class| *class > done)
            .min()
        {
            for (_, c) in unordered.iter().filter(|(class, _)| *class == next) {
                self.lower(*c, out);
            }
            done = next;
        }
        unordered.clear();
    }

    /// Puts a character in lower case by itself, so that a final sigma is a sigma like any other.
    fn lower(&self, c: char, out: &mut String) {
        if self.lowers {
            out.extend(c.to_lowercase());
        } else {
            out.push(c);
        }
    }
}

/// The letters of a Hangul syllable (The Unicode Standard, 3.12).
fn jamo(c: char) -> Option<[Option<char>; 3]> {
    let at = u32::from(c).checked_sub(0xac00).filter(|at| *at < 11172)?;
    let last = at % 28;
    Some([
        char::from_u32(0x1100 + at / 588),
        char::from_u32(0x1161 + at % 588 / 28),
        char::from_u32(0x11a7 + last).filter(|_| last > 0),
    ])
}
