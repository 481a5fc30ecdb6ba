//! The vocabulary of all-MiniLM-L6-v2, which `make model` fetches.

use std::fs;

use framebatch::embed::tokenizer::{Options, Tokenizer};

use crate::pair::{Pair, ids};
use crate::texts;

fn vocab() -> String {
    let path = crate::root().join("models/minilm/vocab.txt");
    fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run make model", path.display()))
}

#[test]
fn the_reference_has_the_same_ids() {
    let tokenizer = Tokenizer::new(&vocab(), Options::default()).unwrap();
    assert_eq!(tokenizer.vocabulary_len(), 30522);
    let path = crate::root().join("tests/data/minilm-reference.jsonl");
    let lines = fs::read_to_string(path).unwrap();
    let mut texts = 0;
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = line["text"].as_str().unwrap();
        let expected: Vec<u32> = serde_json::from_value(line["ids"].clone()).unwrap();
        assert_eq!(ids(&tokenizer, text, 256), expected, "{text:?}");
        texts += 1;
    }
    assert_eq!(texts, 35);
}

#[test]
fn texts_at_random_have_the_ids_of_the_crate() {
    let mut pair = Pair::new(&vocab(), &Options::default());
    for text in texts::texts(3, texts::amount()) {
        pair.check(&text);
    }
}
