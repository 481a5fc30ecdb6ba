//! Reads the `model` of a `tokenizer.json`: its lists straight into tables, its fields as values.
//! What they make is the matter of `model.rs`.

use super::fields::{count, shown, unsupported, wrong};
use super::lists::Lists;
use crate::embed::json::{Builder, Event, Value};
use crate::error::Error;

/// What was read of a model.
#[derive(Default)]
pub(super) struct ModelReader {
    field: Field,
    builder: Builder,
    /// The name of the field that is being read, and the fields that were.
    name: String,
    fields: Vec<(String, Value)>,
    lists: Lists,
    shape: Shape,
    /// The token whose id or score is next.
    token: String,
    /// The first text of a merge whose second one is next.
    left: Option<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Field {
    #[default]
    Value,
    Vocabulary,
    Merges,
}

/// How the vocabulary is written.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// There was none so far.
    #[default]
    None,
    /// An object of ids by token.
    Ids,
    /// A list of tokens with their scores, in the order of their ids.
    Scores,
}

impl ModelReader {
    /// The kind of the model, once it was read.
    pub(super) fn kind(&self) -> Option<&str> {
        let kind = self.fields.iter().rev().find(|(name, _)| name == "type");
        kind.and_then(|(_, value)| value.as_text())
    }

    /// Hears the next event; `depth` objects and lists are open in the model, itself among them.
    pub(super) fn hear(&mut self, depth: usize, event: Event<'_>) -> Result<(), Error> {
        match (depth, event) {
            (0, Event::Object) => Ok(()),
            (0, _) => Err(unsupported("model", "that is no object")),
            (1, Event::End) => Ok(()),
            (1, Event::Name(name)) => {
                self.field = match name {
                    "vocab" => Field::Vocabulary,
                    "merges" => Field::Merges,
                    _ => Field::Value,
                };
                self.name = name.into();
                Ok(())
            }
            _ => match self.field {
                Field::Value => self.hear_value(event),
                Field::Vocabulary => self.hear_token(depth, event),
                Field::Merges => self.hear_merge(depth, event),
            },
        }
    }

    fn hear_value(&mut self, event: Event<'_>) -> Result<(), Error> {
        self.builder.hear(event).map_err(|what| wrong(&[what]))?;
        if let Some(value) = self.builder.take() {
            self.fields.push((std::mem::take(&mut self.name), value));
        }
        Ok(())
    }

    fn hear_token(&mut self, depth: usize, event: Event<'_>) -> Result<(), Error> {
        match (depth, event, self.shape) {
            (1, Event::Object, Shape::None) => self.shape = Shape::Ids,
            (1, Event::List, Shape::None) => self.shape = Shape::Scores,
            (2, Event::End, _) | (2, Event::List, Shape::Scores) => {}
            (3, Event::End, Shape::Scores) if self.token.is_empty() => {}
            (2, Event::Name(token), Shape::Ids) => {
                self.token.clear();
                self.token.push_str(token);
            }
            (2, Event::Number(id), Shape::Ids) => {
                let value = Value::Number(id);
                let Some(id) = count(&value) else {
                    let shown = shown(&value);
                    return Err(wrong(&["id ", &shown, " of '", &self.token, "' is no id"]));
                };
                self.lists.vocabulary.push(self.token.as_bytes(), id);
            }
            (3, Event::Text(token), Shape::Scores) if self.token.is_empty() => {
                // A zero byte tells an empty token from none.
                self.token.push_str(token);
                self.token.push('\0');
            }
            (3, Event::Number(score), Shape::Scores) if !self.token.is_empty() => {
                self.token.pop();
                self.lists.push_scored(&self.token, score)?;
                self.token.clear();
            }
            _ => {
                return Err(wrong(&[
                    "vocab must be ids by token, or tokens with scores",
                ]));
            }
        }
        Ok(())
    }

    fn hear_merge(&mut self, depth: usize, event: Event<'_>) -> Result<(), Error> {
        match (depth, event) {
            (1, Event::List) => self.lists.begin_merges()?,
            (2, Event::End | Event::List) => {}
            (3, Event::End) if self.left.is_none() => {}
            (2, Event::Text(both)) if both.starts_with("#version") => {}
            (2, Event::Text(both)) => {
                let pair = both
                    .split_once(' ')
                    .filter(|(_, right)| !right.contains(' '));
                let Some((left, right)) = pair else {
                    return Err(wrong(&["merges has '", both, "', which is no pair"]));
                };
                self.lists.push_merge(left, right)?;
            }
            (3, Event::Text(text)) => match self.left.take() {
                None => self.left = Some(text.into()),
                Some(left) => self.lists.push_merge(&left, text)?,
            },
            _ => return Err(wrong(&["merges must be a list of pairs"])),
        }
        Ok(())
    }

    /// What was read, once all of it was. Lists that the file lacks are empty.
    pub(super) fn finish(mut self) -> Result<ModelParts, Error> {
        if self.shape == Shape::None && self.fields.is_empty() {
            return Err(unsupported("model", "that is missing"));
        }
        self.lists.finish()?;
        Ok(ModelParts {
            fields: Value::Object(self.fields),
            shape: self.shape,
            lists: self.lists,
        })
    }
}

/// What a file says of a model.
pub(super) struct ModelParts {
    /// All that is not in lists.
    pub(super) fields: Value,
    pub(super) shape: Shape,
    pub(super) lists: Lists,
}
