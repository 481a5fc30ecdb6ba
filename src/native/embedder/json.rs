//! The fields of a JSON file, checked when they are read.
//!
//! Each error is a sentence that names file and field. What fields mean is not known here.

use serde_json::Value;

use super::files::{ModelFiles, refuse};
use crate::error::Error;

/// Parses JSON. As in most languages, 64.0 and 64 are one number.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::from_slice(bytes)?;
    make_whole(&mut value);
    Ok(value)
}

fn make_whole(value: &mut Value) {
    /// The largest number up to which 64-bit floats hold all whole numbers.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(list) => list.iter_mut().for_each(make_whole),
        Value::Object(fields) => fields.values_mut().for_each(make_whole),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if (0.0..MOST).contains(&float) && float.fract() == 0.0 {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is whole and below 2^53"
                )]
                let whole = float as u64;
                *value = whole.into();
            }
        }
        _ => {}
    }
}

/// A JSON file.
#[derive(Debug)]
pub(super) struct Json<'n> {
    pub(super) name: &'n str,
    pub(super) value: Value,
}

impl<'n> Json<'n> {
    /// A file's object; `None` where there is no such file.
    pub(super) fn find(files: &ModelFiles<'_>, name: &'n str) -> Result<Option<Json<'n>>, Error> {
        let json = Json::find_any(files, name)?;
        match json {
            Some(json) if !json.value.is_object() => Err(refuse(name, "must be an object")),
            json => Ok(json),
        }
    }

    /// A file's content, whatever it is; `None` where there is no such file.
    pub(super) fn find_any(
        files: &ModelFiles<'_>,
        name: &'n str,
    ) -> Result<Option<Json<'n>>, Error> {
        let Some(text) = files.text(name)? else {
            return Ok(None);
        };
        let value = parse(text.as_bytes());
        let value = value.map_err(|error| refuse(name, &format!("is no JSON: {error}")))?;
        Ok(Some(Json::of(name, value)))
    }

    /// A part of the file `name`.
    pub(super) fn of(name: &'n str, value: Value) -> Json<'n> {
        Json { name, value }
    }

    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        self.value.get(field).filter(|value| !value.is_null())
    }

    /// A boolean that may be missing.
    pub(super) fn flag(&self, field: &str) -> Result<Option<bool>, Error> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let flag = value.as_bool().map(Some);
        flag.ok_or_else(|| self.refuse(field, value, "must be true or false"))
    }

    /// A token's text: the field itself, or the `content` of an object that says how the token is
    /// matched.
    pub(super) fn token(&self, field: &str) -> Result<Option<&str>, Error> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let token = value.get("content").unwrap_or(value).as_str().map(Some);
        token.ok_or_else(|| self.refuse(field, value, "must be a text, or have one as content"))
    }

    pub(super) fn refuse(&self, field: &str, value: &Value, rule: &str) -> Error {
        refuse(self.name, &format!("{field} {value} {rule}"))
    }
}
