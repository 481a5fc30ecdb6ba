//! A value of JSON, held whole.

use super::builder::Builder;
use super::parser::{Parser, Problem};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// The items of a list.
    List(Vec<Value>),
    /// The fields of an object, in the file's order. Of fields with equal names the last one counts.
    Object(Vec<(String, Value)>),
}

/// The value of a whole file.
///
/// # Errors
///
/// The file's first [`Problem`].
pub fn parse(bytes: &[u8]) -> Result<Value, Problem> {
    let (mut parser, mut builder) = (Parser::default(), Builder::default());
    parser.feed(bytes, &mut |event| builder.hear(event))?;
    parser.finish(&mut |event| builder.hear(event))?;
    Ok(builder.take().unwrap_or(Value::Null))
}

impl Value {
    /// The field of an object; `None` where there is none, or the value is no object. A field that
    /// is `null` is found.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let Value::Object(fields) = self else {
            return None;
        };
        let found = fields.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// The text; `None` for any other value.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is whole and from 0 to 2⁵³.
    pub fn as_whole(&self) -> Option<u64> {
        const MOST: f64 = 9_007_199_254_740_992.0;
        match self {
            Value::Number(number) if (0.0..=MOST).contains(number) && number.fract() == 0.0 =>
            {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is whole, and at most 2^53"
                )]
                Some(*number as u64)
            }
            _ => None,
        }
    }
}
