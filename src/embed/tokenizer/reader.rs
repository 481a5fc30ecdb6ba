//! Reads a `tokenizer.json` in slices as they arrive, tokens straight into tables.
//!
//! What the parts of a tokenizer mean is known in their own files, and what the model's lists mean
//! in `model_reader.rs`. Padding and truncation are the settings of whoever saved the file, and are
//! not followed.

use super::Tokenizer;
use super::added_tokens::{Matching, Token};
use super::classes::KNOWS_WORDS;
use super::fields::{Fields, count, unsupported, wrong};
use super::model::Model;
use super::model_reader::ModelReader;
use super::normalizer::Normalizer;
use super::post_processor::PostProcessor;
use super::pre_tokenizer::PreTokenizer;
use super::stages::Stages;
use super::vocabulary::Vocabulary;
use crate::embed::json::{Builder, Event, Parser, Value};
use crate::error::Error;

/// Reads the tokenizer of a `tokenizer.json`, slice by slice.
///
/// Slices may end anywhere. Each takes time by its length alone, up to the moments when a table
/// doubles, so that whoever reads a large file can do other things between two slices.
///
/// ```
/// # fn main() -> Result<(), framebatch::Error> {
/// use framebatch::embed::tokenizer::Tokenizer;
///
/// let file = br###"{ "model": { "type": "WordPiece", "unk_token": "?",
///     "vocab": { "?": 0, "cat": 1, "##s": 2 } },
///     "pre_tokenizer": { "type": "Whitespace" } }"###;
/// let mut reader = Tokenizer::reader();
/// for slice in file.chunks(10) {
///     reader.feed(slice)?;
/// }
/// let mut ids = Vec::new();
/// reader.finish()?.encode("cats cat dog", 16, &mut ids);
/// assert_eq!(ids, [1, 2, 1, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Reader {
    parser: Parser,
    listener: Listener,
}

impl Tokenizer {
    /// Reads a `tokenizer.json` slice by slice.
    pub fn reader() -> Reader {
        Reader::default()
    }
}

/// Parts of the file that are held as values until all of it is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    AddedTokens,
    Normalizer,
    PreTokenizer,
    PostProcessor,
}

/// The field of the file that is being read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Field {
    #[default]
    Ignored,
    Part(Part),
    Model,
}

#[derive(Default)]
struct Listener {
    /// How many objects and lists are open.
    depth: usize,
    field: Field,
    builder: Builder,
    parts: [Option<Value>; 4],
    model: ModelReader,
    /// What was wrong, where that takes more than a sentence.
    refusal: Option<Error>,
}

impl Reader {
    /// Reads the next slice of the file.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for what is no JSON or contradicts itself, [`Error::Unsupported`]
    /// for what is not known; the reader must not be used again then.
    pub fn feed(&mut self, slice: &[u8]) -> Result<(), Error> {
        let Reader { parser, listener } = self;
        let outcome = parser.feed(slice, &mut |event| listener.hear(event));
        outcome.map_err(|problem| listener.refused(problem.what, problem.at))
    }

    /// The kind of the model, such as `BPE`, once the file said it. A file that ended without
    /// saying it is an old one, whose model is WordPiece.
    pub fn model_kind(&self) -> Option<&str> {
        self.listener.model.kind()
    }

    /// The tokenizer of the file, which ends here.
    ///
    /// # Errors
    /// As of [`Reader::feed`].
    pub fn finish(self) -> Result<Tokenizer, Error> {
        let Reader {
            parser,
            mut listener,
        } = self;
        let outcome = parser.finish(&mut |event| listener.hear(event));
        outcome.map_err(|problem| listener.refused(problem.what, problem.at))?;
        listener.build()
    }
}

impl Listener {
    fn hear(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        let depth = self.depth;
        match event {
            Event::Object | Event::List => self.depth += 1,
            Event::End => self.depth -= 1,
            _ => {}
        }
        match (depth, event) {
            (0, Event::Object) | (1, Event::End) => Ok(()),
            (0, _) => Err("it must be an object"),
            (1, Event::Name(name)) => {
                self.field = field(name);
                Ok(())
            }
            _ => self.hear_field(depth - 1, event),
        }
    }

    fn hear_field(&mut self, depth: usize, event: Event<'_>) -> Result<(), &'static str> {
        match self.field {
            Field::Ignored => Ok(()),
            Field::Part(part) => {
                self.builder.hear(event)?;
                if let Some(value) = self.builder.take() {
                    self.parts[part as usize] = Some(value);
                }
                Ok(())
            }
            Field::Model => self.model.hear(depth, event).map_err(|error| {
                self.refusal = Some(error);
                "the model is refused"
            }),
        }
    }

    fn refused(&mut self, what: &str, at: usize) -> Error {
        self.refusal.take().unwrap_or_else(|| {
            let problem = [
                "cannot be read as JSON: ",
                what,
                " at byte ",
                &at.to_string(),
            ];
            Error::InvalidInput(problem.concat())
        })
    }

    fn build(mut self) -> Result<Tokenizer, Error> {
        let mut part = |part: Part| self.parts[part as usize].take().unwrap_or(Value::Null);
        let added = part(Part::AddedTokens);
        let processor = part(Part::PostProcessor);
        let normalizer = Normalizer::read(&part(Part::Normalizer))?;
        let pre_tokenizer = PreTokenizer::read(&part(Part::PreTokenizer))?;
        let model = Model::read(self.model.finish()?, pre_tokenizer.alphabet())?;
        let mut stages = Stages::new(normalizer, pre_tokenizer, model);
        let mut tokens = tokens(&added)?;
        for token in &mut tokens {
            // Where the vocabulary has the token, its id counts.
            token.id = stages.id(&token.content).unwrap_or(token.id);
        }
        stages.add(tokens)?;
        let processor = PostProcessor::read(&processor, &|name| stages.id(name))?;
        check_holes(stages.model.vocabulary())?;
        Ok(Tokenizer { stages, processor })
    }
}

/// Refuses a vocabulary whose ids are far from each other: they would be rows of a table.
fn check_holes(vocabulary: &Vocabulary) -> Result<(), Error> {
    const MOST: usize = 1 << 16;
    let last = vocabulary.last_id().unwrap_or(0);
    if (last as usize) < vocabulary.len() + MOST {
        return Ok(());
    }
    let (last, most) = (last.to_string(), MOST.to_string());
    Err(wrong(&[
        "id ",
        &last,
        " leaves more than ",
        &most,
        " ids without a token",
    ]))
}

fn field(name: &str) -> Field {
    match name {
        "added_tokens" => Field::Part(Part::AddedTokens),
        "normalizer" => Field::Part(Part::Normalizer),
        "pre_tokenizer" => Field::Part(Part::PreTokenizer),
        "post_processor" => Field::Part(Part::PostProcessor),
        "model" => Field::Model,
        _ => Field::Ignored,
    }
}

/// The tokens of `added_tokens`.
fn tokens(added: &Value) -> Result<Vec<Token>, Error> {
    let items = match added {
        Value::Null => return Ok(Vec::new()),
        Value::List(items) => items,
        _ => return Err(Error::InvalidInput("added_tokens must be a list".into())),
    };
    let token = |value: &Value| {
        let fields = Fields::new("added_tokens", value);
        let flag = |name: &str| Ok::<bool, Error>(fields.flag(name)?.unwrap_or(false));
        let id = fields.get("id").unwrap_or(&Value::Null);
        if flag("single_word")? && !KNOWS_WORDS {
            return Err(unsupported("added_tokens", "with single_word"));
        }
        Ok(Token {
            content: fields.needed_text("content")?.into(),
            id: count(id).ok_or_else(|| fields.wrong("id", id, "must be a whole number"))?,
            matching: Matching {
                strip_left: flag("lstrip")?,
                strip_right: flag("rstrip")?,
                normalized: flag("normalized")?,
                single_word: flag("single_word")?,
            },
        })
    };
    items.iter().map(token).collect()
}
