//! Each normalizer and pre-tokenizer by itself, over every character and texts at random.
//!
//! Two models show what a stage does: one whose tokens are the bytes of the normalized text, and
//! one that makes a single unknown token of each piece, so that offsets are those of pieces.

use serde_json::{Value, json};

use crate::texts::{amount, is_long, texts};
use crate::twins::Twins;

/// A model of the 256 bytes.
fn bytes() -> Value {
    let vocab: serde_json::Map<String, Value> = (0..256)
        .map(|byte| (format!("<0x{byte:02X}>"), json!(byte)))
        .collect();
    json!({ "type": "BPE", "byte_fallback": true, "vocab": vocab, "merges": [] })
}

/// A model that knows nothing.
fn nothing() -> Value {
    json!({ "type": "BPE", "unk_token": "?", "fuse_unk": true, "vocab": { "?": 0 }, "merges": [] })
}

fn twins(model: Value, normalizer: &Value, pre_tokenizer: &Value) -> Twins {
    Twins::new(&json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "model": model,
    }))
}

/// Holds a normalizer and a pre-tokenizer to the crate: each text whole, and each of its pieces.
fn check(normalizer: &Value, pre_tokenizer: &Value, texts: impl Iterator<Item = String>) {
    let mut whole = twins(bytes(), normalizer, pre_tokenizer);
    let mut pieces = twins(nothing(), normalizer, pre_tokenizer);
    for text in texts {
        whole.check(&text);
        pieces.check(&text);
    }
}

/// Every character between letters, several a text, but for most ideographs, which are alike.
fn every_character() -> impl Iterator<Item = String> {
    let planes = ('\0'..='\u{200ff}').chain('\u{2f700}'..='\u{2faff}');
    let planes = planes.filter(|c| !('\u{3500}'..'\u{4d00}').contains(c));
    let planes = planes.filter(|c| !('\u{5000}'..'\u{9f00}').contains(c));
    let planes = planes.chain('\u{e0000}'..='\u{e0fff}');
    let all: Vec<char> = planes.chain('\u{10ff00}'..=char::MAX).collect();
    let some: Vec<String> = all
        .chunks(64)
        .map(|some| some.iter().map(|c| format!("a{c}b ")).collect())
        .collect();
    some.into_iter()
}

/// The characters that SentencePiece's rule `nmt_nfkc` puts in the place of others, which XLM-R's
/// tokenizer has: `train_unigram.py` takes it from a model that SentencePiece trained.
const NMT_NFKC: &str = include_str!("../data/nmt-nfkc.base64");

fn normalizers() -> Vec<Value> {
    let of = |kind: &str| json!({ "type": kind });
    let precompiled = json!({ "type": "Precompiled", "precompiled_charsmap": NMT_NFKC });
    let all = json!([
        of("NFC"),
        of("NFD"),
        of("NFKC"),
        of("NFKD"),
        of("Lowercase"),
        of("StripAccents"),
        { "type": "Strip", "strip_left": true, "strip_right": true },
        { "type": "Strip", "strip_left": false, "strip_right": true },
        { "type": "Prepend", "prepend": "▁x" },
        { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        { "type": "Replace", "pattern": { "String": "ab" }, "content": "" },
        { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " },
        { "type": "Replace", "pattern": { "Regex": r"\s+" }, "content": "<>" },
        { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
          "strip_accents": null, "lowercase": true },
        { "type": "BertNormalizer", "clean_text": false, "handle_chinese_chars": true,
          "strip_accents": true, "lowercase": false },
        precompiled,
        { "type": "Sequence", "normalizers": [
            precompiled,
            { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " },
        ] },
        { "type": "Sequence", "normalizers": [
            of("NFKD"), of("StripAccents"), of("Lowercase"),
            { "type": "Replace", "pattern": { "String": "``" }, "content": "\"" },
            of("NFC"),
            { "type": "Strip", "strip_left": true, "strip_right": false },
            { "type": "Prepend", "prepend": "▁" },
            { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": "▁" },
        ] },
    ]);
    all.as_array().unwrap().clone()
}

#[test]
fn normalizers_give_the_text_and_offsets_of_the_crate() {
    for (seed, normalizer) in (100..).zip(normalizers()) {
        // Every fourth text of characters, others for the next one.
        let step = if is_long() { 1 } else { 4 };
        let characters = every_character().skip(seed as usize % step).step_by(step);
        check(
            &normalizer,
            &Value::Null,
            characters.chain(texts(seed, amount() / 4)),
        );
    }
}

/// The regular expressions of GPT-2, Qwen, Llama 3 and GPT-4.
const REGEXES: [&str; 5] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
];

fn pre_tokenizers() -> Vec<Value> {
    let of = |kind: &str| json!({ "type": kind });
    let metaspace = |scheme: &str, split: bool| json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split });
    let split = |pattern: Value, behavior: &str, invert: bool| json!({ "type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert });
    let mut all = vec![
        of("BertPreTokenizer"),
        of("Whitespace"),
        of("WhitespaceSplit"),
        json!({ "type": "Digits", "individual_digits": false }),
        json!({ "type": "Digits", "individual_digits": true }),
        metaspace("always", true),
        metaspace("always", false),
        metaspace("first", true),
        metaspace("never", true),
        json!({ "type": "Sequence", "pretokenizers": [
            of("WhitespaceSplit"),
            json!({ "type": "Metaspace", "replacement": "▁", "add_prefix_space": true }),
        ] }),
        json!({ "type": "Sequence", "pretokenizers": [
            of("Punctuation"), metaspace("first", true),
            json!({ "type": "Digits", "individual_digits": true }),
        ] }),
    ];
    for behavior in [
        "Removed",
        "Isolated",
        "MergedWithPrevious",
        "MergedWithNext",
        "Contiguous",
    ] {
        all.push(json!({ "type": "Punctuation", "behavior": behavior }));
        for pattern in [
            json!({ "String": " " }),
            json!({ "Regex": r"\s+" }),
            json!({ "String": "a" }),
        ] {
            all.push(split(pattern.clone(), behavior, false));
            all.push(split(pattern, behavior, true));
        }
    }
    for regex in REGEXES {
        all.push(split(json!({ "Regex": regex }), "Isolated", false));
        all.push(split(json!({ "Regex": regex }), "Removed", true));
    }
    all
}

#[test]
fn pre_tokenizers_give_the_pieces_of_the_crate() {
    let none = Value::Null;
    for (seed, pre_tokenizer) in (200..).zip(pre_tokenizers()) {
        check(&none, &pre_tokenizer, texts(seed, amount() / 16));
        let kind = pre_tokenizer["type"].as_str().unwrap();
        let is_regex = pre_tokenizer["pattern"]["Regex"]
            .as_str()
            .is_some_and(|it| it.len() > 9);
        if ["BertPreTokenizer", "Whitespace", "Digits"].contains(&kind)
            || (is_regex && pre_tokenizer["invert"] == json!(false))
        {
            let mut twins = twins(nothing(), &none, &pre_tokenizer);
            every_character().for_each(|text| twins.check(&text));
        }
    }
}

/// What a normalizer takes from the beginning decides which piece is the first.
#[test]
fn normalizers_and_pre_tokenizers_work_together() {
    let metaspace = json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "first" });
    for (seed, normalizer) in (300..).zip(normalizers()) {
        check(&normalizer, &metaspace, texts(seed, amount() / 8));
        check(
            &normalizer,
            &json!({ "type": "BertPreTokenizer" }),
            texts(seed, amount() / 16),
        );
    }
}

/// Marks of Tibetan that have no class, and become marks that have one, between marks that are
/// sorted by their classes and have a width.
#[test]
fn marks_without_a_class_are_sorted_by_their_parts() {
    let texts = [
        "\u{1d16e}\u{f75}",
        "x\u{1d16e}\u{5b0}\u{f73}\u{1d16e}",
        "\u{1d16d}\u{f81}\u{1d165}",
        "\u{1d16e}\u{2dff}\u{5b0}\u{f75}\u{327}\u{1d16e}",
    ];
    for normalizer in normalizers() {
        check(
            &normalizer,
            &Value::Null,
            texts.map(String::from).into_iter(),
        );
    }
}
