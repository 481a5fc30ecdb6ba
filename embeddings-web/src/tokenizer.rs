//! The tokenizer as JavaScript sees it.
//!
//! A lone surrogate is a replacement character when it comes here: TypeScript
//! refuses such texts before.

use wasm_bindgen::prelude::*;

use framebatch::Error;
use framebatch::embed::tokenizer::{Matching, Options, Tokenizer};

/// Splits texts into the tokens of one vocabulary.
#[wasm_bindgen(js_name = Tokenizer)]
pub struct WebTokenizer {
    pub(super) tokenizer: Tokenizer,
    truncated: bool,
}

/// The bits of the constructor's `flags`.
const LOWERCASE: u32 = 1;
const STRIPS_ACCENTS: u32 = 2;
const KEEPS_ACCENTS: u32 = 4;
const HANDLES_CHINESE: u32 = 8;
const CLEANS: u32 = 16;

/// The bits of `add`'s `flags`.
const STRIP_LEFT: u32 = 1;
const STRIP_RIGHT: u32 = 2;
const NORMALIZED: u32 = 4;

#[wasm_bindgen(js_class = Tokenizer)]
impl WebTokenizer {
    /// A tokenizer of a `vocab.txt`. `names` are lines: the prefix of continuing
    /// pieces, the tokens of unknown words, in front of a text and behind it, then
    /// those that are taken as they stand.
    #[wasm_bindgen(constructor)]
    pub fn new(
        vocab: &str,
        names: &str,
        flags: u32,
        max_chars_per_word: u32,
    ) -> Result<WebTokenizer, Error> {
        let mut names = names.split('\n').map(String::from);
        let mut name = || names.next().unwrap_or_default();
        let has = |flag| flags & flag != 0;
        let options = Options {
            lowercase: has(LOWERCASE),
            strip_accents: (has(STRIPS_ACCENTS) || has(KEEPS_ACCENTS)).then(|| has(STRIPS_ACCENTS)),
            handle_chinese_chars: has(HANDLES_CHINESE),
            clean_text: has(CLEANS),
            continuing_prefix: name(),
            max_chars_per_word: max_chars_per_word as usize,
            unk: name(),
            cls: name(),
            sep: name(),
            verbatim: names.collect(),
        };
        let tokenizer = Tokenizer::new(vocab, options)?;
        let truncated = false;
        Ok(WebTokenizer {
            tokenizer,
            truncated,
        })
    }

    /// Takes `content` for the token `id` wherever a text has it.
    pub fn add(&mut self, content: &str, id: u32, flags: u32) -> Result<(), Error> {
        let matching = Matching {
            strip_left: flags & STRIP_LEFT != 0,
            strip_right: flags & STRIP_RIGHT != 0,
            normalized: flags & NORMALIZED != 0,
            single_word: false,
        };
        self.tokenizer.add(content, id, matching)
    }

    /// The ids of a text, at most `limit` of them.
    pub fn encode(&mut self, text: &str, limit: u32) -> Vec<u32> {
        let mut ids = Vec::new();
        let encoded = self.tokenizer.encode(text, limit as usize, &mut ids);
        self.truncated = encoded.truncated;
        ids
    }

    /// The ids of a text, and behind them where each token is from and to, in units of UTF-16.
    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        self.tokenizer.tokenize(text).in_utf16(text)
    }

    /// Whether the last text had more tokens than the limit let through.
    #[wasm_bindgen(getter)]
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// How many ids the vocabulary has.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> usize {
        self.tokenizer.vocabulary_len()
    }

    /// The id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.tokenizer.id(token)
    }
}
