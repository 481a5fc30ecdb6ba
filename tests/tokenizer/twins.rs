//! A `tokenizer.json` as the library reads it, and as Hugging Face's crate does.

use framebatch::Error;
use framebatch::embed::tokenizer::Tokenizer;
use serde_json::Value;

use crate::Peer;
use crate::transcript::{Answer, Question};

/// The two tokenizers of one file, to be asked the same.
pub(crate) struct Twins {
    ours: Tokenizer,
    peer: Peer,
}

/// Reads a file in slices of an odd length.
pub(crate) fn read(json: &[u8]) -> Result<Tokenizer, Error> {
    let mut reader = Tokenizer::reader();
    for slice in json.chunks(4093) {
        reader.feed(slice)?;
    }
    reader.finish()
}

impl Twins {
    pub(crate) fn new(json: &Value) -> Twins {
        Twins::of_file(json.to_string().as_bytes())
    }

    pub(crate) fn of_file(json: &[u8]) -> Twins {
        Twins {
            ours: read(json).unwrap(),
            peer: Peer::of_file(json),
        }
    }

    /// Holds that both give the same ids and offsets.
    pub(crate) fn check(&mut self, text: &str) {
        let found = self.ours.tokenize(text);
        // Where no offsets are asked for, other ways are taken.
        let mut ids = Vec::new();
        let encoded = self.ours.encode(text, usize::MAX, &mut ids);
        assert_eq!(ids, found.ids, "{text:?}");
        assert_eq!((encoded.tokens, encoded.truncated), (ids.len(), false));
        let answer = Answer {
            ids,
            offsets: Some(found.offsets),
            ..Answer::default()
        };
        self.peer.hold(&Question::whole(text), &answer);
    }

    /// Holds the same within a limit of tokens.
    pub(crate) fn check_within(&mut self, limit: usize, text: &str) {
        let mut ids = Vec::new();
        let encoded = self.ours.encode(text, limit, &mut ids);
        let answer = Answer {
            ids,
            is_truncated: encoded.truncated,
            ..Answer::default()
        };
        self.peer.hold(&Question::within(limit, text), &answer);
    }

    /// Holds the same of two texts, ids and types.
    pub(crate) fn check_pair(&mut self, limit: usize, texts: (&str, &str)) {
        let (mut ids, mut types) = (Vec::new(), Vec::new());
        let encoded = self.ours.encode_pair(texts, limit, &mut ids, &mut types);
        assert_eq!(encoded.tokens, ids.len());
        let question = Question {
            text: texts.0,
            second: Some(texts.1),
            limit,
        };
        let answer = Answer {
            ids,
            types: Some(types),
            is_truncated: encoded.truncated,
            ..Answer::default()
        };
        self.peer.hold(&question, &answer);
    }
}
