//! Describes the model of a folder: gives the reader, which both faces share, the files that it
//! asks for.

use super::files::ModelFiles;
use crate::embed::folder::{Description, Folder, Progress, Task};
use crate::error::Error;

/// The file that says how a tokenizer is used.
pub(super) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// Reads a model's description.
pub(super) fn describe(files: &ModelFiles<'_>, task: Task) -> Result<Description, Error> {
    let mut folder = Folder::default();
    loop {
        match folder.describe(task)? {
            Progress::Described(description) => return Ok(*description),
            Progress::Needs(names) => {
                for name in names {
                    folder.give(&name, files.bytes(&name)?.as_deref())?;
                }
            }
        }
    }
}
