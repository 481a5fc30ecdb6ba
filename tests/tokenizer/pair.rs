//! The library's tokenizer and Hugging Face's, made of the same vocabulary and options.

use std::collections::BTreeSet;

use framebatch::embed::tokenizer::{Matching, Options, Tokenizer};

use crate::Peer;
use crate::transcript::{Answer, Question};

/// The two tokenizers, to be asked the same.
pub(crate) struct Pair {
    pub(crate) ours: Tokenizer,
    peer: Peer,
    /// What a token gets that neither knows.
    next_id: u32,
}

impl Pair {
    pub(crate) fn new(vocab: &str, options: &Options) -> Pair {
        let tokens: BTreeSet<&str> = vocab.lines().collect();
        Pair {
            ours: Tokenizer::new(vocab, options.clone()).unwrap(),
            peer: Peer::of_vocabulary(vocab, options),
            // The crate counts a token once that is there twice.
            next_id: tokens.len() as u32,
        }
    }

    /// Adds a token that the vocabulary may lack.
    pub(crate) fn add(&mut self, content: &str, matching: Matching) {
        let id = self.ours.id(content).unwrap_or_else(|| {
            self.next_id += 1;
            self.next_id - 1
        });
        self.peer.add(content, matching, id);
        self.ours.add(content, id, matching).unwrap();
    }

    /// Holds that both tokenizers give the same ids.
    pub(crate) fn check(&mut self, text: &str) {
        self.hold(&Question::whole(text));
    }

    /// Holds the same within a limit of tokens.
    pub(crate) fn check_within(&mut self, limit: usize, text: &str) {
        self.hold(&Question::within(limit, text));
    }

    fn hold(&mut self, question: &Question) {
        let mut ids = Vec::new();
        let encoded = self.ours.encode(question.text, question.limit, &mut ids);
        let answer = Answer {
            ids,
            is_truncated: encoded.truncated,
            ..Answer::default()
        };
        self.peer.hold(question, &answer);
    }
}

pub(crate) fn ids(tokenizer: &Tokenizer, text: &str, limit: usize) -> Vec<u32> {
    let mut ids = Vec::new();
    tokenizer.encode(text, limit, &mut ids);
    ids
}

/// A vocabulary of every letter that the fuzzed texts have, alone and continuing, and
/// of longer pieces of one to four bytes a letter.
pub(crate) fn vocab() -> String {
    let mut tokens: Vec<String> = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        .map(String::from)
        .into();
    let letters = (' '..='~')
        .chain('à'..='ž')
        .chain('α'..='ώ')
        .chain('а'..='ё')
        .chain("ⅰßıſµⁿ€™·—“”’ ˆ゛がのテ日本語한국ᄒ\u{1161}\u{11ab}नमस्ते👍😀𠀀𪜀𫝀𫠠".chars());
    for letter in letters.filter(|c| !c.is_whitespace()) {
        tokens.push(letter.to_string());
        tokens.push(format!("##{letter}"));
    }
    let pieces = "the un ##believ ##able ##ing ##ly ing token ##iz ##er na naive cafe σισυφος ##υφος \
        привет ##вет мир 日本 ##本語 テキ ##スト ᄒ\u{1161}\u{11ab} नम ##स्ते 👍👍 ##👍 [x] a b ab ##ab aba ##ba";
    tokens.extend(pieces.split_whitespace().map(String::from));
    tokens.join("\n")
}
