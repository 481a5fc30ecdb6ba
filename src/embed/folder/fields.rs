//! The fields of a JSON object, checked as they are read.
//!
//! Each error is a sentence that names file and field. What fields mean is not known here.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::super::json::Value;
use crate::error::Error;

/// An object in a file.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    /// The file, and where in it.
    pub(super) place: Cow<'a, str>,
    value: &'a Value,
}

impl<'a> Fields<'a> {
    /// The fields of an object.
    pub(super) fn of(
        place: impl Into<Cow<'a, str>>,
        value: &'a Value,
    ) -> Result<Fields<'a>, Error> {
        let place = place.into();
        match value {
            Value::Object(_) => Ok(Fields { place, value }),
            _ => {
                let problem = ["must be an object, got ", &shown(value)].concat();
                Err(refuse(&place, &problem))
            }
        }
    }

    /// The names of all fields.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        let fields = match self.value {
            Value::Object(fields) => &fields[..],
            _ => &[],
        };
        fields.iter().map(|(name, _)| &name[..])
    }

    /// A field; `None` where it is missing or null.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        let value = self.value.get(name);
        value.filter(|value| **value != Value::Null)
    }

    /// A whole number in a range; `usual` where it is missing, or an error if there is none usual.
    pub(super) fn whole(
        &self,
        name: &str,
        range: RangeInclusive<u32>,
        usual: Option<u32>,
    ) -> Result<u32, Error> {
        let value = self.get(name);
        let given = value.map(|value| value.as_whole().and_then(|whole| u32::try_from(whole).ok()));
        match given.unwrap_or(usual) {
            Some(whole) if range.contains(&whole) => Ok(whole),
            _ => {
                let (least, most) = (range.start().to_string(), range.end().to_string());
                let rule = ["must be a whole number from ", &least, " to ", &most];
                Err(self.wrong(name, value, &rule.concat()))
            }
        }
    }

    /// A number from 0; `usual` where it is missing.
    pub(super) fn number(&self, name: &str, usual: f64) -> Result<f64, Error> {
        match self.get(name) {
            None => Ok(usual),
            Some(Value::Number(number)) if *number >= 0.0 => Ok(*number),
            value => Err(self.wrong(name, value, "must be a number from 0")),
        }
    }

    /// Refuses a number that is there and is another one.
    pub(super) fn only_number(&self, name: &str, accepted: f64) -> Result<(), Error> {
        match self.get(name) {
            None => Ok(()),
            Some(Value::Number(number)) if *number == accepted => Ok(()),
            Some(_) => Err(self.unknown(name, "no other number than 1 is known")),
        }
    }

    /// A count of tokens, which has to hold those at a text's ends, and is below 2³² wherever there
    /// is a limit at all.
    pub(super) fn limit(&self, name: &str) -> Result<Option<u32>, Error> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value {
            // Tokenizers without a limit say 10^30.
            Value::Number(limit) if *limit >= 2.0 && limit.fract() == 0.0 =>
            {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it saturates"
                )]
                Ok(Some(*limit as u32))
            }
            _ => Err(self.wrong(name, Some(value), "must be a whole number from 2")),
        }
    }

    /// A text that may be missing.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            value => Err(self.wrong(name, value, "must be a string")),
        }
    }

    /// A boolean that may be missing.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Flag(flag)) => Ok(Some(*flag)),
            value => Err(self.wrong(name, value, "must be true or false")),
        }
    }

    /// Refuses a boolean that is there and is another one.
    pub(super) fn only(&self, name: &str, accepted: &Value) -> Result<(), Error> {
        let flag = self.flag(name)?;
        if flag.is_none_or(|flag| Value::Flag(flag) == *accepted) {
            return Ok(());
        }
        Err(self.unknown(name, &["only ", &shown(accepted), " is known"].concat()))
    }

    /// The object of a field; `None` where it is missing.
    pub(super) fn object(&self, name: &str) -> Result<Option<Fields<'a>>, Error> {
        let value = self.get(name);
        value
            .map(|value| Fields::of(self.field(name), value))
            .transpose()
    }

    /// The error of a field that makes no sense.
    pub(super) fn wrong(&self, name: &str, value: Option<&Value>, rule: &str) -> Error {
        let given = value.map_or("nothing".into(), shown);
        refuse(&self.field(name), &[rule, ", got ", &given].concat())
    }

    /// The error of a field that says that the model is of another kind.
    pub(super) fn unknown(&self, name: &str, known: &str) -> Error {
        let given = self.get(name).map_or("nothing".into(), shown);
        unknown(
            &self.field(name),
            &["is ", &given, ", and ", known].concat(),
        )
    }

    fn field(&self, name: &str) -> String {
        [&self.place, ": ", name].concat()
    }
}

/// The error of a file, or of a part of one, with this problem.
pub(super) fn refuse(place: &str, problem: &str) -> Error {
    Error::InvalidInput([place, " ", problem].concat())
}

/// The error of a file, or of a part of one, that says that the model is of another kind.
pub(super) fn unknown(place: &str, problem: &str) -> Error {
    Error::UnknownModel([place, " ", problem].concat())
}

/// A value as messages show it, cut where it is long.
pub(super) fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    let mut text = String::new();
    show(value, &mut text);
    if let Some((end, _)) = text.char_indices().nth(MOST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn show(value: &Value, to: &mut String) {
    match value {
        Value::Null => to.push_str("null"),
        Value::Flag(flag) => to.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => {
            let size = Value::Number(number.abs()).as_whole();
            to.push_str(if *number < 0.0 { "-" } else { "" });
            // Printing fractions takes more code than it is worth.
            to.push_str(&size.map_or("a number that is not whole".into(), |whole| {
                whole.to_string()
            }));
        }
        Value::Text(text) => {
            to.push('"');
            to.push_str(text);
            to.push('"');
        }
        Value::List(items) => {
            to.push('[');
            for (at, item) in items.iter().enumerate() {
                to.push_str(if at > 0 { "," } else { "" });
                show(item, to);
            }
            to.push(']');
        }
        Value::Object(fields) => {
            to.push('{');
            for (at, (name, field)) in fields.iter().enumerate() {
                to.push_str(if at > 0 { "," } else { "" });
                to.push('"');
                to.push_str(name);
                to.push_str("\":");
                show(field, to);
            }
            to.push('}');
        }
    }
}
