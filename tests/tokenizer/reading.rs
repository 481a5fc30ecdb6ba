//! What is read of a `tokenizer.json`, and what is refused.

use framebatch::Code;
use framebatch::embed::tokenizer::Tokenizer;
use serde_json::{Value, json};

use crate::pair::ids;
use crate::twins::read;

fn wordpiece() -> Value {
    json!({
        "added_tokens": [{ "id": 6, "content": "[MASK]" }],
        "normalizer": { "type": "Lowercase" },
        "pre_tokenizer": { "type": "Whitespace" },
        "post_processor": { "type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2] },
        "model": { "type": "WordPiece", "vocab":
            { "[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "the": 3, "cat": 4, "##s": 5 } },
    })
}

fn bpe() -> Value {
    json!({
        "normalizer": null,
        "model": { "type": "BPE", "vocab": { "a": 0, "b": 1, "ab": 2, "abab": 3 },
            "merges": ["a b", ["ab", "ab"]] },
    })
}

#[test]
fn slices_of_any_length_make_one_tokenizer() {
    let (file, text) = (wordpiece().to_string(), "The Cats[MASK] dog");
    for length in [1, 2, 3, 7, 64, file.len()] {
        let mut reader = Tokenizer::reader();
        for slice in file.as_bytes().chunks(length) {
            reader.feed(slice).unwrap();
        }
        assert_eq!(reader.model_kind(), Some("WordPiece"));
        let tokenizer = reader.finish().unwrap();
        assert_eq!(ids(&tokenizer, text, 64), [1, 3, 4, 5, 6, 0, 2]);
        assert_eq!(
            (tokenizer.vocabulary_len(), tokenizer.last_id()),
            (6, Some(6))
        );
        assert_eq!(tokenizer.id("##s"), Some(5));
    }
}

#[test]
fn the_order_of_fields_does_not_matter() {
    let file = r#"{ "model": { "merges": ["a b", ["ab", "ab"]],
        "vocab": { "abab": 3, "ab": 2, "b": 1, "a": 0 }, "type": "BPE" }, "normalizer": null }"#;
    for file in [file.to_owned(), bpe().to_string()] {
        let tokenizer = read(file.as_bytes()).unwrap();
        assert_eq!(ids(&tokenizer, "ababab", 64), [3, 2]);
    }
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let kind = |kind: &str| json!({ "type": kind });
    let regex = json!({ "type": "Split", "pattern": { "Regex": "[aeiou]+" },
        "behavior": "Isolated", "invert": false });
    let replace = json!({ "type": "Replace", "pattern": { "Regex": "(x)\\1" }, "content": "" });
    let twice = json!({ "type": "TemplateProcessing", "pair": [],
        "single": [{ "Sequence": { "id": "A" } }, { "Sequence": { "id": "A" } }] });
    let cases: [(&str, Value, &[&str]); 17] = [
        ("/normalizer", kind("Nmt"), &["normalizer", "Nmt"]),
        ("/normalizer", replace, &["normalizer", "(x)\\1"]),
        ("/normalizer", json!(3), &["normalizer", "3"]),
        (
            "/pre_tokenizer",
            kind("UnicodeScripts"),
            &["pre_tokenizer", "UnicodeScripts"],
        ),
        ("/pre_tokenizer", regex, &["pre_tokenizer", "[aeiou]+"]),
        (
            "/pre_tokenizer",
            json!({ "type": "Sequence", "pretokenizers":
            [kind("ByteLevel"), kind("Whitespace")] }),
            &["pre_tokenizer", "ByteLevel"],
        ),
        (
            "/pre_tokenizer",
            json!({ "type": "Punctuation", "behavior": "Odd" }),
            &["behavior", "Odd"],
        ),
        (
            "/pre_tokenizer",
            json!({ "type": "Metaspace", "prepend_scheme": "odd" }),
            &["odd"],
        ),
        ("/post_processor", kind("Odd"), &["post_processor", "Odd"]),
        ("/post_processor", twice, &["post_processor", "single"]),
        ("/model/type", json!("WordLevel"), &["model", "WordLevel"]),
        ("/model/type", json!(7), &["model", "7"]),
        ("/model", json!("none"), &["model"]),
        ("/model/dropout", json!(0.1), &["dropout", "0.1"]),
        (
            "/model/end_of_word_suffix",
            json!("</w>"),
            &["end_of_word_suffix", "</w>"],
        ),
        (
            "/model/continuing_subword_prefix",
            json!("##"),
            &["continuing_subword_prefix"],
        ),
        ("/pre_tokenizer", kind("ByteLevel"), &["vocab", "byte 0"]),
    ];
    refused(&cases, Code::Unsupported);
}

#[test]
fn what_contradicts_itself_is_refused_by_name() {
    let added = |token: Value| json!([token]);
    let cases: [(&str, Value, &[&str]); 16] = [
        ("/model/vocab", json!([]), &["vocab"]),
        ("/model/vocab", Value::Null, &["vocab"]),
        ("/model/vocab", json!({ "a": "0" }), &["vocab"]),
        ("/model/vocab", json!({ "a": 0.5 }), &["0.5", "'a'"]),
        (
            "/model/vocab",
            json!({ "a": 0, "b": 1, "ab": 2, "abab": 100_000 }),
            &["100000", "65536"],
        ),
        ("/model/merges", json!(["ab"]), &["merges", "ab"]),
        ("/model/merges", json!(["a b c"]), &["merges", "a b c"]),
        ("/model/merges", json!(["a x"]), &["merges", "'x'"]),
        ("/model/merges", json!([["a"]]), &["merges"]),
        ("/model/merges", json!({}), &["merges"]),
        ("/model/unk_token", json!("<unk>"), &["'<unk>'"]),
        ("/model/fuse_unk", json!("yes"), &["fuse_unk", "yes"]),
        ("/added_tokens", json!({}), &["added_tokens"]),
        (
            "/added_tokens",
            added(json!({ "id": 5 })),
            &["added_tokens", "content"],
        ),
        (
            "/added_tokens",
            added(json!({ "content": "x" })),
            &["added_tokens", "id"],
        ),
        (
            "/added_tokens",
            added(json!({ "content": "", "id": 5 })),
            &["added token", "empty"],
        ),
    ];
    refused(&cases, Code::InvalidInput);
    let files = [
        "",
        "[]",
        "{",
        "{} {}",
        r#"{ "model": { "vocab": {"a": 0} }"#,
        "{\"a\": \u{1}}",
    ];
    for file in files {
        let error = read(file.as_bytes()).err().unwrap();
        assert_eq!(error.code(), Code::InvalidInput, "{file:?}");
        assert!(error.to_string().contains("JSON"), "{error}");
    }
}

fn refused(cases: &[(&str, Value, &[&str])], code: Code) {
    for (path, value, words) in cases {
        let mut file = bpe();
        let (parent, name) = path.rsplit_once('/').unwrap();
        file.pointer_mut(parent).unwrap()[name] = value.clone();
        let error = read(file.to_string().as_bytes()).err();
        let error = error.unwrap_or_else(|| panic!("{path} {value} is read"));
        assert_eq!(error.code(), code, "{path} {value}: {error}");
        let message = error.to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
}
