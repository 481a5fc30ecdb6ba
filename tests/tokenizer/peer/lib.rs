//! Hugging Face's tokenizer behind the face that the tests of `tests/tokenizer` ask.
//!
//! Compiling Hugging Face's crate was an eighth of what compiling the native tests took, so this
//! crate stands apart from theirs, which hold the library to the answers that are kept in
//! `tests/data/tokenizer-answers.txt`. The tests here are the same ones, and ask the crate anew:
//!
//! ```sh
//! cargo test -p framebatch-tokenizer-peer
//! UPDATE_ANSWERS=1 cargo test -p framebatch-tokenizer-peer   # and keeps what it answers
//! ```

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests fail where they are wrong"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use framebatch::embed::tokenizer::{Matching, Options};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Encoding, Model, Tokenizer, TruncationParams};

use transcript::{Answer, Question, Transcript};

#[path = "../transcript.rs"]
pub mod transcript;

/// The folder of the library.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The tokenizer of the crate.
pub struct Peer {
    tokenizer: Tokenizer,
    transcript: Transcript,
}

impl Peer {
    pub fn of_vocabulary(vocab: &str, options: &Options) -> Peer {
        let model = WordPiece::builder()
            .vocab(WordPiece::read_bytes(vocab.as_bytes()).unwrap())
            .unk_token(options.unk.clone())
            .continuing_subword_prefix(options.continuing_prefix.clone())
            .max_input_chars_per_word(options.max_chars_per_word)
            .build()
            .unwrap();
        let special = |name: &String| (name.clone(), model.token_to_id(name).unwrap());
        let template = TemplateProcessing::builder()
            .try_single(format!("{} $A {}", options.cls, options.sep))
            .unwrap()
            .special_tokens(vec![special(&options.cls), special(&options.sep)])
            .build()
            .unwrap();
        let verbatim = options.verbatim.iter();
        let verbatim: Vec<AddedToken> = verbatim
            .filter(|name| model.token_to_id(name).is_some())
            .map(|name| AddedToken::from(name.clone(), true))
            .collect();
        let normalizer = BertNormalizer::new(
            options.clean_text,
            options.handle_chinese_chars,
            options.strip_accents,
            options.lowercase,
        );
        let mut tokenizer = Tokenizer::new(model);
        tokenizer.with_normalizer(Some(normalizer)).unwrap();
        tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
        tokenizer.with_post_processor(Some(template));
        tokenizer.add_special_tokens(verbatim).unwrap();
        Peer {
            tokenizer,
            transcript: Transcript::of_vocabulary(vocab, options),
        }
    }

    pub fn of_file(json: &[u8]) -> Peer {
        let mut tokenizer: Tokenizer = serde_json::from_slice(json).unwrap();
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).unwrap();
        Peer {
            tokenizer,
            transcript: Transcript::of_file(json),
        }
    }

    /// Adds a token; `id` is the one that it gets.
    pub fn add(&mut self, content: &str, matching: Matching, id: u32) {
        let token = AddedToken::from(content, true)
            .lstrip(matching.strip_left)
            .rstrip(matching.strip_right)
            .normalized(matching.normalized)
            .single_word(matching.single_word);
        self.tokenizer.add_special_tokens([token]).unwrap();
        assert_eq!(self.tokenizer.token_to_id(content), Some(id));
        self.transcript.token(content, matching, id);
    }

    /// Holds that the crate answers the same.
    pub fn hold(&mut self, question: &Question, answer: &Answer) {
        let expected = self.encode(question);
        let (text, tokens) = (question.text, expected.get_tokens());
        let about = || {
            let Question { second, limit, .. } = question;
            format!("{text:?}, {second:?} within {limit}: {tokens:?}")
        };
        assert_eq!(answer.ids, expected.get_ids(), "{}", about());
        if let Some(offsets) = &answer.offsets {
            let all: Vec<(usize, usize)> = offsets
                .iter()
                .map(|(from, to)| (*from as usize, *to as usize))
                .collect();
            assert_eq!(all, expected.get_offsets(), "{}", about());
        }
        if let Some(types) = &answer.types {
            assert_eq!(types, expected.get_type_ids(), "{}", about());
        }
        let is_cut = !expected.get_overflowing().is_empty();
        assert!(answer.is_truncated || !is_cut, "{}", about());
        self.transcript.add(question, answer);
    }

    fn encode(&mut self, question: &Question) -> Encoding {
        let truncation = (question.limit < usize::MAX).then(|| TruncationParams {
            max_length: question.limit,
            ..TruncationParams::default()
        });
        self.tokenizer.with_truncation(truncation).unwrap();
        let encoded = match question.second {
            Some(second) => self.tokenizer.encode((question.text, second), true),
            None => self.tokenizer.encode(question.text, true),
        };
        encoded.unwrap()
    }
}

/// Tests write at the same time.
static KEPT: Mutex<()> = Mutex::new(());

impl Drop for Peer {
    fn drop(&mut self) {
        let is_asked = std::env::var_os("UPDATE_ANSWERS").is_some();
        if !is_asked || self.transcript.questions() == 0 || std::thread::panicking() {
            return;
        }
        let _writing = KEPT.lock();
        let path = root().join("tests/data/tokenizer-answers.txt");
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let mut lines: BTreeSet<String> = kept.lines().map(str::to_owned).collect();
        let asked = self.transcript.asked();
        lines.retain(|line| !line.starts_with(&asked));
        lines.insert(self.transcript.to_string());
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, lines).unwrap();
    }
}
