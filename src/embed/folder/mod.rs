//! Reads from the JSON files of a Hugging Face folder what a model computes, as
//! sentence-transformers reads them.
//!
//! There is no I/O here: a face gives files by name, and is told which files are needed next until
//! the model is described. A field that would change the result is either followed or refused. The
//! tokenizer and the weights are not read here.

mod architectures;
mod encoder;
mod fields;
mod files;
mod heads;
mod modules;
mod prompts;
mod rerankers;
mod turns;

pub use files::Folder;

use super::config::Config;
use crate::error::Error;
use fields::Fields;
use files::Files;

const CONFIG: &str = "config.json";
const MODULES: &str = "modules.json";
const SENTENCE: &str = "sentence_bert_config.json";
const PROMPTS: &str = "config_sentence_transformers.json";
const TOKENIZER: &str = "tokenizer_config.json";

/// A model as its folder describes it, without its tokenizer.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// What is computed.
    pub config: Config,
    /// Prompts by name: each is put in front of texts of that kind.
    pub prompts: Vec<(String, String)>,
    /// The prompt of texts without a kind.
    pub prompt: String,
    /// Whether texts are put in lower case before anything else.
    pub lowercase: bool,
}

/// What a model is to be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Vectors of texts, cut to so many floats where that is asked for.
    Embed {
        /// Floats that are left of a vector.
        dimensions: Option<u32>,
    },
    /// Scores of pairs of texts.
    Rerank,
}

/// A step of describing a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// The names of files that are needed next, whether the folder has them or not.
    Needs(Vec<String>),
    /// The model, as it is described.
    Described(Box<Description>),
}

/// Why a reader stopped.
#[derive(Debug)]
enum Stop {
    /// A file was not given yet.
    Needs(Vec<String>),
    /// Something is wrong.
    Refused(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Refused(error)
    }
}

impl Folder {
    /// Describes the model, or tells which files are needed for that.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a file that is missing or makes no sense, and
    /// [`Error::UnknownModel`] for a model of another kind; both name file and field, and what is
    /// known.
    pub fn describe(&self, task: Task) -> Result<Progress, Error> {
        match describe(self.files(), task) {
            Ok(description) => Ok(Progress::Described(Box::new(description))),
            Err(Stop::Needs(names)) => Ok(Progress::Needs(names)),
            Err(Stop::Refused(error)) => Err(error),
        }
    }
}

fn describe(files: &Files, task: Task) -> Result<Description, Stop> {
    match task {
        Task::Embed { dimensions } => embedder(files, dimensions),
        Task::Rerank => reranker(files),
    }
}

fn embedder(files: &Files, dimensions: Option<u32>) -> Result<Description, Stop> {
    files.want(&[CONFIG, MODULES, SENTENCE, PROMPTS, TOKENIZER])?;
    let texts = encoder::texts(files)?;
    let encoder = encoder::encoder(&config(files)?, texts.limit)?;
    let config = modules::behind(files, encoder, dimensions)?;
    config.validate()?;
    let (prompts, prompt) = prompts::prompts(files)?;
    Ok(Description {
        config,
        prompts,
        prompt,
        lowercase: texts.lowercase,
    })
}

fn reranker(files: &Files) -> Result<Description, Stop> {
    files.want(&[CONFIG, TOKENIZER, PROMPTS])?;
    let limit = encoder::tokenizer_limit(files)?;
    let fields = config(files)?;
    let encoder = encoder::encoder(&fields, limit)?;
    let config = rerankers::behind(files, &fields, encoder)?;
    config.validate()?;
    Ok(Description {
        config,
        prompts: Vec::new(),
        prompt: String::new(),
        lowercase: false,
    })
}

fn config(files: &Files) -> Result<Fields<'_>, Stop> {
    let config = files.object(CONFIG)?;
    Ok(config.ok_or_else(|| {
        let problem = "is missing; give the folder of a model as Hugging Face has it";
        fields::refuse(CONFIG, problem)
    })?)
}

#[cfg(test)]
mod tests;
