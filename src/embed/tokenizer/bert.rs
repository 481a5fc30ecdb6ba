//! Normalizes a text as vocabularies of BERT are spelled: without control characters, in lower
//! case, without accents.
//!
//! The result is that of `BertNormalizer` of Hugging Face's tokenizers, to the last character.
//! Nothing is split here.

use super::fields::Fields;
use super::hangul;
use super::options::Options;
use super::text::{Origin, Text};
use super::unicode::{Characters, characters};
use crate::error::Error;

/// In the table of what each ASCII character becomes: the character is dropped.
const DROPPED: u8 = 128;

pub(super) struct BertNormalizer {
    characters: &'static Characters,
    ascii: [u8; 128],
    cleans: bool,
    parts_ideographs: bool,
    strips: bool,
    lowers: bool,
}

impl BertNormalizer {
    pub(super) fn new(options: &Options) -> BertNormalizer {
        let mut ascii = [0; 128];
        for (c, becomes) in (0..).zip(&mut ascii) {
            *becomes = match c {
                b'\t' | b'\n' | b'\r' if options.clean_text => b' ',
                0..32 | 127 if options.clean_text => DROPPED,
                _ if options.lowercase => c.to_ascii_lowercase(),
                _ => c,
            };
        }
        BertNormalizer {
            characters: characters(),
            ascii,
            cleans: options.clean_text,
            parts_ideographs: options.handle_chinese_chars,
            strips: options.strip_accents.unwrap_or(options.lowercase),
            lowers: options.lowercase,
        }
    }

    /// The normalizer that a part of a file describes.
    pub(super) fn read(part: Fields<'_>) -> Result<BertNormalizer, Error> {
        let flag = |name: &str| Ok::<bool, Error>(part.flag(name)?.unwrap_or(true));
        Ok(BertNormalizer::new(&Options {
            lowercase: flag("lowercase")?,
            strip_accents: part.flag("strip_accents")?,
            handle_chinese_chars: flag("handle_chinese_chars")?,
            clean_text: flag("clean_text")?,
            ..Options::default()
        }))
    }

    /// Makes `to` of `from`, normalized.
    pub(super) fn normalize(&self, from: &Text, to: &mut Text) {
        to.restart(from);
        let mut writer = Writer {
            normalizer: self,
            to,
            unordered: Vec::new(),
            run: Vec::new(),
            before: (0, 0),
        };
        for (at, c) in from.text.char_indices() {
            match self.ascii.get(c as usize) {
                Some(&DROPPED) => {}
                Some(&becomes) => {
                    writer.order();
                    writer.before = from.origin(at);
                    writer.to.push(char::from(becomes), writer.before);
                }
                None => writer.take_wide(c, from.origin(at)),
            }
        }
        writer.order();
    }
}

/// A text that is being normalized.
struct Writer<'a> {
    normalizer: &'a BertNormalizer,
    to: &'a mut Text,
    unordered: Vec<Unordered>,
    /// The origins of the characters whose parts are waiting, where they are followed.
    run: Vec<Origin>,
    /// The origin of the character before these.
    before: Origin,
}

/// A character whose canonical order is not settled yet.
#[derive(Clone, Copy)]
struct Unordered {
    class: u8,
    /// None of a mark that is taken off. Such marks are followed where origins are, since all
    /// characters of a run take the origins of the run in their new order.
    kept: Option<char>,
    /// Whether a character is not the first of those that another one was made of.
    is_behind: bool,
}

impl Writer<'_> {
    #[inline(never)]
    fn take_wide(&mut self, c: char, origin: Origin) {
        let normalizer = self.normalizer;
        let facts = normalizer.characters.facts(c);
        if normalizer.cleans && (c == char::REPLACEMENT_CHARACTER || facts.is_other()) {
            return;
        }
        let is_space = normalizer.cleans && facts.is_space();
        let is_apart = normalizer.parts_ideographs && facts.is_ideograph();
        if is_space || is_apart {
            self.order();
            self.before = origin;
            self.to.push(' ', origin);
        }
        if !is_space {
            self.strip(c, origin);
        }
        if is_apart {
            self.to.push(' ', origin);
        }
    }

    fn strip(&mut self, c: char, origin: Origin) {
        let normalizer = self.normalizer;
        if !normalizer.strips {
            return self.lower(c, origin);
        }
        let facts = normalizer.characters.facts(c);
        if facts.is_starter() {
            self.order();
            self.before = origin;
        } else if self.to.is_aligned() {
            self.run.push(origin);
        }
        if facts.is_mark() {
            if self.to.is_aligned() && !facts.is_starter() {
                self.unordered.push(Unordered {
                    class: normalizer.characters.class_of_mark(c),
                    kept: None,
                    is_behind: false,
                });
            }
            return;
        }
        if facts.decomposes() {
            for (at, part) in normalizer.characters.without_marks(c).iter().enumerate() {
                self.place(*part, at);
            }
        } else if let Some(parts) = hangul::letters(c) {
            for part in parts.into_iter().flatten() {
                self.lower(part, origin);
            }
        } else {
            self.place(c, 0);
        }
    }

    /// Takes a character that is subject to the canonical order: the one at a place of those that
    /// another one was made of.
    fn place(&mut self, c: char, at: usize) {
        let characters = self.normalizer.characters;
        let facts = characters.facts(c);
        if facts.is_starter() {
            self.order();
            self.lower(c, self.before);
        } else {
            self.unordered.push(Unordered {
                class: characters.combining_class(facts),
                kept: Some(c),
                is_behind: at > 0,
            });
        }
    }

    /// Appends the waiting characters, class after class, and within a class in their order. Each
    /// class that occurs takes a pass. Classes are few, so a character of a long run takes no
    /// longer than one of a short run. No waiting character has class 0.
    fn order(&mut self) {
        if self.unordered.is_empty() && self.run.is_empty() {
            return;
        }
        let unordered = std::mem::take(&mut self.unordered);
        let (mut done, mut next_of_run) = (0, 0);
        while let Some(class) = (unordered.iter().map(|waiting| waiting.class))
            .filter(|class| *class > done)
            .min()
        {
            for waiting in unordered.iter().filter(|waiting| waiting.class == class) {
                if !waiting.is_behind {
                    self.before = self.run.get(next_of_run).copied().unwrap_or_default();
                    next_of_run += 1;
                }
                if let Some(c) = waiting.kept {
                    self.lower(c, self.before);
                }
            }
            done = class;
        }
        self.unordered = unordered;
        self.unordered.clear();
        self.run.clear();
    }

    /// Puts a character in lower case by itself, so that a final sigma is a sigma like any other.
    fn lower(&mut self, c: char, origin: Origin) {
        if self.normalizer.lowers {
            for c in c.to_lowercase() {
                self.to.push(c, origin);
            }
        } else {
            self.to.push(c, origin);
        }
    }
}
