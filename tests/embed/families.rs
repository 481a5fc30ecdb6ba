//! Encoders of all families beside transformers in float64: `tests/embed/make_models.py` made the
//! models and their vectors.

use std::path::PathBuf;

use framebatch::{Code, Embedder, EmbedderOptions, EngineChoice, Gpu, Preset, Storage};
use serde_json::Value;

use crate::engines::{both, both_manual, open};
use crate::model::data;
use crate::nearness::{cosine, farthest};
use crate::values::{DTYPES, bits};

pub(crate) const FAMILIES: [&str; 13] = [
    "bert-dense",
    "roberta",
    "distilbert",
    "mpnet",
    "modernbert",
    "nomic-bert",
    "gte",
    "jina-v2",
    "jina-v3",
    "qwen3",
    "gemma3",
    "gemma3-causal",
    "embedding-gemma2",
];

fn home(name: &str) -> PathBuf {
    data("models").join(name)
}

/// What a model's oracle says.
pub(crate) fn oracle(name: &str) -> Value {
    let text = std::fs::read_to_string(home(name).join("oracle.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn floats(value: &Value) -> Vec<f64> {
    let floats = value.as_array().unwrap().iter();
    floats.map(|float| float.as_f64().unwrap()).collect()
}

/// The ids and the vector of each text in a list of the oracle.
fn texts(oracle: &Value, list: &str) -> Vec<(Vec<u32>, Vec<f64>)> {
    let texts = oracle[list].as_array().unwrap().iter();
    let texts = texts.map(|text| {
        let ids = floats(&text["ids"]).into_iter().map(|id| id as u32);
        (ids.collect(), floats(&text["vector"]))
    });
    texts.collect()
}

fn opened(gpu: &Gpu, name: &str, dtype: Storage, dimensions: Option<u32>) -> Embedder {
    let options = EmbedderOptions {
        dtype,
        dimensions,
        // The self-test of storage has tests of its own.
        verify: false,
        ..EmbedderOptions::default()
    };
    Embedder::open(gpu, &home(name), options).unwrap()
}

/// The vectors are those of another library, and the bits of a text are the same alone and among
/// others.
#[test]
fn encoders_of_all_families_are_those_of_transformers() {
    for gpu in both_manual() {
        for name in FAMILIES {
            let oracle = oracle(name);
            let texts = texts(&oracle, "texts");
            // Models of drawn weights are too small for int4: their vectors say little of it.
            for dtype in DTYPES.into_iter().filter(|it| *it != Storage::Int4) {
                let embedder = opened(&gpu, name, dtype, None);
                let embed = |texts: &[(Vec<u32>, Vec<f64>)]| -> Vec<Vec<f32>> {
                    let calls = texts.iter().map(|(ids, _)| embedder.embed_ids(ids));
                    let calls: Vec<_> = calls.collect();
                    gpu.flush();
                    calls.into_iter().map(|call| call.wait().unwrap()).collect()
                };
                let vectors = embed(&texts);
                for (at, ((ids, exact), vector)) in texts.iter().zip(&vectors).enumerate() {
                    let what = format!("{name}, {} tokens, {dtype:?}", ids.len());
                    hold(&what, dtype, vector, exact);
                    if dtype == Storage::F32 {
                        let alone = embed(&texts[at..=at]);
                        assert!(bits(&alone[0]) == bits(vector), "{what}: alone");
                    }
                }
            }
        }
    }
}

fn hold(what: &str, dtype: Storage, given: &[f32], exact: &[f64]) {
    let (apart, cosine) = (farthest(given, exact), cosine(given, exact));
    // Vectors that are not normalized are a few times as long.
    let length = exact.iter().map(|x| x * x).sum::<f64>().sqrt().max(1.0);
    let is_near = match dtype {
        Storage::F32 => apart <= 2e-6 * length,
        Storage::F16 | Storage::Bf16 => cosine >= 0.9999,
        Storage::Int8 => cosine >= 0.999,
        Storage::Int4 | Storage::Auto => unreachable!("tests say what they want"),
    };
    assert!(is_near, "{what}: {apart:e} apart, cosine {cosine}");
}

#[test]
fn vectors_are_cut_and_normalized_again() {
    for gpu in both() {
        for name in FAMILIES {
            let oracle = oracle(name);
            let dimensions = u32::try_from(oracle["dimensions"].as_u64().unwrap()).unwrap();
            let embedder = opened(&gpu, name, Storage::F32, Some(dimensions));
            assert_eq!(embedder.config().dimensions(), dimensions);
            for (ids, exact) in texts(&oracle, "cut") {
                let vector = embedder.embed_ids(&ids).wait().unwrap();
                hold(name, Storage::F32, &vector, &exact);
                let tensor = embedder.compute_ids(&ids).unwrap();
                assert_eq!(tensor.shape(), [dimensions]);
            }
        }
    }
}

#[test]
fn dimensions_that_a_model_has_not_are_refused() {
    let gpu = open(EngineChoice::Cpu, Preset::Eager.config());
    for dimensions in [0, 48, 49] {
        let options = EmbedderOptions {
            dimensions: Some(dimensions),
            ..EmbedderOptions::default()
        };
        let error = Embedder::open(&gpu, &home("roberta"), options).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        let expected = format!(
            "dimensions must be a whole number from 1 and below the model's 48, got {dimensions}"
        );
        assert_eq!(error.to_string(), expected);
    }
}
