//! What comes out of folders, by the table that tests of the browser's face read too.

use framebatch::embed::Config;
use framebatch::{Code, EngineChoice, Preset, Storage};
use safetensors::tensor::Dtype;
use serde_json::{Map, Value, json};

use crate::engines::open;
use crate::model::{Files, TINY, data, folder, pooling_name};

/// What a row changes, as RFC 7386 has it: files that are texts are taken as they
/// stand, others are JSON.
fn patch(files: &mut Files, changes: &Map<String, Value>) {
    for (name, change) in changes {
        let known = files.0.iter().find(|(known, _)| known == name);
        let known = known.and_then(|(_, content)| serde_json::from_slice(content).ok());
        files.0.retain(|(known, _)| known != name);
        match change {
            Value::Null => {}
            Value::String(text) => files.set(name, &text[..]),
            change => {
                let mut content = known.unwrap_or(Value::Null);
                merge(&mut content, change);
                files.set(name, content.to_string());
            }
        }
    }
}

fn merge(content: &mut Value, change: &Value) {
    let Value::Object(fields) = change else {
        *content = change.clone();
        return;
    };
    if !content.is_object() {
        *content = json!({});
    }
    let object = content.as_object_mut().unwrap();
    for (name, field) in fields {
        if field.is_null() {
            object.remove(name);
        } else {
            merge(object.entry(name).or_insert(Value::Null), field);
        }
    }
}

/// By the names of the table.
fn read(config: &Config) -> Value {
    json!({
        "pooling": pooling_name(config.pooling),
        "normalize": config.normalize,
        "epsilon": config.epsilon,
        "firstPosition": config.first_position,
        "maxTokens": config.max_tokens,
    })
}

fn has_words(about: &str, error: &framebatch::Error, words: &Value) {
    let said = error.to_string();
    for word in words.as_array().unwrap() {
        let word = word.as_str().unwrap();
        assert!(said.contains(word), "{about}: {said}\n  lacks {word}");
    }
}

#[test]
fn folders_are_read_as_the_table_says() {
    let gpu = open(EngineChoice::Cpu, Preset::Eager.config());
    let table = std::fs::read_to_string(data("folders.json")).unwrap();
    let table: Vec<Map<String, Value>> = serde_json::from_str(&table).unwrap();
    for row in &table {
        let about = row["name"].as_str().unwrap();
        let mut files = folder(&TINY, Dtype::F32);
        patch(&mut files, row["files"].as_object().unwrap());
        let opened = files.open(&gpu, Storage::F32);
        if let Some(words) = row.get("refused") {
            let error = opened.expect_err(about);
            let code = match row.get("code") {
                None => Code::InvalidInput,
                Some(code) => *Code::ALL
                    .iter()
                    .find(|known| *code == known.as_str())
                    .unwrap(),
            };
            assert_eq!(error.code(), code, "{about}");
            has_words(about, &error, words);
            continue;
        }
        let embedder = opened.unwrap_or_else(|error| panic!("{about}: {error}"));
        let embedded = embedder.embed_ids(&[2, 5, 3]).wait();
        assert_eq!(embedded.expect(about).len(), 64, "{about}");
        let mut held = 0;
        if let Some(words) = row.get("unsplit") {
            let error = embedder.embed("the cat").wait().expect_err(about);
            let code = match error.to_string().contains("vocab.txt too") {
                true => Code::InvalidInput,
                false => Code::Unsupported,
            };
            assert_eq!(error.code(), code, "{about}");
            has_words(about, &error, words);
            has_words(about, &error, &json!(["embed_ids"]));
            held += 1;
        }
        let config = read(embedder.config());
        let expected = row.get("config").and_then(Value::as_object);
        for (field, value) in expected.into_iter().flatten() {
            let value = match field.as_str() {
                #[expect(clippy::cast_possible_truncation, reason = "as it is kept")]
                "epsilon" => json!(value.as_f64().unwrap() as f32),
                _ => value.clone(),
            };
            assert_eq!(config.get(field), Some(&value), "{about}: {field}");
            held += 1;
        }
        let texts = row.get("ids").and_then(Value::as_object);
        for (text, ids) in texts.into_iter().flatten() {
            let given = embedder.ids(text).expect(about);
            assert_eq!(json!(given), *ids, "{about}: {text:?}");
            held += 1;
        }
        assert!(held > 0, "{about}: the row says nothing");
    }
}
