//! A `tokenizer.json` as the library reads it, and as Hugging Face's crate does.

use framebatch::Error;
use framebatch::embed::tokenizer::Tokenizer;
use serde_json::Value;
use tokenizers::TruncationParams;

/// The two tokenizers of one file, to be asked the same.
pub(crate) struct Twins {
    pub(crate) ours: Tokenizer,
    pub(crate) peer: tokenizers::Tokenizer,
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
        let mut peer: tokenizers::Tokenizer = serde_json::from_slice(json).unwrap();
        peer.with_padding(None);
        peer.with_truncation(None).unwrap();
        Twins {
            ours: read(json).unwrap(),
            peer,
        }
    }

    /// Holds that both give the same ids and offsets.
    pub(crate) fn check(&self, text: &str) {
        let expected = self.peer.encode(text, true).unwrap();
        let found = self.ours.tokenize(text);
        assert_eq!(
            found.ids,
            expected.get_ids(),
            "{text:?}: {:?}",
            expected.get_tokens()
        );
        let offsets = expected.get_offsets().iter();
        let offsets: Vec<_> = offsets
            .map(|(from, to)| (*from as u32, *to as u32))
            .collect();
        assert_eq!(
            found.offsets,
            offsets,
            "{text:?}: {:?}",
            expected.get_tokens()
        );
        // Where no offsets are asked for, other ways are taken.
        let mut ids = Vec::new();
        let encoded = self.ours.encode(text, usize::MAX, &mut ids);
        assert_eq!(ids, found.ids, "{text:?}");
        assert_eq!((encoded.tokens, encoded.truncated), (ids.len(), false));
    }

    /// Holds the same within a limit of tokens.
    pub(crate) fn check_within(&mut self, limit: usize, text: &str) {
        self.limit(limit);
        let expected = self.peer.encode(text, true).unwrap();
        let mut ids = Vec::new();
        let encoded = self.ours.encode(text, limit, &mut ids);
        assert_eq!(ids, expected.get_ids(), "{text:?} within {limit}");
        let is_cut = !expected.get_overflowing().is_empty();
        assert!(encoded.truncated || !is_cut, "{text:?} within {limit}");
        self.peer.with_truncation(None).unwrap();
    }

    /// Holds the same of two texts, ids and types.
    pub(crate) fn check_pair(&mut self, limit: usize, texts: (&str, &str)) {
        self.limit(limit);
        let expected = self.peer.encode(texts, true).unwrap();
        let (mut ids, mut types) = (Vec::new(), Vec::new());
        let encoded = self.ours.encode_pair(texts, limit, &mut ids, &mut types);
        assert_eq!(ids, expected.get_ids(), "{texts:?} within {limit}");
        assert_eq!(types, expected.get_type_ids(), "{texts:?} within {limit}");
        assert_eq!(encoded.tokens, ids.len());
        self.peer.with_truncation(None).unwrap();
    }

    fn limit(&mut self, limit: usize) {
        let truncation = TruncationParams {
            max_length: limit,
            ..TruncationParams::default()
        };
        self.peer.with_truncation(Some(truncation)).unwrap();
    }
}
