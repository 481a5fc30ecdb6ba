//! Splits texts into token ids by WordPiece, as BERT's models were trained.
//!
//! Exactly what Hugging Face's `tokenizers` 0.23 makes of `BertNormalizer`,
//! `BertPreTokenizer`, `WordPiece` and the template `[CLS] A [SEP]`; the tests
//! compare them. It reads no files and knows no JSON, and it keeps no offsets.

mod normalize;
mod options;
mod unicode;
mod verbatim;
mod vocabulary;

pub use options::Options;
pub use verbatim::Matching;

use crate::error::Error;
use normalize::Normalizer;
use verbatim::Verbatim;
use vocabulary::Vocabulary;

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
    normalizer: Normalizer,
    vocabulary: Vocabulary,
    /// Tokens that are found in a text as it is given.
    given: Verbatim,
    normalized: Verbatim,
    max_chars_per_word: usize,
    unk: u32,
    cls: u32,
    sep: u32,
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
        let vocabulary = Vocabulary::new(vocab, &options.continuing_prefix);
        let id = |name: &str| {
            vocabulary.id(name).ok_or_else(|| {
                let message = ["the vocabulary has no token '", name, "'; name its own"].concat();
                Error::InvalidInput(message)
            })
        };
        let (unk, cls, sep) = (id(&options.unk)?, id(&options.cls)?, id(&options.sep)?);
        let mut tokenizer = Tokenizer {
            normalizer: Normalizer::new(&options),
            vocabulary,
            given: Verbatim::default(),
            normalized: Verbatim::default(),
            max_chars_per_word: options.max_chars_per_word,
            unk,
            cls,
            sep,
        };
        for name in options.verbatim {
            if let Some(id) = tokenizer.vocabulary.id(&name) {
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
        if !matching.normalized {
            return self.given.add(content.into(), id, matching);
        }
        let mut pattern = String::new();
        self.normalizer.normalize(content, &mut pattern);
        self.normalized.add(pattern, id, matching)
    }

    /// The id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        let added = self.given.id(token).or_else(|| self.normalized.id(token));
        added.or_else(|| self.vocabulary.id(token))
    }

    /// How many ids the vocabulary has; an added token's may be higher.
    pub fn vocabulary_len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Appends the ids of `text` to `out`, the special tokens around them: `limit` ids
    /// at most, those of the text from its beginning. The two special tokens are
    /// always there, so a limit below 2 is one of 2.
    pub fn encode(&self, text: &str, limit: usize, out: &mut Vec<u32>) -> Encoded {
        let before = out.len();
        out.push(self.cls);
        let mut encoding = Encoding {
            tokenizer: self,
            end: before.saturating_add(limit.max(2) - 1),
            out,
            truncated: false,
            hashes: Vec::new(),
        };
        encoding.text(text);
        let truncated = encoding.truncated;
        out.push(self.sep);
        Encoded {
            tokens: out.len() - before,
            truncated,
        }
    }
}

/// A text that is being encoded. Once it is truncated, no id is appended.
struct Encoding<'a> {
    tokenizer: &'a Tokenizer,
    out: &'a mut Vec<u32>,
    /// The most ids that `out` may have.
    end: usize,
    truncated: bool,
    hashes: Vec<u32>,
}

impl Encoding<'_> {
    fn text(&mut self, text: &str) {
        let mut normalized = String::new();
        for part in self.tokenizer.given.split(text) {
            if let Some(id) = part.id {
                self.push(id);
                continue;
            }
            let mut rest = &text[part.range];
            while !rest.is_empty() && !self.truncated {
                let (slice, behind) = rest.split_at(self.slice(rest));
                normalized.clear();
                self.tokenizer.normalizer.normalize(slice, &mut normalized);
                self.normalized(&normalized);
                rest = behind;
            }
        }
    }

    /// The length of the part of a text that is normalized next: most of a long text that will be
    /// truncated need not be normalized. The part ends at a space, which no word contains, unless
    /// an added token might contain it.
    fn slice(&self, text: &str) -> usize {
        const SLICE: usize = 2048;
        if !self.tokenizer.normalized.is_empty() {
            return text.len();
        }
        let mut behind = text.bytes().enumerate().skip(SLICE);
        let space = behind.find(|(_, byte)| matches!(byte, b' ' | b'\n'));
        space.map_or(text.len(), |(at, _)| at)
    }

    fn normalized(&mut self, text: &str) {
        if self.tokenizer.normalized.is_empty() {
            return self.words(text);
        }
        for part in self.tokenizer.normalized.split(text) {
            match part.id {
                Some(id) => self.push(id),
                None => self.words(&text[part.range]),
            }
        }
    }

    /// Encodes the words between spaces. A punctuation mark is a word.
    fn words(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let (mut start, mut chars) = (0, 0);
        for (at, c) in text.char_indices() {
            let facts = self.tokenizer.normalizer.characters.facts(c);
            if !facts.is_space() && !facts.is_punctuation() {
                chars += 1;
                continue;
            }
            self.word(&bytes[start..at], chars);
            start = at + c.len_utf8();
            chars = 0;
            if facts.is_punctuation() {
                self.word(&bytes[at..start], 1);
            }
            if self.truncated {
                return;
            }
        }
        self.word(&bytes[start..], chars);
    }

    fn word(&mut self, word: &[u8], chars: usize) {
        let tokenizer = self.tokenizer;
        if word.is_empty() || self.truncated {
            return;
        }
        let is_known = chars <= tokenizer.max_chars_per_word
            && tokenizer.vocabulary.split(word, &mut self.hashes, self.out);
        if !is_known {
            self.out.push(tokenizer.unk);
        }
        self.truncate();
    }

    fn push(&mut self, id: u32) {
        if !self.truncated {
            self.out.push(id);
            self.truncate();
        }
    }

    fn truncate(&mut self) {
        if self.out.len() > self.end {
            self.out.truncate(self.end);
            self.truncated = true;
        }
    }
}
