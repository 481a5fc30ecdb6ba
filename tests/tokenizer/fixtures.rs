//! Small files and what the crate makes of texts with them, which the tests of pages read too.

use std::fs;

use serde_json::Value;

use crate::twins::read;

#[test]
fn fixtures_have_the_tokens_of_the_crate() {
    let path = crate::root().join("tests/data/tokenizers.json");
    let rows: Vec<Value> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let tokenizer = read(row["file"].to_string().as_bytes()).unwrap();
        for text in row["texts"].as_array().unwrap() {
            let list =
                |name: &str| -> Vec<u32> { serde_json::from_value(text[name].clone()).unwrap() };
            let text = text["text"].as_str().unwrap();
            let expected = [list("ids"), list("offsets")].concat();
            let found = tokenizer.tokenize(text).in_utf16(text);
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
