//! Pairs of texts as JavaScript sees their tokens.

use wasm_bindgen::prelude::*;

use super::tokenizer::WebTokenizer;

#[wasm_bindgen(js_class = Tokenizer)]
impl WebTokenizer {
    /// The ids of a pair of texts, at most `limit` of them, and behind these as many types.
    #[wasm_bindgen(js_name = encodePair)]
    pub fn encode_pair(&self, a: &str, b: &str, limit: u32) -> Vec<u32> {
        let (mut ids, mut types) = (Vec::new(), Vec::new());
        let limit = limit as usize;
        self.tokenizer
            .encode_pair((a, b), limit, &mut ids, &mut types);
        ids.extend(types);
        ids
    }
}
