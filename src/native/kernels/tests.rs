//! What may stand in code, and what is made of it, by the table that TypeScript shares.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::source::{Given, read};
use crate::graph::{FnForm, ValueType};

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
        let constants = case["constants"].as_object();
        let constants: Vec<(String, f64)> = (constants.into_iter().flatten())
            .map(|(name, value)| {
                let number = value.as_f64();
                let flag = || f64::from(u8::from(value.as_bool().unwrap()));
                (name.clone(), number.unwrap_or_else(flag))
            })
            .collect();
        let given = Given {
            params: &params,
            constants: &constants,
        };
        let typed = |values: &[(String, ValueType)]| -> Vec<(String, String)> {
            let values = values.iter();
            values.map(|(name, of)| (name.clone(), of.name())).collect()
        };
        let got = match read(code, given) {
            Ok(source) => json!({
                // What was added stands between « and » in the table.
                "made": source.code.replace('\u{2}', "«").replace('\u{3}', "»"),
                "form": if source.form == FnForm::At { "at" } else { "element" },
                "inputs": typed(&source.inputs),
                "results": typed(&source.results),
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
