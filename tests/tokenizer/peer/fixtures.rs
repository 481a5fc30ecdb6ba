//! Small files and what becomes of texts with them, which the library's tests and those of pages read.
//!
//! `UPDATE_TABLES=1 cargo test -p framebatch-tokenizer-peer fixtures` writes them anew.

use std::fs;

use serde_json::{Value, json};
use tokenizers::Tokenizer;

/// Pieces of SentencePiece, as a model of up to 128 words has them.
fn unigram() -> Value {
    let pieces = [
        "<s>", "<pad>", "</s>", "<unk>", "▁", "▁the", "▁cat", "s", "▁s", "at", "▁on", "▁a", "é",
        "▁mat", "日本", "日", "語", "!", "😀", "e", "t", "h", "▁un", "believ", "able",
    ];
    let vocab: Vec<(&str, f64)> = (0..)
        .zip(pieces)
        .map(|(id, piece)| (piece, -2.0 - f64::from(id) / 8.0))
        .collect();
    let end = |name: &str| json!({ "SpecialToken": { "id": name, "type_id": 0 } });
    let text = |id: &str| json!({ "Sequence": { "id": id, "type_id": 0 } });
    json!({
        "version": "1.0",
        "added_tokens": [
            { "id": 3, "content": "<unk>", "special": true, "normalized": false,
              "single_word": false, "lstrip": false, "rstrip": false },
            { "id": pieces.len(), "content": "<mask>", "special": true, "normalized": false,
              "single_word": false, "lstrip": true, "rstrip": false }],
        "normalizer": { "type": "Sequence", "normalizers": [{ "type": "NFKC" },
            { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " }] },
        "pre_tokenizer": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always" },
        "post_processor": { "type": "TemplateProcessing",
            "single": [end("<s>"), text("A"), end("</s>")],
            "pair": [end("<s>"), text("A"), end("</s>"), end("</s>"), text("B"), end("</s>")],
            "special_tokens": {
                "<s>": { "id": "<s>", "ids": [0], "tokens": ["<s>"] },
                "</s>": { "id": "</s>", "ids": [2], "tokens": ["</s>"] } } },
        "model": { "type": "Unigram", "unk_id": 3, "byte_fallback": false, "vocab": vocab },
    })
}

/// Letters of bytes and a few merges, as RoBERTa has them.
fn bpe() -> Value {
    let mut vocab: Vec<String> = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        .map(Into::into)
        .into();
    vocab.extend(('a'..='z').chain("Ġ!Ċ'ÃĥÂ©".chars()).map(String::from));
    let merges = [
        "t h", "th e", "c a", "ca t", "Ġ the", "Ġ cat", "Ġ s", "a t", "Ġs at", "' s", "Ã ©",
    ];
    vocab.extend(merges.map(|merge| merge.replace(' ', "")));
    let vocab: serde_json::Map<String, Value> = (0..)
        .zip(vocab)
        .map(|(id, token)| (token, json!(id as u32)))
        .collect();
    json!({
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": true },
        "post_processor": { "type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0],
            "trim_offsets": true, "add_prefix_space": false },
        "model": { "type": "BPE", "unk_token": "<unk>", "vocab": vocab, "merges": merges },
    })
}

const TEXTS: [&str; 9] = [
    "",
    "the cat sat on a mat!",
    "The  cat's\n caté",
    "日本語 😀 the",
    "unbelievable <mask> cats",
    "e\u{301}té ﬁ ① 👩\u{200d}👧",
    "  the ",
    "cat\u{3000}the\r\n\tsat",
    "<unk></s> thethe",
];

#[test]
fn fixtures_are_what_the_crate_says() {
    let rows: Vec<Value> = [("unigram", unigram()), ("bpe", bpe())]
        .into_iter()
        .map(|(name, file)| {
            let tokenizer: Tokenizer = serde_json::from_value(file.clone()).unwrap();
            let texts: Vec<Value> = TEXTS
                .iter()
                .map(|text| {
                    let encoding = tokenizer.encode_char_offsets(*text, true).unwrap();
                    let units = |chars: usize| -> usize {
                        text.chars().take(chars).map(char::len_utf16).sum()
                    };
                    // Offsets in characters become units of UTF-16.
                    let offsets: Vec<usize> = encoding
                        .get_offsets()
                        .iter()
                        .flat_map(|(from, to)| [units(*from), units(*to)])
                        .collect();
                    json!({ "text": text, "ids": encoding.get_ids(), "offsets": offsets })
                })
                .collect();
            json!({ "name": name, "file": file, "texts": texts })
        })
        .collect();
    let path = crate::root().join("tests/data/tokenizers.json");
    if std::env::var_os("UPDATE_TABLES").is_some() {
        fs::write(&path, serde_json::to_string_pretty(&rows).unwrap() + "\n").unwrap();
    }
    let kept: Vec<Value> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(kept, rows);
}
