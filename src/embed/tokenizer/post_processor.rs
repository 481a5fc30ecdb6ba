//! What is put around a text and between two: one of the post-processors of a `tokenizer.json`.

use super::fields::{Fields, count, unsupported};
use super::text::{Origin, number};
use crate::embed::json::Value;
use crate::error::Error;

/// The letter that byte-level vocabularies write a space with.
const SPACE: char = 'Ġ';

/// A part of that which a model gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The tokens of the first text, with their type.
    First(u32),
    Second(u32),
    /// Tokens of the model's own, and their type.
    Special(Vec<u32>, u32),
}

/// What is put around texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PostProcessor {
    /// Of one text, and of two.
    pub(super) single: Vec<Part>,
    pub(super) pair: Vec<Part>,
    /// Takes spaces off the offsets, each time by a rule.
    pub(super) trims: Vec<Trim>,
}

/// Takes spaces off the offsets of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trim {
    /// Whether a text's first space was added.
    adds_space: bool,
}

impl Default for PostProcessor {
    fn default() -> PostProcessor {
        PostProcessor {
            single: vec![Part::First(0)],
            pair: vec![Part::First(0), Part::Second(1)],
            trims: Vec::new(),
        }
    }
}

impl PostProcessor {
    /// A token in front of every text and one behind it, as BERT has them.
    pub(super) fn bert(cls: u32, sep: u32) -> PostProcessor {
        let special = |id, kind| Part::Special(vec![id], kind);
        let single = vec![special(cls, 0), Part::First(0), special(sep, 0)];
        let mut pair = single.clone();
        pair.extend([Part::Second(1), special(sep, 1)]);
        PostProcessor {
            single,
            pair,
            trims: Vec::new(),
        }
    }

    /// As RoBERTa has them: everything is of one type, and two tokens lie between two texts.
    fn roberta(cls: u32, sep: u32) -> PostProcessor {
        let special = |id| Part::Special(vec![id], 0);
        let single = vec![special(cls), Part::First(0), special(sep)];
        let mut pair = single.clone();
        pair.extend([special(sep), Part::Second(0), special(sep)]);
        PostProcessor {
            single,
            pair,
            trims: Vec::new(),
        }
    }

    /// The post-processor that a part of a file describes. `id` finds tokens by name.
    pub(super) fn read(
        value: &Value,
        id: &dyn Fn(&str) -> Option<u32>,
    ) -> Result<PostProcessor, Error> {
        let part = Fields::new("post_processor", value);
        if *value == Value::Null {
            return Ok(PostProcessor::default());
        }
        let ends = || Ok::<_, Error>((end(part, "cls", id)?, end(part, "sep", id)?));
        let trim = || {
            let adds_space = part.flag("add_prefix_space")?.unwrap_or(true);
            let trims = part.flag("trim_offsets")?.unwrap_or(true);
            Ok::<_, Error>(trims.then_some(Trim { adds_space }))
        };
        Ok(match part.kind() {
            Some("BertProcessing") => {
                let (cls, sep) = ends()?;
                PostProcessor::bert(cls, sep)
            }
            Some("RobertaProcessing") => {
                let (cls, sep) = ends()?;
                PostProcessor {
                    trims: trim()?.into_iter().collect(),
                    ..PostProcessor::roberta(cls, sep)
                }
            }
            Some("ByteLevel") => PostProcessor {
                trims: trim()?.into_iter().collect(),
                ..PostProcessor::default()
            },
            Some("TemplateProcessing") => PostProcessor {
                single: template(part, "single", id)?,
                pair: template(part, "pair", id)?,
                trims: Vec::new(),
            },
            Some("Sequence") => sequence(part, id)?,
            _ => return Err(part.unknown()),
        })
    }

    /// The highest id of the tokens that are put around texts.
    pub(super) fn last_id(&self) -> Option<u32> {
        let parts = self.single.iter().chain(&self.pair);
        let ids = parts.filter_map(|part| match part {
            Part::Special(ids, _) => ids.iter().max(),
            Part::First(_) | Part::Second(_) => None,
        });
        ids.max().copied()
    }

    /// How many tokens are put around one text, or two.
    pub(super) fn added(parts: &[Part]) -> usize {
        let lengths = parts.iter().map(|part| match part {
            Part::Special(ids, _) => ids.len(),
            Part::First(_) | Part::Second(_) => 0,
        });
        lengths.sum()
    }
}

/// All steps that only trim, and one that puts tokens around.
fn sequence(part: Fields<'_>, id: &dyn Fn(&str) -> Option<u32>) -> Result<PostProcessor, Error> {
    let mut whole = PostProcessor::default();
    let mut has_tokens = false;
    for value in part.list("processors")? {
        let step = PostProcessor::read(value, id)?;
        whole.trims.extend(&step.trims);
        if step.single == PostProcessor::default().single
            && step.pair == PostProcessor::default().pair
        {
            continue;
        }
        if has_tokens {
            return Err(unsupported("post_processor", "with several templates"));
        }
        has_tokens = true;
        (whole.single, whole.pair) = (step.single, step.pair);
    }
    Ok(whole)
}

/// One of the tokens around a text: its name and its id.
fn end(part: Fields<'_>, field: &str, id: &dyn Fn(&str) -> Option<u32>) -> Result<u32, Error> {
    let given = part.get(field).unwrap_or(&Value::Null);
    let (name, given_id) = match given {
        Value::List(both) => (
            both.first().and_then(Value::as_text),
            both.get(1).and_then(count),
        ),
        _ => (None, None),
    };
    let found = given_id.or_else(|| id(name?));
    found.ok_or_else(|| part.wrong(field, given, "must be a token and its id"))
}

fn template(
    part: Fields<'_>,
    field: &str,
    id: &dyn Fn(&str) -> Option<u32>,
) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::new();
    for piece in part.list(field)? {
        let refused = || part.unsupported(field, piece);
        let kind = |value: &Value| value.get("type_id").map_or(Some(0), count);
        if let Some(sequence) = piece.get("Sequence") {
            let kind = kind(sequence).ok_or_else(refused)?;
            parts.push(match sequence.get("id").and_then(Value::as_text) {
                Some("A") => Part::First(kind),
                Some("B") => Part::Second(kind),
                _ => return Err(refused()),
            });
        } else if let Some(special) = piece.get("SpecialToken") {
            let name = special
                .get("id")
                .and_then(Value::as_text)
                .ok_or_else(refused)?;
            let kind = kind(special).ok_or_else(refused)?;
            parts.push(Part::Special(special_ids(part, name, id)?, kind));
        } else {
            return Err(refused());
        }
    }
    let times = |part: fn(&Part) -> bool| parts.iter().filter(|one| part(one)).count();
    let is_first = times(|part| matches!(part, Part::First(_)));
    let is_second = times(|part| matches!(part, Part::Second(_)));
    match (field, is_first, is_second) {
        ("single", 1, 0) | ("pair", 1, 1) => Ok(parts),
        // Nobody asks for pairs where there is no template.
        ("pair", 0, 0) if parts.is_empty() => Ok(PostProcessor::default().pair),
        _ => Err(unsupported(
            &[part.name, ".", field].concat(),
            "without each text once",
        )),
    }
}

/// The ids of one of a template's tokens.
fn special_ids(
    part: Fields<'_>,
    name: &str,
    id: &dyn Fn(&str) -> Option<u32>,
) -> Result<Vec<u32>, Error> {
    let listed = part.get("special_tokens").and_then(|all| all.get(name));
    let ids = match listed.and_then(|token| token.get("ids")) {
        Some(Value::List(ids)) => ids.iter().map(count).collect(),
        _ => id(name).map(|id| vec![id]),
    };
    ids.ok_or_else(|| {
        let problem = [
            "the vocabulary has no token '",
            name,
            "', which post_processor names",
        ];
        Error::InvalidInput(problem.concat())
    })
}

impl Trim {
    /// The offsets of the token at a place of its text without the spaces at its ends.
    pub(super) fn apply(self, token: &str, at: usize, offsets: Origin) -> Origin {
        let is_space = |c: &char| *c == SPACE || c.is_whitespace();
        let mut leading = number(token.chars().take_while(is_space).count());
        let trailing = number(token.chars().rev().take_while(is_space).count());
        let (mut start, mut end) = offsets;
        if (at == 0 || start == 0) && self.adds_space && leading == 1 {
            leading = 0;
        }
        start = (start + leading).min(end);
        if trailing > 0 && end >= trailing {
            end = (end - trailing).max(start);
        }
        (start, end)
    }
}
