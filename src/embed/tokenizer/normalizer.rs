//! What a text becomes before it is split: one of the normalizers of a `tokenizer.json`.
//!
//! Each gives the text, and the origins of its characters, that Hugging Face's tokenizers give.

use super::bert::BertNormalizer;
use super::fields::Fields;
use super::forms::{self, Form};
use super::patterns::Pattern;
use super::precompiled::Precompiled;
use super::rewrite::Rewrite;
use super::text::Text;
use crate::embed::json::Value;
use crate::error::Error;

pub(super) enum Normalizer {
    Bert(BertNormalizer),
    Precompiled(Precompiled),
    Form(Form),
    Lowercase,
    Replace { pattern: Pattern, content: String },
    Prepend(String),
    Strip { left: bool, right: bool },
    StripAccents,
    Sequence(Vec<Normalizer>),
}

impl Normalizer {
    /// The normalizer that a part of a file describes.
    pub(super) fn read(value: &Value) -> Result<Normalizer, Error> {
        let part = Fields::new("normalizer", value);
        if *value == Value::Null {
            return Ok(Normalizer::Sequence(Vec::new()));
        }
        let form = |composes, is_compatible| {
            Normalizer::Form(Form {
                is_compatible,
                composes,
            })
        };
        Ok(match part.kind() {
            Some("BertNormalizer") => Normalizer::Bert(BertNormalizer::read(part)?),
            Some("Precompiled") => Normalizer::Precompiled(Precompiled::read(part)?),
            Some("NFC") => form(true, false),
            Some("NFD") => form(false, false),
            Some("NFKC") => form(true, true),
            Some("NFKD") => form(false, true),
            Some("Lowercase") => Normalizer::Lowercase,
            Some("Replace") => Normalizer::Replace {
                pattern: Pattern::read(part)?,
                content: part.needed_text("content")?.into(),
            },
            Some("Prepend") => Normalizer::Prepend(part.needed_text("prepend")?.into()),
            Some("Strip") => Normalizer::Strip {
                left: part.flag("strip_left")?.unwrap_or(true),
                right: part.flag("strip_right")?.unwrap_or(true),
            },
            Some("StripAccents") => Normalizer::StripAccents,
            Some("Sequence") => {
                let all = part.list("normalizers")?.iter();
                Normalizer::Sequence(all.map(Normalizer::read).collect::<Result<_, _>>()?)
            }
            _ => return Err(part.unknown()),
        })
    }

    /// Whether every text stays as it is.
    pub(super) fn is_none(&self) -> bool {
        match self {
            Normalizer::Sequence(all) => all.iter().all(Normalizer::is_none),
            _ => false,
        }
    }

    /// Normalizes a text; `spare` is used on the way.
    pub(super) fn normalize(&self, text: &mut Text, spare: &mut Text) {
        match self {
            Normalizer::Bert(bert) => bert.normalize(text, spare),
            Normalizer::Precompiled(map) => map.normalize(text, spare),
            Normalizer::Form(form) => {
                if !forms::normalize(*form, text, spare) {
                    return;
                }
            }
            Normalizer::Lowercase => lower(text, spare),
            Normalizer::Replace { pattern, content } => replace(pattern, content, text, spare),
            Normalizer::Prepend(content) => {
                if text.text.is_empty() {
                    return;
                }
                spare.restart(text);
                let origin = text.origin(0);
                content.chars().for_each(|c| spare.push(c, origin));
                spare.append(text, 0..text.text.len());
            }
            Normalizer::Strip { left, right } => {
                spare.restart(text);
                let all = &text.text;
                let end = if *right {
                    all.trim_end().len()
                } else {
                    all.len()
                };
                let start = if *left {
                    end - all[..end].trim_start().len()
                } else {
                    0
                };
                spare.append(text, start..end);
            }
            Normalizer::StripAccents => {
                spare.restart(text);
                for (at, c) in text.text.char_indices() {
                    if !forms::is_mark(c) {
                        spare.push(c, text.origin(at));
                    }
                }
            }
            Normalizer::Sequence(all) => {
                all.iter().for_each(|one| one.normalize(text, spare));
                return;
            }
        }
        std::mem::swap(text, spare);
    }
}

fn lower(from: &Text, to: &mut Text) {
    let mut to = Rewrite::new(from, to);
    for c in from.text.chars() {
        for (at, lower) in c.to_lowercase().enumerate() {
            to.push(lower, isize::from(at > 0));
        }
    }
}

/// Puts `content` in the place of each match; it has the origin of the match's last character.
fn replace(pattern: &Pattern, content: &str, from: &Text, to: &mut Text) {
    to.restart(from);
    let mut done = 0;
    while let Some(found) = pattern.find(&from.text, done) {
        to.append(from, done..found.start);
        let origin = from.origin(found.end - 1);
        content.chars().for_each(|c| to.push(c, origin));
        done = found.end;
    }
    to.append(from, done..from.text.len());
}
