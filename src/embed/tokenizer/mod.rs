//! Splits texts into token ids: WordPiece, Unigram and BPE, as a model's `tokenizer.json` says.
//!
//! A text passes stages, each an enum in a file of its own: added tokens, normalizer,
//! pre-tokenizer, model, post-processor. Ids and offsets are exactly those of Hugging Face's
//! `tokenizers` 0.23, which the tests compare. What a file asks for that is not known is refused by
//! name. No files are read here, and ids become no texts.

mod added_tokens;
mod bert;
mod encoding;
mod fields;
mod hangul;
mod model_reader;
mod options;
mod output;
mod pieces;
mod post_processor;
mod reader;
mod stages;
mod table;
mod text;
mod tokens;
mod unicode;
mod vocabulary;
mod wordpiece;

// What only tokenizers beyond BERT's need.
#[cfg(feature = "tokenizers")]
mod beginnings;
#[cfg(feature = "tokenizers")]
mod bpe;
#[cfg(feature = "tokenizers")]
mod byte_letters;
#[cfg(feature = "tokenizers")]
mod byte_tokens;
#[cfg(feature = "tokenizers")]
mod clusters;
#[cfg(feature = "tokenizers")]
mod forms;
#[cfg(feature = "tokenizers")]
mod joints;
#[cfg(feature = "tokenizers")]
mod kinds;
#[cfg(feature = "tokenizers")]
mod merges;
#[cfg(feature = "tokenizers")]
mod patterns;
#[cfg(feature = "tokenizers")]
mod precompiled;
#[cfg(feature = "tokenizers")]
mod rewrite;
#[cfg(feature = "tokenizers")]
mod split;
#[cfg(feature = "tokenizers")]
mod unigram;

// Twins: with all kinds of their stage, and with BERT's alone.
#[cfg(feature = "tokenizers")]
mod classes;
#[cfg(not(feature = "tokenizers"))]
#[path = "classes_none.rs"]
mod classes;
#[cfg(feature = "tokenizers")]
mod lists;
#[cfg(not(feature = "tokenizers"))]
#[path = "lists_wordpiece.rs"]
mod lists;
#[cfg(feature = "tokenizers")]
mod model;
#[cfg(not(feature = "tokenizers"))]
#[path = "model_wordpiece.rs"]
mod model;
#[cfg(feature = "tokenizers")]
mod normalizer;
#[cfg(not(feature = "tokenizers"))]
#[path = "normalizer_bert.rs"]
mod normalizer;
#[cfg(feature = "tokenizers")]
mod pre_tokenizer;
#[cfg(not(feature = "tokenizers"))]
#[path = "pre_tokenizer_bert.rs"]
mod pre_tokenizer;

pub use added_tokens::Matching;
pub use options::Options;
pub use reader::Reader;
pub use tokens::Tokens;

use crate::error::Error;
use added_tokens::Token;
use bert::BertNormalizer;
use encoding::Encoding;
use model::Model;
use normalizer::Normalizer;
use output::Output;
use post_processor::{Part, PostProcessor};
use pre_tokenizer::PreTokenizer;
use stages::Stages;
use text::{Follows, Text, number};
use vocabulary::Vocabulary;
use wordpiece::WordPiece;

/// The outcome of [`Tokenizer::encode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// How many ids were appended, special tokens included.
    pub tokens: usize,
    /// Whether the text has more tokens than the limit allowed.
    pub truncated: bool,
}

/// Splits texts into the tokens of one vocabulary.
pub struct Tokenizer {
    stages: Stages,
    processor: PostProcessor,
}

impl Tokenizer {
    /// A tokenizer of the vocabulary `vocab`: the text of a `vocab.txt`, one token a
    /// line, whose ids are the lines' numbers from 0 on. White space at a line's end
    /// is no part of its token, and of equal tokens the last one counts.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the vocabulary lacks the token of unknown words or
    /// one of those around a text.
    pub fn new(vocab: &str, options: Options) -> Result<Tokenizer, Error> {
        let lines = vocab.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let mut vocabulary = Vocabulary::with_capacity(lines);
        for (id, token) in (0..).zip(vocab.lines()) {
            vocabulary.push(token.trim_end().as_bytes(), id);
        }
        let id = |name: &str| Ok::<u32, Error>(vocabulary.id(vocabulary.needed(name)?));
        let (unk, cls, sep) = (id(&options.unk)?, id(&options.cls)?, id(&options.sep)?);
        let normalizer = Normalizer::Bert(BertNormalizer::new(&options));
        let model = Model::WordPiece(WordPiece {
            vocabulary,
            prefix: options.continuing_prefix.into(),
            max_chars_per_word: options.max_chars_per_word,
            unk,
        });
        let mut tokenizer = Tokenizer {
            stages: Stages::new(normalizer, PreTokenizer::Bert, model),
            processor: PostProcessor::bert(cls, sep),
        };
        for name in options.verbatim {
            if let Some(id) = tokenizer.id(&name) {
                tokenizer.add(&name, id, Matching::default())?;
            }
        }
        Ok(tokenizer)
    }

    /// Takes `content` for the token `id` wherever a text has it: an entry of
    /// `added_tokens` in a `tokenizer.json`. It need not be in the vocabulary.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if it is empty, also when normalized, or there is one.
    pub fn add(&mut self, content: &str, id: u32, matching: Matching) -> Result<(), Error> {
        let content = content.into();
        self.stages.add(vec![Token {
            content,
            id,
            matching,
        }])
    }

    /// Takes no added token with an id from `rows` on for one: a model whose table has so many rows
    /// knows none of them. EmbeddingGemma's file has one for images, which its texts have not.
    pub fn limit_added(&mut self, rows: u32) {
        self.stages.limit_added(rows);
    }

    /// The id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.stages.id(token)
    }

    /// How many ids the vocabulary has; an added token's may be higher.
    pub fn vocabulary_len(&self) -> usize {
        let last = self.stages.model.vocabulary().last_id();
        last.map_or(0, |last| last as usize + 1)
    }

    /// The highest id that texts may get, added tokens and those around texts included.
    pub fn last_id(&self) -> Option<u32> {
        self.stages.last_id().max(self.processor.last_id())
    }

    /// Appends the ids of `text` to `out`, the special tokens around them: `limit` ids
    /// at most, those of the text from its beginning. The special tokens are always
    /// there, so a lower limit is one of as many.
    pub fn encode(&self, text: &str, limit: usize, out: &mut Vec<u32>) -> Encoded {
        let before = out.len();
        let (mut all, mut truncated) = (std::mem::take(out), false);
        for part in &self.processor.single {
            match part {
                Part::Special(ids, _) => all.extend(ids),
                _ => {
                    let room = limit.saturating_sub(PostProcessor::added(&self.processor.single));
                    let mut tokens = Output::continuing(all);
                    truncated = self.encode_text(text, room, &mut tokens);
                    all = tokens.ids;
                }
            }
        }
        *out = all;
        Encoded {
            tokens: out.len() - before,
            truncated,
        }
    }

    /// Appends the ids of two texts that belong together, such as a question and a passage, and of
    /// each id the type of its text, special tokens included: `limit` ids at most. The longer text
    /// is cut first, until both are as long.
    pub fn encode_pair(
        &self,
        texts: (&str, &str),
        limit: usize,
        ids: &mut Vec<u32>,
        types: &mut Vec<u32>,
    ) -> Encoded {
        let before = ids.len();
        let room = limit.saturating_sub(PostProcessor::added(&self.processor.pair));
        // As many tokens of each text as Hugging Face's tokenizers make before they cut.
        let of = |text: &str| {
            let mut tokens = Output::default();
            let is_cut = self
                .encoding(&mut tokens)
                .run(text, limit.saturating_sub(1));
            (tokens.ids, is_cut)
        };
        let ((mut first, first_is_cut), (mut second, second_is_cut)) = (of(texts.0), of(texts.1));
        let all = first.len() + second.len();
        let (most_first, most_second) = shares(first.len(), second.len(), room);
        first.truncate(most_first);
        second.truncate(most_second);
        for part in &self.processor.pair {
            let (tokens, kind) = match part {
                Part::First(kind) => (&first, kind),
                Part::Second(kind) => (&second, kind),
                Part::Special(special, kind) => (special, kind),
            };
            ids.extend(tokens);
            types.extend(tokens.iter().map(|_| kind));
        }
        Encoded {
            tokens: ids.len() - before,
            truncated: first_is_cut || second_is_cut || first.len() + second.len() < all,
        }
    }

    /// The tokens of a text, the special tokens around them, and what each stands for in the text,
    /// such as to highlight it.
    ///
    /// ```
    /// # fn main() -> Result<(), framebatch::Error> {
    /// use framebatch::embed::tokenizer::{Options, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::new("[UNK]\n[CLS]\n[SEP]\nmove\n##s", Options::default())?;
    /// let tokens = tokenizer.tokenize("Móves");
    /// assert_eq!(tokens.ids, [1, 3, 4, 2]);
    /// assert_eq!(tokens.offsets, [(0, 0), (0, 5), (5, 6), (0, 0)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tokenize(&self, text: &str) -> Tokens {
        let mut tokens = Tokens::default();
        for part in &self.processor.single {
            match part {
                Part::Special(ids, _) => {
                    tokens.ids.extend(ids);
                    tokens.offsets.extend(ids.iter().map(|_| (0, 0)));
                }
                _ => {
                    let mut found = Output::aligned();
                    self.encoding(&mut found).run(text, usize::MAX);
                    tokens.ids.append(&mut found.ids);
                    tokens.offsets.append(&mut found.offsets);
                }
            }
        }
        tokens
    }

    /// The tokens of the text in lower case, and what each stands for in the text as it is.
    pub fn tokenize_lowercase(&self, text: &str) -> Tokens {
        let lower = text.to_lowercase();
        let mut tokens = self.tokenize(&lower);
        // Where the character of each byte comes from. Each becomes lower case by itself, a sigma
        // apart, whose two forms are of one length.
        let mut origins = Text::new(Follows::Origins);
        for (at, c) in text.char_indices() {
            let (from, to) = (number(at), number(at + c.len_utf8()));
            c.to_lowercase().for_each(|c| origins.push(c, (from, to)));
        }
        for offsets in &mut tokens.offsets {
            *offsets = match offsets.0 < offsets.1 {
                true => origins.offsets(&(0..lower.len()), *offsets),
                false => (
                    origins.origin(offsets.0 as usize).0,
                    origins.origin(offsets.0 as usize).0,
                ),
            };
        }
        tokens
    }

    fn encoding<'a>(&'a self, out: &'a mut Output) -> Encoding<'a> {
        Encoding::new(&self.stages, &self.processor.trims, out)
    }

    /// Appends the tokens of a text, `room` at most. Returns whether there are more.
    fn encode_text(&self, text: &str, room: usize, out: &mut Output) -> bool {
        let before = out.len();
        self.encoding(out).run(text, room);
        let truncated = out.len() - before > room;
        if truncated {
            out.truncate(before + room);
        }
        truncated
    }
}

/// How many tokens of two texts are kept, `room` at most: the longer one is cut first.
fn shares(first: usize, second: usize, room: usize) -> (usize, usize) {
    if first + second <= room {
        return (first, second);
    }
    let short = first.min(second);
    let mut most = (short, short.max(room.saturating_sub(short)));
    if most.0 + most.1 > room || short > room {
        most = (room / 2, room / 2 + room % 2);
    }
    match first > second {
        true => (most.1, most.0),
        false => most,
    }
}
