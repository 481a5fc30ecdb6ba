//! The self-test of storage in fewer bits: its cosine is that of whole passes, it changes nothing,
//! and what is too far off is refused.

use framebatch::embed::{MOST_TOKENS, TEXTS};
use framebatch::{
    Code, Embedder, EmbedderOptions, EngineChoice, Gpu, Preset, Reranker, RerankerOptions, Storage,
};
use safetensors::tensor::Dtype;

use crate::engines::{both, open};
use crate::families::FAMILIES;
use crate::model::{Files, TINY, data, folder, parts, safetensors};
use crate::values::DTYPES;

fn tested(dtype: Storage) -> EmbedderOptions {
    EmbedderOptions {
        dtype,
        ..EmbedderOptions::default()
    }
}

fn untested(dtype: Storage) -> EmbedderOptions {
    EmbedderOptions {
        verify: false,
        ..tested(dtype)
    }
}

/// The vectors of the texts that storage is tested by, by whole passes.
fn vectors(embedder: &Embedder) -> Vec<Vec<f32>> {
    let most = MOST_TOKENS.min(embedder.config().max_tokens) as usize;
    let vector = |text: &&str| {
        let mut ids = embedder.ids(text).unwrap();
        if ids.len() > most {
            // The last one stands behind every text.
            ids.drain(most - 1..ids.len() - 1);
        }
        embedder.embed_ids(&ids).wait().unwrap()
    };
    TEXTS.iter().map(vector).collect()
}

pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
        products.sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn least(gpu: &Gpu, name: &str, dtype: Storage) -> f64 {
    let [whole, kept] = [Storage::F32, dtype].map(|dtype| {
        let model = data("models").join(name);
        vectors(&Embedder::open(gpu, &model, untested(dtype)).unwrap())
    });
    let pairs = whole.iter().zip(&kept);
    pairs.map(|(a, b)| cosine(a, b)).fold(1.0, f64::min)
}

/// Each family has its own stages: the cosine of what they give one after another is that of what
/// whole passes give.
#[test]
fn the_cosine_is_that_of_whole_passes() {
    let gpu = open(EngineChoice::Cpu, Preset::Eager.config());
    for name in FAMILIES {
        let model = data("models").join(name);
        for dtype in DTYPES {
            let embedder = match Embedder::open(&gpu, &model, tested(dtype)) {
                Ok(embedder) => embedder,
                // Models of drawn weights are too small for four bits.
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains("as int4 the model gives other"), "{said}");
                    assert!(least(&gpu, name, dtype) < 0.99, "{name}, {dtype:?}");
                    continue;
                }
            };
            let fidelity = f64::from(embedder.fidelity().unwrap());
            let what = format!("{name}, {dtype:?}: {fidelity}");
            if dtype == Storage::F32 {
                assert!(fidelity == 1.0, "{what}");
                continue;
            }
            let expected = least(&gpu, name, dtype);
            assert!(
                expected < 1.0 && (fidelity - expected).abs() < 1e-6,
                "{what}, not {expected}"
            );
        }
        drop(Embedder::open(&gpu, &model, untested(Storage::F16)));
    }
    assert_eq!(gpu.stats().tensors.sum(), 0, "what was tested by stayed");
}

#[test]
fn a_device_of_either_kind_tests_whatever_its_policy_is() {
    for gpu in both() {
        let model = data("models").join("distilbert");
        let calls = gpu.stats().pending;
        let embedder = Embedder::open(&gpu, &model, tested(Storage::Int8)).unwrap();
        let fidelity = embedder.fidelity().unwrap();
        assert!(fidelity > 0.999 && fidelity < 1.0, "{fidelity}");
        assert_eq!(gpu.stats().pending, calls);
    }
    let manual = open(EngineChoice::Cpu, crate::engines::manual());
    let model = data("models").join("reranker-bert");
    let pending = manual.lerp(&[0.0], &[1.0], 0.5);
    for (dtype, verify) in [
        (Storage::Bf16, true),
        (Storage::F32, true),
        (Storage::Bf16, false),
    ] {
        let options = RerankerOptions { dtype, verify };
        let reranker = Reranker::open(&manual, &model, options).unwrap();
        let is_sound = match reranker.fidelity() {
            None => !verify,
            Some(fidelity) => verify && (fidelity == 1.0) == (dtype == Storage::F32),
        };
        assert!(is_sound, "{dtype:?}, {verify}: {:?}", reranker.fidelity());
    }
    assert_eq!(manual.stats().pending, 1, "calls of others wait as before");
    manual.flush();
    assert_eq!(pending.wait().unwrap(), [0.5]);
}

/// A float of each row is a thousand times the others, which 8 bits with a scale for 32 neighbors
/// do not hold; 16 bits do.
fn uneven() -> Files {
    let mut parts = parts(&TINY);
    for part in parts.iter_mut().filter(|part| part.dims.len() == 2) {
        let peak = part
            .floats
            .iter()
            .fold(0.0, |peak: f32, x| peak.max(x.abs()));
        part.floats
            .iter_mut()
            .step_by(32)
            .for_each(|x| *x = 1000.0 * peak);
    }
    let mut files = folder(&TINY, Dtype::F32);
    files.set("model.safetensors", safetensors(&parts, Dtype::F32, ""));
    files
}

#[test]
fn storage_that_does_not_hold_is_refused_by_name() {
    let gpu = open(EngineChoice::Cpu, Preset::Eager.config());
    let files = uneven();
    let open = |options| files.open_with(&gpu, options);
    let error = open(tested(Storage::Int8)).unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
    let message = error.to_string();
    for part in [
        "as int8 the model gives other vectors",
        "less than 0.99",
        "verify: false",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(gpu.stats().tensors.sum(), 0, "half of it stayed");
    assert_eq!(open(untested(Storage::Int8)).unwrap().fidelity(), None);
    let fidelity = open(tested(Storage::F16)).unwrap().fidelity().unwrap();
    assert!(fidelity >= 0.99, "{fidelity}");
}

/// Without a tokenizer ids are drawn; bits that a file has already are no loss.
#[test]
fn models_of_ids_alone_and_of_few_bits_are_tested() {
    let gpu = open(EngineChoice::Cpu, Preset::Eager.config());
    let open = |bits, dtype| {
        let mut files = folder(&TINY, bits);
        files
            .0
            .retain(|(name, _)| name != "tokenizer.json" && name != "vocab.txt");
        files
            .open_with(&gpu, tested(dtype))
            .unwrap()
            .fidelity()
            .unwrap()
    };
    // A tokenizer by which some of the texts have no token.
    let mut files = folder(&TINY, Dtype::F32);
    files.0.retain(|(name, _)| name != "vocab.txt");
    let tokenizer = r#"{"added_tokens":[],"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}"#;
    files.set("tokenizer.json", tokenizer);
    let embedder = files.open_with(&gpu, tested(Storage::F16)).unwrap();
    let error = embedder.ids(TEXTS[2]).unwrap_err().to_string();
    assert!(error.contains("no tokens"), "{error}");
    assert!(embedder.fidelity().unwrap() > 0.99);
    assert!(open(Dtype::F16, Storage::F16) == 1.0);
    assert!(open(Dtype::BF16, Storage::Bf16) == 1.0);
    for (bits, dtype) in [(Dtype::F32, Storage::F16), (Dtype::F16, Storage::Int8)] {
        let fidelity = open(bits, dtype);
        assert!(fidelity > 0.99 && fidelity < 1.0, "{bits:?}: {fidelity}");
    }
}
