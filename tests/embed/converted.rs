//! Folders that `framebatch convert` wrote: `tests/data/tiny-model-int8` and `tiny-model-int4` are
//! what it makes of `tests/data/tiny-model`, as `tests/packaging/convert.test.mjs` holds.

use std::fs;

use framebatch::{Code, Embedder, EmbedderOptions, Error, Gpu, Storage};
use serde_json::{Value, json};

use crate::engines::both;
use crate::model::data;
use crate::nearness::cosine;
use crate::values::bits;

const CONVERTED: &str = "tiny-model-int8";

fn opened(gpu: &Gpu, name: &str, dtype: Storage) -> Result<Embedder, Error> {
    let options = EmbedderOptions {
        dtype,
        ..EmbedderOptions::default()
    };
    Embedder::open(gpu, &data(name), options)
}

/// The bytes are those that the library keeps of the whole matrices.
#[test]
fn vectors_are_those_of_the_folder_opened_as_int8() {
    for gpu in both() {
        let whole = opened(&gpu, "tiny-model", Storage::Int8).unwrap();
        let converted = opened(&gpu, CONVERTED, Storage::Auto).unwrap();
        assert_eq!(converted.dtype(), Storage::Int8);
        let fidelity = converted.fidelity().unwrap();
        assert!((0.999..1.0).contains(&fidelity), "{fidelity}");
        for text in ["the cat sat on the mat", "a dog ran", ""] {
            let [expected, found] = [&whole, &converted].map(|it| it.embed(text).wait().unwrap());
            assert!(bits(&expected) == bits(&found), "{text}");
        }
    }
}

#[test]
fn bits_that_are_gone_are_not_given() {
    for gpu in both() {
        for dtype in [Storage::F32, Storage::F16, Storage::Bf16] {
            let error = opened(&gpu, CONVERTED, dtype).unwrap_err();
            assert_eq!(error.code(), Code::Unsupported);
            let said = error.to_string();
            assert!(said.contains("is stored as int8"), "{said}");
        }
    }
}

/// A folder whose matrices are blocks of int4 and of int8.
#[test]
fn a_folder_of_int4_is_as_near_as_it_says() {
    for gpu in both() {
        let whole = opened(&gpu, "tiny-model", Storage::F32).unwrap();
        let before = gpu.stats().tensors;
        for dtype in [Storage::Auto, Storage::Int4] {
            let converted = opened(&gpu, "tiny-model-int4", dtype).unwrap();
            assert_eq!(converted.dtype(), Storage::Int4);
            let fidelity = converted.fidelity().unwrap();
            assert!((0.99..0.9999).contains(&fidelity), "{fidelity}");
            let bytes = gpu.stats().tensors;
            assert!(bytes.int4 > before.int4 && bytes.int8 > before.int8);
            let text = "the cat sat on the mat";
            let [expected, found] = [&whole, &converted].map(|it| it.embed(text).wait().unwrap());
            let expected: Vec<f64> = expected.iter().map(|x| f64::from(*x)).collect();
            assert!(cosine(&found, &expected) >= 0.98, "{text}");
        }
        for dtype in [Storage::F32, Storage::Int8] {
            let said = opened(&gpu, "tiny-model-int4", dtype)
                .unwrap_err()
                .to_string();
            assert!(said.contains("is stored as int4"), "{said}");
        }
    }
}

/// A change of the file of references.
type Change = fn(&mut Value);

/// What opening says of a folder with this change.
fn changed(gpu: &Gpu, change: impl FnOnce(&mut Value)) -> Result<Embedder, Error> {
    opened_as(gpu, change, EmbedderOptions::default())
}

fn opened_as(
    gpu: &Gpu,
    change: impl FnOnce(&mut Value),
    options: EmbedderOptions,
) -> Result<Embedder, Error> {
    let names = [
        "config.json",
        "model.safetensors",
        "modules.json",
        "vocab.txt",
        "1_Pooling/config.json",
        "sentence_bert_config.json",
        "framebatch.json",
    ];
    let mut files = Vec::new();
    for name in names {
        if let Ok(content) = fs::read(data(CONVERTED).join(name)) {
            files.push((name, content));
        }
    }
    let (_, references) = files.last_mut().unwrap();
    let mut value: Value = serde_json::from_slice(references).unwrap();
    change(&mut value);
    *references = value.to_string().into_bytes();
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, content)| (*name, &content[..]))
        .collect();
    let options = EmbedderOptions {
        dtype: Storage::Auto,
        ..options
    };
    Embedder::open(gpu, &files[..], options)
}

#[test]
fn vectors_that_changed_are_found() {
    for gpu in both() {
        let other = |value: &mut Value| value["references"][0]["vector"][0] = json!(5);
        let error = changed(&gpu, other).unwrap_err();
        assert_eq!(error.code(), Code::Unsupported);
        assert!(
            error
                .to_string()
                .contains("as int8 the model gives other vectors")
        );
        let untested = EmbedderOptions {
            verify: false,
            ..EmbedderOptions::default()
        };
        let untested = opened_as(&gpu, other, untested).unwrap();
        assert_eq!(untested.fidelity(), None);
        let none = changed(&gpu, |value| value["references"] = json!([]));
        assert_eq!(none.unwrap().fidelity(), None);
    }
}

#[test]
fn references_that_make_no_sense_are_refused_by_field() {
    let gpu = both().into_iter().next().unwrap();
    let cases: [(Change, &str); 5] = [
        (|it| *it = json!([]), "framebatch.json: must be an object"),
        (
            |it| it["references"] = json!(3),
            "references must be a list",
        ),
        (
            |it| it["references"][1]["ids"] = json!([]),
            "references[1]: ids must be 1 to 40 tokens below 128",
        ),
        (
            |it| it["references"][0]["ids"][0] = json!(128),
            "references[0]: ids must be",
        ),
        (
            |it| it["references"][0]["vector"] = json!([1, 2]),
            "references[0]: vector must have 64 numbers",
        ),
    ];
    for (change, expected) in cases {
        let error = changed(&gpu, change).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(expected), "{error}");
    }
}
