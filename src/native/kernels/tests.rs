//! What may stand in code, and what is made of it, by the table that TypeScript shares.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::source::read;
use crate::graph::FnForm;

use super::words::{KEYWORDS, REFUSED, WGSL};

fn data(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn code_is_read_as_the_table_says() {
    for case in data("kernels.json").as_array().unwrap() {
        let code = case["code"].as_str().unwrap();
        let params = case["params"].as_array().unwrap().iter();
        let params: Vec<&str> = params.map(|param| param.as_str().unwrap()).collect();
        let got = match read(code, &params) {
            Ok(source) => json!({
                // What was added stands between « and » in the table.
                "made": source.code.replace('\u{2}', "«").replace('\u{3}', "»"),
                "form": if source.form == FnForm::At { "at" } else { "element" },
                "inputs": source.inputs,
                "hasLoops": source.has_loops,
            }),
            Err(problem) => json!({
                "at": problem.at,
                "message": problem.message,
            }),
        };
        assert_eq!(got, case["read"], "{}", case["name"]);
    }
}

#[test]
fn the_lists_of_words_are_those_of_typescript() {
    let lists = data("kernel-words.json");
    for (list, name) in [(KEYWORDS, "keywords"), (WGSL, "wgsl"), (REFUSED, "refused")] {
        let words: Vec<&str> = list.split(' ').collect();
        assert_eq!(json!(words), lists[name]);
    }
}
