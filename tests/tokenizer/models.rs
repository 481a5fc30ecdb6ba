//! Unigram and BPE with vocabularies made for the tests, against Hugging Face's crate.

use std::fs;
use std::ops::Range;

use serde_json::{Value, json};

use crate::texts::{Random, amount, texts};
use crate::twins::Twins;

/// Words, so that trained vocabularies have some of several pieces.
pub(crate) fn corpus() -> Vec<String> {
    let words = "the of and tokenizer tokens token unbelievable untokenized naïve café thing things \
        it's we'll привет мир 日本語 テキスト ΣΊΣΥΦΟΣ 한국어 नमस्ते 12345 2024 ... -- <x>";
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut random = Random(7);
    let mut lines: Vec<String> = (0..400)
        .map(|_| {
            let words = (0..12).map(|_| words[random.next() as usize % words.len()]);
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    lines.extend(texts(8, 300));
    lines
}

/// A BPE that `peer/trained.rs` trained on these words.
fn trained(name: &str) -> Value {
    let path = crate::root().join("tests/data/trained-bpe.json");
    let mut all: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    all[name].take()
}

/// The same file with some fields replaced, by paths.
fn with(file: &Value, changes: &[(&str, Value)]) -> Value {
    let mut file = file.clone();
    for (path, value) in changes {
        let (parent, name) = path.rsplit_once('/').unwrap();
        file.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    file
}

fn check(file: &Value, seed: u64, amount: usize) {
    let mut twins = Twins::new(file);
    for text in corpus().into_iter().take(20).chain(texts(seed, amount)) {
        twins.check(&text);
    }
    // Long words, and much of one letter.
    let long: String = texts(seed + 1, 40).collect();
    for text in [
        long.replace(' ', ""),
        long,
        "ab".repeat(400),
        "e".repeat(1001),
    ] {
        twins.check(&text);
    }
}

#[test]
fn byte_level_bpe_gives_the_tokens_of_the_crate() {
    let file = trained("bytes");
    let roberta = |trims: bool, adds: bool| {
        json!({ "type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1],
            "trim_offsets": trims, "add_prefix_space": adds })
    };
    let byte_level = |adds: bool, has_words: bool| {
        json!({ "type": "ByteLevel", "add_prefix_space": adds, "trim_offsets": true,
            "use_regex": has_words })
    };
    let template = json!({ "type": "TemplateProcessing",
        "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } },
            { "Sequence": { "id": "A", "type_id": 0 } }],
        "pair": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } },
            { "Sequence": { "id": "A", "type_id": 0 } },
            { "SpecialToken": { "id": "<s>", "type_id": 1 } },
            { "Sequence": { "id": "B", "type_id": 1 } }],
        "special_tokens": { "<s>": { "id": "<s>", "ids": [1], "tokens": ["<s>"] } } });
    let llama = json!({ "type": "Sequence", "pretokenizers": [
        { "type": "Split", "behavior": "Isolated", "invert": false, "pattern": { "Regex":
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+" } },
        byte_level(false, false),
    ] });
    let mask = json!([
        { "id": 0, "content": "<unk>", "special": true, "normalized": false,
          "single_word": false, "lstrip": false, "rstrip": false },
        { "id": 1, "content": "<s>", "special": true, "normalized": true,
          "single_word": false, "lstrip": false, "rstrip": false },
        { "id": 2, "content": "</s>", "special": true, "normalized": false,
          "single_word": false, "lstrip": false, "rstrip": true },
        { "id": 1800, "content": "<mask>", "special": true, "normalized": false,
          "single_word": false, "lstrip": true, "rstrip": false },
        { "id": 1801, "content": "thing", "special": false, "normalized": true,
          "single_word": true, "lstrip": false, "rstrip": false },
    ]);
    let files = [
        with(&file, &[("/post_processor", roberta(true, true))]),
        with(
            &file,
            &[
                ("/post_processor", roberta(true, false)),
                ("/added_tokens", mask.clone()),
                ("/pre_tokenizer", byte_level(false, true)),
                ("/normalizer", json!({ "type": "NFC" })),
            ],
        ),
        with(&file, &[("/post_processor", byte_level(true, true))]),
        with(
            &file,
            &[
                ("/pre_tokenizer", llama),
                ("/model/ignore_merges", json!(true)),
                (
                    "/post_processor",
                    json!({ "type": "Sequence",
                "processors": [byte_level(true, true), template] }),
                ),
                ("/added_tokens", mask),
            ],
        ),
        with(&file, &[("/pre_tokenizer", byte_level(false, false))]),
    ];
    for (seed, file) in (400..).zip(files) {
        check(&file, seed, amount() / 2);
    }
}

#[test]
fn bpe_of_characters_gives_the_tokens_of_the_crate() {
    let file = trained("characters");
    let unk = || ("/model/unk_token", json!("<unk>"));
    let gemma = || {
        (
            "/normalizer",
            json!({ "type": "Replace", "pattern": { "String": " " }, "content": "▁" }),
        )
    };
    let mut bytes = file.clone();
    let len = bytes["model"]["vocab"].as_object().unwrap().len();
    for byte in 0..256 {
        bytes["model"]["vocab"][format!("<0x{byte:02X}>")] = json!(len + byte);
    }
    let mut some_bytes = bytes.clone();
    some_bytes["model"]["vocab"]
        .as_object_mut()
        .unwrap()
        .remove("<0xE2>");
    let falls_back = || ("/model/byte_fallback", json!(true));
    let files = [
        file.clone(),
        with(&file, &[unk()]),
        with(&file, &[unk(), ("/model/fuse_unk", json!(true))]),
        with(
            &bytes,
            &[
                gemma(),
                falls_back(),
                unk(),
                (
                    "/pre_tokenizer",
                    json!({ "type": "Split",
            "pattern": { "String": " " }, "behavior": "MergedWithPrevious", "invert": false }),
                ),
            ],
        ),
        with(
            &some_bytes,
            &[
                gemma(),
                falls_back(),
                unk(),
                ("/model/fuse_unk", json!(true)),
                ("/pre_tokenizer", Value::Null),
            ],
        ),
        with(
            &bytes,
            &[
                falls_back(),
                ("/pre_tokenizer", Value::Null),
                (
                    "/normalizer",
                    json!({
            "type": "Sequence", "normalizers": [{ "type": "Prepend", "prepend": "▁" },
            { "type": "Replace", "pattern": { "String": " " }, "content": "▁" }] }),
                ),
            ],
        ),
    ];
    for (seed, file) in (420..).zip(files) {
        check(&file, seed, amount() / 2);
    }
}

/// Pieces of texts at random with scores of which many are equal.
fn unigram(seed: u64, bytes: Range<u32>) -> Value {
    let mut random = Random(seed);
    let mut vocab: Vec<(String, f64)> = ["<s>", "<pad>", "</s>", "<unk>", "▁"]
        .map(|piece| (piece.to_owned(), -1.5))
        .into();
    for text in corpus()
        .iter()
        .chain(&texts(seed, 1500).collect::<Vec<_>>())
    {
        let chars: Vec<char> = text.replace(' ', "▁").chars().collect();
        let from = random.next() as usize % (chars.len() + 1);
        let length = 1 + random.next() as usize % 6;
        let piece: String = chars[from..].iter().take(length).collect();
        let score = -f64::from(random.next() % 40) / 4.0;
        if !piece.is_empty() && piece != "<mask>" && vocab.iter().all(|(known, _)| *known != piece)
        {
            vocab.push((piece, score));
        }
    }
    let falls_back = !bytes.is_empty();
    for byte in bytes {
        vocab.push((format!("<0x{byte:02X}>"), 0.0));
    }
    json!({
        "version": "1.0",
        "added_tokens": [
            { "id": 3, "content": "<unk>", "special": true, "normalized": false,
              "single_word": false, "lstrip": false, "rstrip": false },
            { "id": vocab.len(), "content": "<mask>", "special": true, "normalized": false,
              "single_word": false, "lstrip": true, "rstrip": false }],
        "normalizer": { "type": "NFKC" },
        "pre_tokenizer": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always" },
        "post_processor": { "type": "TemplateProcessing",
            "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
                { "SpecialToken": { "id": "</s>", "type_id": 0 } }],
            "pair": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
                { "SpecialToken": { "id": "</s>", "type_id": 0 } },
                { "SpecialToken": { "id": "</s>", "type_id": 0 } },
                { "Sequence": { "id": "B", "type_id": 0 } },
                { "SpecialToken": { "id": "</s>", "type_id": 0 } }],
            "special_tokens": {
                "<s>": { "id": "<s>", "ids": [0], "tokens": ["<s>"] },
                "</s>": { "id": "</s>", "ids": [2], "tokens": ["</s>"] } } },
        "model": { "type": "Unigram", "unk_id": 3, "byte_fallback": falls_back, "vocab": vocab },
    })
}

#[test]
fn unigram_gives_the_tokens_of_the_crate() {
    let trims = json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true });
    let whole = json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "first",
        "split": false });
    let files = [
        unigram(1, 0..0),
        unigram(2, 0..256),
        with(
            &unigram(3, 0..0),
            &[
                ("/pre_tokenizer", Value::Null),
                ("/normalizer", Value::Null),
            ],
        ),
        with(
            &unigram(4, 16..256),
            &[("/pre_tokenizer", whole), ("/post_processor", trims)],
        ),
    ];
    for (seed, file) in (440..).zip(files) {
        check(&file, seed, amount());
    }
}

#[test]
fn texts_and_pairs_are_cut_as_the_crate_cuts_them() {
    let bpe = trained("bytes");
    let roberta = json!({ "type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1],
        "trim_offsets": true, "add_prefix_space": true });
    let bert = json!({ "type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1] });
    let files = [
        unigram(5, 0..0),
        with(&bpe, &[("/post_processor", roberta)]),
        with(&bpe, &[("/post_processor", bert)]),
        bpe,
    ];
    for (seed, file) in (460..).zip(files) {
        let mut twins = Twins::new(&file);
        let all: Vec<String> = texts(seed, amount() / 2 + 1).collect();
        for (at, both) in all.windows(2).enumerate() {
            twins.check_within(4 + at % 37, &both[0]);
            twins.check_pair(4 + at % 61, (&both[0], &both[1]));
        }
    }
}
