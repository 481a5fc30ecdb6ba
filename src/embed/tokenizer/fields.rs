//! Reads the fields of a part of a `tokenizer.json`, and says what is wrong with them.

use crate::embed::json::Value;
use crate::error::Error;

/// A part of a file, such as its normalizer.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    /// The name of the part.
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
}

impl<'a> Fields<'a> {
    pub(super) fn new(name: &'a str, value: &'a Value) -> Fields<'a> {
        Fields { name, value }
    }

    /// A field that is there and not null.
    pub(super) fn get(&self, field: &str) -> Option<&'a Value> {
        self.value.get(field).filter(|value| **value != Value::Null)
    }

    /// What kind of part this is.
    pub(super) fn kind(&self) -> Option<&'a str> {
        self.get("type").and_then(Value::as_text)
    }

    pub(super) fn flag(&self, field: &str) -> Result<Option<bool>, Error> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Flag(flag)) => Ok(Some(*flag)),
            Some(value) => Err(self.wrong(field, value, "must be true or false")),
        }
    }

    pub(super) fn text(&self, field: &str) -> Result<Option<&'a str>, Error> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(value) => Err(self.wrong(field, value, "must be a text")),
        }
    }

    /// A text that must be there.
    pub(super) fn needed_text(&self, field: &str) -> Result<&'a str, Error> {
        let text = self.text(field)?;
        text.ok_or_else(|| Error::InvalidInput([self.name, " has no ", field].concat()))
    }

    pub(super) fn count(&self, field: &str) -> Result<Option<u32>, Error> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let count = count(value).map(Some);
        count.ok_or_else(|| self.wrong(field, value, "must be a whole number below 2^24"))
    }

    pub(super) fn list(&self, field: &str) -> Result<&'a [Value], Error> {
        match self.get(field) {
            None => Ok(&[]),
            Some(Value::List(items)) => Ok(items),
            Some(value) => Err(self.wrong(field, value, "must be a list")),
        }
    }

    /// Says that a field breaks a rule.
    pub(super) fn wrong(&self, field: &str, value: &Value, rule: &str) -> Error {
        let problem = [self.name, ".", field, " ", &shown(value), " ", rule].concat();
        Error::InvalidInput(problem)
    }

    /// Says that this part is of a kind that is not known.
    pub(super) fn unknown(&self) -> Error {
        let given = self.get("type").unwrap_or(self.value);
        unsupported(self.name, &shown(given))
    }

    /// Says that the value of a field is not supported.
    pub(super) fn unsupported(&self, field: &str, value: &Value) -> Error {
        unsupported(&[self.name, ".", field].concat(), &shown(value))
    }
}

/// Says that something of a file, which is right in itself, is not supported.
pub(super) fn unsupported(name: &str, given: &str) -> Error {
    Error::Unsupported([name, " ", given, " is not supported"].concat())
}

/// Says that a file contradicts itself.
pub(super) fn wrong(what: &[&str]) -> Error {
    Error::InvalidInput(what.concat())
}

/// The most ids of a vocabulary.
const MOST: u64 = 1 << 24;

/// A whole number of the size of ids.
pub(super) fn count(value: &Value) -> Option<u32> {
    let count = value.as_whole().filter(|count| *count < MOST)?;
    u32::try_from(count).ok()
}

/// A value as messages show it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Flag(flag) => flag.to_string(),
        Value::Number(number) => shown_number(*number),
        Value::Text(text) => {
            let most = text.char_indices().nth(80).map_or(text.len(), |(at, _)| at);
            ["'", &text[..most], "'"].concat()
        }
        Value::List(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

/// A number as messages show it, to three places: what prints all of them is large.
fn shown_number(number: f64) -> String {
    let sign = if number < 0.0 { "-" } else { "" };
    let thousandths = (number.abs() * 1000.0).round();
    if thousandths >= 1e18 {
        return "beyond 10^15".into();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole, not negative and below 10^18"
    )]
    let thousandths = thousandths as u64;
    let (whole, rest) = ((thousandths / 1000).to_string(), thousandths % 1000);
    if rest == 0 {
        return [sign, &whole].concat();
    }
    let rest = (1000 + rest).to_string();
    [sign, &whole, ".", rest[1..].trim_end_matches('0')].concat()
}
