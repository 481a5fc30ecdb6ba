//! Reads the fields of a plain object. Errors say which name or value is wrong.
//!
//! Options are read by hand: serde's deserializer prints floats, which costs the package 13 KB gzip,
//! a seventh of its size.

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use crate::error::Error;

/// A plain object from JavaScript.
pub(super) struct Fields<'a> {
    object: &'a JsValue,
}

impl<'a> Fields<'a> {
    /// Checks that `object` is an object and has only known names.
    pub(super) fn new(object: &'a JsValue, known: &[&str]) -> Result<Self, Error> {
        if !object.is_object() {
            return Err(invalid(&["options must be an object"]));
        }
        for key in Object::keys(object.unchecked_ref::<Object>()).iter() {
            let name = key.as_string().unwrap_or_default();
            if !known.contains(&name.as_str()) {
                return Err(invalid(&[
                    "unknown option '",
                    &name,
                    "'; known are ",
                    &known.join(", "),
                ]));
            }
        }
        Ok(Fields { object })
    }

    /// The value of the name that was chosen.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &str,
        known: &[(&'static str, T)],
    ) -> Result<Option<T>, Error> {
        let place = self.place(name, known.len(), &|k| known[k].0)?;
        Ok(place.map(|place| known[place].1))
    }

    /// The index of the name that was chosen. One function serves values of all types, so that
    /// the package has it once.
    fn place(
        &self,
        name: &str,
        count: usize,
        known: &dyn Fn(usize) -> &'static str,
    ) -> Result<Option<usize>, Error> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let given = value.as_string();
        let found = (0..count).find(|k| Some(known(*k)) == given.as_deref());
        if found.is_some() {
            return Ok(found);
        }
        let names: Vec<&str> = (0..count).map(known).collect();
        Err(invalid(&[
            name,
            " is ",
            &printed(&value),
            "; give one of ",
            &names.join(", "),
        ]))
    }

    /// A number of at least 0.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, Error> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.as_f64() {
            Some(number) if number >= 0.0 && number.is_finite() => Ok(Some(number)),
            _ => Err(invalid(&[
                name,
                " is ",
                &printed(&value),
                "; give a finite number of at least 0",
            ])),
        }
    }

    /// A whole number of at least 1.
    pub(super) fn whole(&self, name: &str) -> Result<Option<u64>, Error> {
        self.get(name).map(|value| whole(name, &value)).transpose()
    }

    /// An array of strings.
    pub(super) fn names(&self, name: &str) -> Result<Vec<String>, Error> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        let wrong = || invalid(&[name, " must be an array of names"]);
        if !Array::is_array(&value) {
            return Err(wrong());
        }
        Array::from(&value)
            .iter()
            .map(|name| name.as_string().ok_or_else(wrong))
            .collect()
    }

    /// An object of whole numbers.
    pub(super) fn limits(&self, name: &str) -> Result<Vec<(String, u64)>, Error> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        if !value.is_object() {
            return Err(invalid(&[
                name,
                " must be an object of names and whole numbers",
            ]));
        }
        let entry = |pair: JsValue| {
            let pair: Array = pair.unchecked_into();
            let name = pair.get(0).as_string().unwrap_or_default();
            whole(&name, &pair.get(1)).map(|value| (name, value))
        };
        Object::entries(value.unchecked_ref::<Object>())
            .iter()
            .map(entry)
            .collect()
    }

    fn get(&self, name: &str) -> Option<JsValue> {
        Reflect::get(self.object, &name.into())
            .ok()
            .filter(|value| !value.is_undefined())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number"
)]
fn whole(name: &str, value: &JsValue) -> Result<u64, Error> {
    match value.as_f64() {
        Some(number) if number >= 1.0 && number.trunc() == number => Ok(number as u64),
        _ => Err(invalid(&[
            name,
            " is ",
            &printed(value),
            "; give a whole number of at least 1",
        ])),
    }
}

/// A value as JavaScript prints it.
fn printed(value: &JsValue) -> String {
    match value.as_string() {
        Some(text) => ["'", &text, "'"].concat(),
        None => value
            .unchecked_ref::<Object>()
            .to_string()
            .as_string()
            .unwrap_or_default(),
    }
}

fn invalid(parts: &[&str]) -> Error {
    Error::InvalidInput(["open: ", &parts.concat()].concat())
}
