//! Rerankers beside transformers in float64.

use framebatch::{
    Code, EngineChoice, Gpu, Gpus, ModelFiles, Preset, Ranked, Reranker, RerankerOptions, Storage,
};
use serde_json::Value;

use crate::engines::{both_manual, manual, open};
use crate::families::oracle;
use crate::model::{TINY, data, folder};
use crate::values::DTYPES;

const MODELS: [(&str, &str); 6] = [
    ("reranker-bert", "score"),
    // Their configurations ask for what the head gives as it is.
    ("reranker-xlm-roberta", "logit"),
    ("reranker-modernbert", "logit"),
    ("reranker-gte", "logit"),
    ("reranker-qwen3", "score"),
    // Without a head: by the logits of two words.
    ("reranker-qwen3-logits", "score"),
];

fn opened(gpus: &(impl AsRef<[Gpu]> + ?Sized), name: &str, dtype: Storage) -> Reranker {
    let options = RerankerOptions {
        dtype,
        // The self-test of storage has tests of its own.
        verify: false,
    };
    Reranker::open(gpus, &data("models").join(name), options).unwrap()
}

fn pairs(oracle: &Value) -> Vec<(String, String)> {
    let pairs = oracle["pairs"].as_array().unwrap().iter();
    let text = |pair: &Value, name: &str| pair[name].as_str().unwrap().to_string();
    pairs
        .map(|pair| (text(pair, "query"), text(pair, "document")))
        .collect()
}

fn exact(oracle: &Value, field: &str) -> Vec<f64> {
    let pairs = oracle["pairs"].as_array().unwrap().iter();
    pairs.map(|pair| pair[field].as_f64().unwrap()).collect()
}

fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|score| score.to_bits()).collect()
}

#[test]
fn scores_are_those_of_transformers_alone_and_together() {
    for gpu in both_manual() {
        for (name, field) in MODELS {
            let oracle = oracle(name);
            let (pairs, exact) = (pairs(&oracle), exact(&oracle, field));
            for dtype in DTYPES {
                let reranker = opened(&gpu, name, dtype);
                let score = |pairs: &[(String, String)]| {
                    let scores = reranker.score(pairs);
                    gpu.flush();
                    scores.wait().unwrap()
                };
                let before = gpu.stats().batches;
                let scores = score(&pairs);
                assert_eq!(gpu.stats().batches - before, 1, "{name}: one pass");
                let most = match dtype {
                    Storage::F32 => 5e-6,
                    Storage::F16 => 5e-3,
                    // Models of drawn weights are too small for four bits.
                    Storage::Int4 => f64::INFINITY,
                    _ => 5e-2,
                };
                for (at, (score_of_all, exact)) in scores.iter().zip(&exact).enumerate() {
                    let apart = (f64::from(*score_of_all) - exact).abs();
                    assert!(
                        apart <= most,
                        "{name}, pair {at}, {dtype:?}: {apart:e} apart"
                    );
                    let alone = score(&pairs[at..=at]);
                    assert_eq!(bits(&alone), bits(&scores[at..=at]), "{name}, pair {at}");
                }
            }
        }
    }
}

#[test]
fn documents_are_ranked_best_first() {
    let gpu = open(EngineChoice::Cpu, Preset::Eager.config());
    let reranker = opened(&gpu, "reranker-bert", Storage::F32);
    let documents = ["cat", "the fog", "cat", "a dog ran", ""];
    let pairs = documents.map(|document| ("where do cats sleep?", document));
    let scores = reranker.score(&pairs).wait().unwrap();
    let ranking = reranker.rank("where do cats sleep?", &documents, usize::MAX);
    let ranked: Vec<Ranked> = ranking.wait().unwrap();
    let mut expected: Vec<usize> = (0..documents.len()).collect();
    expected.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    let order: Vec<usize> = ranked.iter().map(|one| one.index).collect();
    assert_eq!(order, expected);
    assert!(ranked.iter().all(|one| one.score == scores[one.index]));
    let best = reranker.rank("where do cats sleep?", &documents, 2);
    assert_eq!(best.wait().unwrap(), ranked[..2]);
    let none: [&str; 0] = [];
    assert_eq!(reranker.rank("cats", &none, 3).wait().unwrap(), []);
}

#[test]
fn several_sessions_share_pairs() {
    let gpus = [0, 1].map(|_| open(EngineChoice::Cpu, manual()));
    let alone = opened(&gpus[0], "reranker-bert", Storage::F32);
    let pairs = pairs(&oracle("reranker-bert"));
    let score = |reranker: &Reranker| {
        let scores = reranker.score(&pairs);
        gpus.iter().for_each(Gpu::flush);
        scores.wait().unwrap()
    };
    let expected = score(&alone);
    let both = Gpus::new(gpus.to_vec()).unwrap();
    let reranker = opened(&both, "reranker-bert", Storage::F32);
    assert_eq!(bits(&score(&reranker)), bits(&expected));
    let counts = reranker.stats();
    assert!(counts.iter().all(|count| count.texts > 0), "{counts:?}");
}

#[test]
fn what_is_no_reranker_is_refused() {
    let gpu = open(EngineChoice::Cpu, Preset::Eager.config());
    let model = data("models").join("reranker-bert");
    let read = |name: &str| std::fs::read(model.join(name)).unwrap();
    let config = String::from_utf8(read("config.json")).unwrap();
    let refusal = |from: &str, to: &str| {
        assert!(config.contains(from), "{from}");
        let config = config.replace(from, to);
        let files = [
            ("config.json", config.as_bytes()),
            ("model.safetensors", &read("model.safetensors")),
            ("vocab.txt", &read("vocab.txt")),
        ];
        Reranker::open(&gpu, ModelFiles::Bytes(&files), RerankerOptions::default()).unwrap_err()
    };
    for (from, to, expected) in [
        (
            "\"0\": \"LABEL_0\"",
            "\"0\": \"LABEL_0\", \"1\": \"LABEL_1\"",
            "config.json: id2label is {\"0\":\"LABEL_0\",\"1\":\"LABEL_1\"}, and only one label is known",
        ),
        (
            "BertForSequenceClassification",
            "BertModel",
            "config.json: architectures is [\"BertModel\"], and only models for sequence classification are rerankers",
        ),
        (
            "\"bert\"",
            "\"mpnet\"",
            "config.json: model_type is \"mpnet\", and only bert, roberta, xlm-roberta, modernbert, gte, new and qwen3 are known as rerankers",
        ),
        (
            "\"id2label\"",
            "\"sbert_ce_default_activation_function\": \"torch.nn.Mish\", \"id2label\"",
            "config.json: sbert_ce_default_activation_function is \"torch.nn.Mish\", and only Identity",
        ),
    ] {
        let error = refusal(from, to);
        assert_eq!(error.code(), Code::Unsupported, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let files = folder(&TINY, safetensors::Dtype::F32);
    let files: Vec<(&str, &[u8])> = (files.0.iter())
        .map(|(name, bytes)| (&name[..], &bytes[..]))
        .collect();
    let error = Reranker::open(&gpu, &files[..], RerankerOptions::default()).unwrap_err();
    assert!(error.to_string().contains("num_labels"), "{error}");
}
