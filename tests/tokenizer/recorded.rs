//! What Hugging Face's crate answered when it was asked last, which spares every run of the tests to
//! compile it.
//!
//! `tests/tokenizer/peer/` asks the crate itself, text by text, and writes the answers.

use std::fs;

use framebatch::embed::tokenizer::{Matching, Options};

use crate::transcript::{Answer, Question, Transcript};

/// The tokenizer of the crate, which is held to its answers when it was asked all.
pub(crate) struct Peer {
    transcript: Transcript,
}

impl Peer {
    pub(crate) fn of_vocabulary(vocab: &str, options: &Options) -> Peer {
        Peer {
            transcript: Transcript::of_vocabulary(vocab, options),
        }
    }

    pub(crate) fn of_file(json: &[u8]) -> Peer {
        Peer {
            transcript: Transcript::of_file(json),
        }
    }

    /// Adds a token; `id` is the one that it gets.
    pub(crate) fn add(&mut self, content: &str, matching: Matching, id: u32) {
        self.transcript.token(content, matching, id);
    }

    /// Holds that the crate answers the same, as soon as it was asked all.
    pub(crate) fn hold(&mut self, question: &Question, answer: &Answer) {
        self.transcript.add(question, answer);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if self.transcript.questions() == 0 || std::thread::panicking() {
            return;
        }
        let path = crate::root().join("tests/data/tokenizer-answers.txt");
        let kept = fs::read_to_string(path).unwrap();
        let asked = self.transcript.asked();
        let line = kept.lines().find(|line| line.starts_with(&asked));
        let line = line.expect(
            "questions that the crate was never asked: remove tests/data/tokenizer-answers.txt, and run \
             UPDATE_ANSWERS=1 cargo test -p framebatch-tokenizer-peer",
        );
        assert_eq!(
            self.transcript.to_string(),
            line,
            "the crate gives other tokens; cargo test -p framebatch-tokenizer-peer names the text"
        );
    }
}
