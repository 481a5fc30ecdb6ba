//! The real model on the texts of a reference: what a float64 implementation in
//! NumPy made of them. `make model` fetches it.

use std::path::Path;

use framebatch::{Embedder, EmbedderOptions, Gpu, Storage};
use serde_json::Value;

use crate::engines::both;
use crate::model::data;
use crate::values::hold;

struct Sample {
    text: String,
    ids: Vec<u32>,
    embedding: Vec<f64>,
}

fn samples() -> Vec<Sample> {
    let lines = std::fs::read_to_string(data("minilm-reference.jsonl")).unwrap();
    let sample = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let list = |name: &str| value[name].as_array().unwrap().iter();
        Sample {
            text: value["text"].as_str().unwrap().into(),
            ids: list("ids").map(|id| id.as_u64().unwrap() as u32).collect(),
            embedding: list("embedding").map(|x| x.as_f64().unwrap()).collect(),
        }
    };
    lines.lines().map(sample).collect()
}

fn open(gpu: &Gpu, dtype: Storage) -> Embedder {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/models/minilm"));
    assert!(folder.exists(), "the model is not there; run `make model`");
    let options = EmbedderOptions {
        dtype,
        ..EmbedderOptions::default()
    };
    Embedder::open(gpu, folder, options).unwrap()
}

#[test]
fn minilm_is_as_its_reference() {
    let samples = samples();
    assert_eq!(samples.len(), 35);
    for gpu in both() {
        for dtype in [Storage::F32, Storage::F16, Storage::Int8] {
            let embedder = open(&gpu, dtype);
            for Sample { text, ids, .. } in &samples {
                assert_eq!(embedder.ids(text).unwrap(), *ids, "{text:?}");
            }
            let calls = samples.iter().map(|sample| embedder.embed(&sample.text));
            let calls: Vec<_> = calls.collect();
            for (sample, call) in samples.iter().zip(calls) {
                let what = format!("{:?} on {:?}", sample.text, gpu.info().engine);
                hold(&what, dtype, &call.wait().unwrap(), &sample.embedding);
            }
        }
    }
}
