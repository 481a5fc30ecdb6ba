//! How a normalized text is split into the pieces that a model splits further: one of the
//! pre-tokenizers of a `tokenizer.json`.

use super::classes::classes;
use super::fields::{Fields, unsupported};
use super::patterns::{GPT_2, Pattern};
use super::pieces::Pieces;
use super::split::{Behavior, Delimiter};
use super::text::Text;
use super::unicode::characters;
use crate::embed::json::Value;
use crate::error::Error;

pub(super) enum PreTokenizer {
    Bert,
    Whitespace,
    WhitespaceSplit,
    Metaspace(Metaspace),
    /// The bytes of the pieces are the letters of the model's vocabulary.
    ByteLevel {
        adds_space: bool,
        has_words: bool,
    },
    Split {
        pattern: Pattern,
        behavior: Behavior,
        delimiter: Delimiter,
    },
    Punctuation(Behavior),
    Digits(Behavior),
    Sequence(Vec<PreTokenizer>),
}

/// What the letters of a vocabulary stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    Characters,
    Bytes,
}

/// Spaces become a sign that words begin with.
pub(super) struct Metaspace {
    sign: char,
    prepends: Prepends,
    splits: bool,
}

/// The pieces of a text in front of which the sign of a space is put.
#[derive(PartialEq)]
enum Prepends {
    Always,
    /// The piece that begins where the given text does.
    First,
    Never,
}

impl PreTokenizer {
    /// The pre-tokenizer that a part of a file describes.
    pub(super) fn read(value: &Value) -> Result<PreTokenizer, Error> {
        let part = Fields::new("pre_tokenizer", value);
        if *value == Value::Null {
            return Ok(PreTokenizer::Sequence(Vec::new()));
        }
        let behavior = || Behavior::read(part);
        Ok(match part.kind() {
            Some("BertPreTokenizer") => PreTokenizer::Bert,
            Some("Whitespace") => PreTokenizer::Whitespace,
            Some("WhitespaceSplit") => PreTokenizer::WhitespaceSplit,
            Some("Metaspace") => PreTokenizer::Metaspace(Metaspace::read(part)?),
            Some("ByteLevel") => PreTokenizer::ByteLevel {
                adds_space: part.flag("add_prefix_space")?.unwrap_or(true),
                has_words: part.flag("use_regex")?.unwrap_or(true),
            },
            Some("Split") => PreTokenizer::Split {
                pattern: Pattern::read(part)?,
                behavior: behavior()?.ok_or_else(|| part.unknown())?,
                delimiter: Delimiter::read(part)?,
            },
            Some("Punctuation") => {
                PreTokenizer::Punctuation(behavior()?.unwrap_or(Behavior::Isolated))
            }
            Some("Digits") => PreTokenizer::Digits(match part.flag("individual_digits")? {
                Some(true) => Behavior::Isolated,
                _ => Behavior::Contiguous,
            }),
            Some("Sequence") => {
                let all = part.list("pretokenizers")?.iter().map(PreTokenizer::read);
                let all = all.collect::<Result<Vec<_>, _>>()?;
                let before_last = all.split_last().map_or(&[][..], |(_, before)| before);
                if before_last
                    .iter()
                    .any(|one| one.alphabet() == Alphabet::Bytes)
                {
                    return Err(unsupported("pre_tokenizer", "'ByteLevel' before others"));
                }
                PreTokenizer::Sequence(all)
            }
            _ => return Err(part.unknown()),
        })
    }

    /// What the letters of the vocabulary stand for.
    pub(super) fn alphabet(&self) -> Alphabet {
        let is_byte_level = match self {
            PreTokenizer::ByteLevel { .. } => true,
            PreTokenizer::Sequence(all) => all.iter().any(|one| one.alphabet() == Alphabet::Bytes),
            _ => false,
        };
        match is_byte_level {
            true => Alphabet::Bytes,
            false => Alphabet::Characters,
        }
    }

    /// Whether pieces depend on where they are from.
    pub(super) fn needs_origins(&self) -> bool {
        match self {
            PreTokenizer::Metaspace(metaspace) => metaspace.prepends == Prepends::First,
            PreTokenizer::Sequence(all) => all.iter().any(PreTokenizer::needs_origins),
            _ => false,
        }
    }

    /// Splits pieces further.
    pub(super) fn split(&self, pieces: &mut Pieces) {
        let is_punctuation = |c: char| characters().facts(c).is_punctuation();
        match self {
            PreTokenizer::Bert => pieces.split_as_bert(),
            PreTokenizer::Whitespace => words(pieces),
            PreTokenizer::WhitespaceSplit => {
                pieces.split_at(Behavior::Removed, char::is_whitespace);
            }
            PreTokenizer::Metaspace(metaspace) => metaspace.split(pieces),
            PreTokenizer::ByteLevel {
                adds_space,
                has_words,
            } => {
                if *adds_space {
                    pieces.rewrite(|from, piece, to| {
                        if !from.text[piece.clone()].starts_with(' ') {
                            to.push(' ', from.origin(piece.start));
                        }
                        to.append(from, piece);
                    });
                }
                if *has_words {
                    pieces.split_by(&Pattern::Words(GPT_2), Behavior::Isolated, Delimiter::Match);
                }
            }
            PreTokenizer::Split {
                pattern,
                behavior,
                delimiter,
            } => pieces.split_by(pattern, *behavior, *delimiter),
            PreTokenizer::Punctuation(behavior) => pieces.split_at(*behavior, is_punctuation),
            PreTokenizer::Digits(behavior) => pieces.split_at(*behavior, char::is_numeric),
            PreTokenizer::Sequence(all) => all.iter().for_each(|one| one.split(pieces)),
        }
    }
}

/// Keeps words, and runs of what is neither of a word nor white space.
fn words(pieces: &mut Pieces) {
    pieces.split(Behavior::Removed, |text, piece, found| {
        found.clear();
        // What the last character was: of a word, white space or another.
        let mut last = None;
        for (at, c) in text[piece.clone()].char_indices() {
            let class = classes().of(c);
            let kind = (class.is_word(), class.is_space());
            let (start, end) = (piece.start + at, piece.start + at + c.len_utf8());
            match found.last_mut() {
                Some((range, _)) if last == Some(kind) => range.end = end,
                _ => found.push((start..end, class.is_space())),
            }
            last = Some(kind);
        }
    });
}

impl Metaspace {
    fn read(part: Fields<'_>) -> Result<Metaspace, Error> {
        let given = part.text("replacement")?.unwrap_or("▁");
        let mut chars = given.chars();
        let (Some(sign), None) = (chars.next(), chars.next()) else {
            let value = Value::Text(given.into());
            return Err(part.wrong("replacement", &value, "must be one character"));
        };
        let prepends = match (part.get("prepend_scheme"), part.flag("add_prefix_space")?) {
            (None, Some(false)) => Prepends::Never,
            (None, _) => Prepends::Always,
            (Some(value), _) => match value.as_text() {
                Some("always") => Prepends::Always,
                Some("first") => Prepends::First,
                Some("never") => Prepends::Never,
                _ => return Err(part.unsupported("prepend_scheme", value)),
            },
        };
        Ok(Metaspace {
            sign,
            prepends,
            splits: part.flag("split")?.unwrap_or(true),
        })
    }

    fn split(&self, pieces: &mut Pieces) {
        pieces.rewrite(|from, piece, to| {
            let text = &from.text[piece.clone()];
            let prepends = match self.prepends {
                Prepends::Always => true,
                Prepends::First => is_beginning(from, piece.start),
                Prepends::Never => false,
            };
            if prepends && !text.starts_with([' ', self.sign]) {
                to.push(self.sign, from.origin(piece.start));
            }
            let mut at = piece.start;
            while at < piece.end {
                let rest = &from.text[at..piece.end];
                let space = at + rest.find(' ').unwrap_or(rest.len());
                to.append(from, at..space);
                if space < piece.end {
                    to.push(self.sign, from.origin(space));
                }
                at = space + 1;
            }
        });
        if self.splits {
            pieces.split_at(Behavior::MergedWithNext, |c| c == self.sign);
        }
    }
}

/// Whether the character at a byte is from the very beginning of the text as given.
fn is_beginning(text: &Text, byte: usize) -> bool {
    match text.is_aligned() {
        true => text.origin(byte).0 == 0,
        false => text.base == 0 && byte == 0,
    }
}
