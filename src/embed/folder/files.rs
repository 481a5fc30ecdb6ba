//! The files of a folder that were given so far.

use super::super::json::{Value, parse};
use super::Stop;
use super::fields::{Fields, refuse};
use crate::error::Error;

/// The files of a model's folder, as they are given.
#[derive(Debug, Default)]
pub struct Folder(Files);

impl Folder {
    /// Takes a file; `None` where the folder has none of that name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a file that is no JSON.
    pub fn give(&mut self, name: &str, content: Option<&[u8]>) -> Result<(), Error> {
        let value = content.map(parse).transpose();
        let value = value.map_err(|problem| {
            let at = problem.at.to_string();
            let problem = ["is no JSON: ", problem.what, " at byte ", &at].concat();
            refuse(name, &problem)
        })?;
        self.0.0.push((name.into(), value));
        Ok(())
    }

    pub(super) fn files(&self) -> &Files {
        &self.0
    }
}

/// Names and what was given for each.
#[derive(Debug, Default)]
pub(super) struct Files(Vec<(String, Option<Value>)>);

impl Files {
    /// Stops where some of these files were not given.
    pub(super) fn want(&self, names: &[&str]) -> Result<(), Stop> {
        let is_given = |name: &str| self.0.iter().any(|(known, _)| known == name);
        let missing = names.iter().filter(|name| !is_given(name));
        let missing: Vec<String> = missing.map(|name| (*name).into()).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Stop::Needs(missing)),
        }
    }

    /// A file's value; `None` where the folder has no such file.
    pub(super) fn value(&self, name: &str) -> Result<Option<&Value>, Stop> {
        self.want(&[name])?;
        let mut files = self.0.iter();
        let found = files.find(|(known, _)| known == name);
        Ok(found.and_then(|(_, value)| value.as_ref()))
    }

    /// The fields of a file's object; `None` where the folder has no such file.
    pub(super) fn object<'a>(&'a self, name: &'a str) -> Result<Option<Fields<'a>>, Stop> {
        let value = self.value(name)?;
        let fields = value.map(|value| Fields::of(name, value)).transpose();
        Ok(fields?)
    }
}
