//! The tokenizer that a folder describes, by `tokenizer.json` or `vocab.txt`.
//!
//! What `tokenizer.json` says is read by `embed::tokenizer`; here files are found and slices of them
//! read.

use super::files::{ModelFiles, refuse};
use super::folder::TOKENIZER_CONFIG;
use super::json::Json;
use crate::embed::tokenizer::{Options, Tokenizer};
use crate::error::Error;

const JSON: &str = "tokenizer.json";
const LINES: &str = "vocab.txt";

/// How much of a file is read at once.
const SLICE: usize = 1 << 16;

/// A tokenizer, or the error of texts where the model takes ids alone.
pub(super) type Split = Result<Tokenizer, Error>;

/// Reads the tokenizer of a model with so many tokens.
pub(super) fn tokenizer(files: &ModelFiles<'_>, vocab: u32) -> Result<Split, Error> {
    let (file, mut split) = match of_json(files)? {
        Some(split) => (JSON, split),
        None => match files.text(LINES)? {
            Some(lines) => (LINES, Ok(of_lines(files, &lines)?)),
            None => {
                let problem = "is missing, and vocab.txt too";
                return Ok(Err(refuse(JSON, problem)));
            }
        },
    };
    if let Ok(tokenizer) = &mut split {
        tokenizer.limit_added(vocab);
    }
    if let Ok(tokenizer) = &split
        && let Some(last) = tokenizer.last_id().filter(|last| *last >= vocab)
    {
        let problem = format!("has the id {last}, but vocab_size of config.json is {vocab}");
        return Err(refuse(file, &problem));
    }
    Ok(split)
}

/// What an embedder says where there is no tokenizer.
pub(super) fn leaving_ids(error: Error) -> Error {
    let advise = |problem: String| [&problem, "; give ids to `embed_ids`"].concat();
    match error {
        Error::InvalidInput(problem) => Error::InvalidInput(advise(problem)),
        Error::Unsupported(problem) => Error::Unsupported(advise(problem)),
        other => other,
    }
}

fn of_lines(files: &ModelFiles<'_>, lines: &str) -> Result<Tokenizer, Error> {
    let mut options = Options::default();
    if let Some(json) = Json::find(files, TOKENIZER_CONFIG)? {
        options.lowercase = json.flag("do_lower_case")?.unwrap_or(true);
        options.strip_accents = json.flag("strip_accents")?;
        options.handle_chinese_chars = json.flag("tokenize_chinese_chars")?.unwrap_or(true);
        let [mut pad, mut mask] = ["[PAD]", "[MASK]"].map(String::from);
        for (name, token) in [
            ("pad_token", &mut pad),
            ("unk_token", &mut options.unk),
            ("cls_token", &mut options.cls),
            ("sep_token", &mut options.sep),
            ("mask_token", &mut mask),
        ] {
            if let Some(given) = json.token(name)? {
                *token = given.into();
            }
        }
        let Options { unk, cls, sep, .. } = options.clone();
        options.verbatim = vec![pad, unk, cls, sep, mask];
        options.verbatim.sort_unstable();
        options.verbatim.dedup();
    }
    Tokenizer::new(lines, options).map_err(|error| refuse(LINES, &error.to_string()))
}

/// Reads `tokenizer.json`; `None` where there is no such file.
fn of_json(files: &ModelFiles<'_>) -> Result<Option<Split>, Error> {
    let Some(mut file) = files.open(JSON)? else {
        return Ok(None);
    };
    let (mut reader, mut buffer, mut at) = (Tokenizer::reader(), vec![0; SLICE], 0);
    while at < file.len() {
        let length = usize::try_from(file.len() - at).map_or(SLICE, |rest| rest.min(SLICE));
        file.read(at, &mut buffer[..length])?;
        if let Err(error) = reader.feed(&buffer[..length]) {
            return refused(error);
        }
        at += length as u64;
    }
    match reader.finish() {
        Ok(tokenizer) => Ok(Some(Ok(tokenizer))),
        Err(error) => refused(error),
    }
}

/// What is not known leaves the model's ids; what contradicts itself leaves nothing.
fn refused(error: Error) -> Result<Option<Split>, Error> {
    match error {
        Error::Unsupported(what) => {
            let problem = [JSON, ": ", &what].concat();
            Ok(Some(Err(Error::Unsupported(problem))))
        }
        error => Err(refuse(JSON, &error.to_string())),
    }
}
