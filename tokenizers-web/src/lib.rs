//! Tokenizers beyond BERT's WordPiece in the browser: a WebAssembly file of its own, which pages
//! load where a model's `tokenizer.json` needs it.
//!
//! Nothing of the crate `framebatch` is linked but its tokenizers. The file knows neither models
//! nor devices.

#![cfg(target_arch = "wasm32")]

use wasm_bindgen::prelude::*;

use framebatch::Error;
use framebatch::embed::tokenizer::{Reader, Tokenizer};

/// The bit of the `flags` of [`WebReader::finish`].
const LOWERS: u32 = 1;

/// Reads a `tokenizer.json` slice by slice.
#[wasm_bindgen(js_name = TokenizerReader)]
#[derive(Default)]
pub struct WebReader(Reader);

#[wasm_bindgen(js_class = TokenizerReader)]
impl WebReader {
    /// A reader at the beginning of a file.
    #[wasm_bindgen(constructor)]
    pub fn new() -> WebReader {
        WebReader::default()
    }

    /// Takes the next slice. After an error the reader must only be freed.
    pub fn feed(&mut self, slice: &[u8]) -> Result<(), Error> {
        self.0.feed(slice)
    }

    /// The tokenizer of the file, which ends here, for a model whose table has so many rows; with
    /// the flag 1 it puts texts in lower case before anything else.
    pub fn finish(self, flags: u32, rows: u32) -> Result<WebTokenizer, Error> {
        let mut tokenizer = self.0.finish()?;
        tokenizer.limit_added(rows);
        let lowers = flags & LOWERS != 0;
        Ok(WebTokenizer { tokenizer, lowers })
    }
}

/// Splits texts as a file says.
#[wasm_bindgen(js_name = FileTokenizer)]
pub struct WebTokenizer {
    tokenizer: Tokenizer,
    lowers: bool,
}

#[wasm_bindgen(js_class = FileTokenizer)]
impl WebTokenizer {
    /// The ids of a text, at most `limit` of them.
    pub fn encode(&self, text: &str, limit: u32) -> Vec<u32> {
        let mut ids = Vec::new();
        let limit = limit as usize;
        match self.lowers {
            true => self.tokenizer.encode(&text.to_lowercase(), limit, &mut ids),
            false => self.tokenizer.encode(text, limit, &mut ids),
        };
        ids
    }

    /// The ids of a pair of texts, at most `limit` of them, and behind these as many types.
    #[wasm_bindgen(js_name = encodePair)]
    pub fn encode_pair(&self, a: &str, b: &str, limit: u32) -> Vec<u32> {
        let (mut ids, mut types) = (Vec::new(), Vec::new());
        let limit = limit as usize;
        let lowered = |text: &str| match self.lowers {
            true => text.to_lowercase(),
            false => text.into(),
        };
        let (a, b) = (lowered(a), lowered(b));
        self.tokenizer
            .encode_pair((&a, &b), limit, &mut ids, &mut types);
        ids.extend(types);
        ids
    }

    /// The ids of a text, and behind them where each token is from and to, in units of UTF-16.
    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        let tokens = match self.lowers {
            true => self.tokenizer.tokenize_lowercase(text),
            false => self.tokenizer.tokenize(text),
        };
        tokens.in_utf16(text)
    }

    /// How many rows a table needs that the ids are rows of.
    #[wasm_bindgen(getter)]
    pub fn rows(&self) -> u32 {
        self.tokenizer.last_id().map_or(0, |last| last + 1)
    }
}
