//! Folders that the library converts: what `framebatch convert` made of the same models, which is in
//! `tests/data`.

use std::fs;
use std::path::{Path, PathBuf};

use framebatch::{
    Code, Embedder, EmbedderOptions, EngineChoice, Preset, Reranker, RerankerOptions, Storage,
    convert,
};
use safetensors::SafeTensors;
use serde_json::Value;

use crate::engines::{both, open};
use crate::model::data;

/// A folder of this name that is not there.
fn place(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("converted")
        .join(name);
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    path
}

/// The names, types, shapes and bytes of a folder's tensors.
fn tensors(folder: &Path) -> Vec<(String, String, Vec<usize>, Vec<u8>)> {
    let bytes = fs::read(folder.join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut all: Vec<_> = tensors.iter().collect();
    all.sort_by_key(|(name, _)| (*name).to_string());
    all.into_iter()
        .map(|(name, view)| {
            let dtype = format!("{:?}", view.dtype());
            (
                name.into(),
                dtype,
                view.shape().to_vec(),
                view.data().to_vec(),
            )
        })
        .collect()
}

fn references(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("framebatch.json")).unwrap()).unwrap()
}

#[test]
fn tensors_are_those_that_the_command_writes() {
    let gpu = open(EngineChoice::Cpu, Preset::Eager.config());
    for (storage, name) in [
        (Storage::Int8, "tiny-model-int8"),
        (Storage::Int4, "tiny-model-int4"),
    ] {
        let to = place(name);
        let done = convert(&gpu, data("tiny-model"), &to, storage).unwrap();
        assert!(tensors(&to) == tensors(&data(name)), "{name}");
        let size = |folder: PathBuf| {
            fs::metadata(folder.join("model.safetensors"))
                .unwrap()
                .len()
        };
        assert_eq!(done.bytes_before, size(data("tiny-model")));
        assert_eq!(done.bytes, size(to.clone()));
        let (found, expected) = (references(&to), references(&data(name)));
        assert_eq!(found["storage"], expected["storage"]);
        let lists = [&found, &expected].map(|it| it["references"].as_array().unwrap());
        assert_eq!(lists[0].len(), lists[1].len());
        for (found, expected) in lists[0].iter().zip(lists[1]) {
            assert_eq!(found["ids"], expected["ids"]);
            let [found, expected] = [found, expected].map(|it| it["vector"].as_array().unwrap());
            for (a, b) in found.iter().zip(expected) {
                assert!((a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-5);
            }
        }
        assert_eq!(done.layers_as_int8.is_some(), storage == Storage::Int4);
        assert!(done.fidelity.unwrap() >= 0.99);
    }
}

#[test]
fn a_converted_folder_is_loaded_as_any_other() {
    for gpu in both() {
        for (from, is_reranker) in [("models/bert-dense", false), ("models/reranker-bert", true)] {
            let to = place(&format!("{:?}-{is_reranker}", gpu.info().engine));
            let done = convert(&gpu, data(from), &to, Storage::Int8).unwrap();
            assert_eq!(done.fidelity.is_none(), is_reranker);
            assert!(done.bytes < done.bytes_before);
            if is_reranker {
                let options = RerankerOptions {
                    dtype: Storage::Auto,
                    ..RerankerOptions::default()
                };
                let reranker = Reranker::open(&gpu, &to, options).unwrap();
                let scores = reranker.score(&[("a cat", "cats sleep")]).wait().unwrap();
                assert!((0.0..=1.0).contains(&scores[0]));
                continue;
            }
            let options = EmbedderOptions {
                dtype: Storage::Auto,
                ..EmbedderOptions::default()
            };
            let embedder = Embedder::open(&gpu, &to, options).unwrap();
            assert!(embedder.fidelity() == done.fidelity && done.fidelity < Some(1.0));
        }
    }
}

#[test]
fn what_cannot_be_converted_leaves_nothing() {
    let gpu = open(EngineChoice::Cpu, Preset::Eager.config());
    let occupied = place("occupied");
    fs::create_dir_all(&occupied).unwrap();
    fs::write(occupied.join("mine.txt"), "mine").unwrap();
    let no_weights = place("no-weights");
    fs::create_dir_all(&no_weights).unwrap();
    let config = data("tiny-model").join("config.json");
    fs::copy(config, no_weights.join("config.json")).unwrap();
    let tiny = data("tiny-model");
    for (from, to, storage, expected) in [
        (
            tiny.clone(),
            place("f16"),
            Storage::F16,
            "give Storage::Int8 or Storage::Int4, got F16",
        ),
        (
            data("tiny-model-int8"),
            place("twice"),
            Storage::Int8,
            "was converted already",
        ),
        (
            tiny.clone(),
            occupied.clone(),
            Storage::Int8,
            "is there already, with files",
        ),
        (
            data("models/reranker-bert"),
            place("pairs"),
            Storage::Int4,
            "is a reranker",
        ),
        (
            no_weights,
            place("none"),
            Storage::Int8,
            "model.safetensors: is missing",
        ),
        (
            place("nowhere"),
            place("nothing"),
            Storage::Int8,
            "nowhere: ",
        ),
    ] {
        let error = convert(&gpu, &from, &to, storage).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(to.exists(), to == occupied, "{expected}");
    }
    assert_eq!(
        fs::read_to_string(occupied.join("mine.txt")).unwrap(),
        "mine"
    );
}
