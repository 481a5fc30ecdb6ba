//! What is wrong with the files of a model is told by file, field and tensor, and
//! leaves nothing behind.

use std::path::Path;

use framebatch::embed::Config;
use framebatch::{Code, Embedder, EmbedderOptions, EngineChoice, Gpu, Preset, Storage};
use safetensors::tensor::Dtype;
use serde_json::{Value, json};

use crate::engines::open;
use crate::model::{Files, Part, TINY, data, folder, ids, parts, safetensors};

fn gpu() -> Gpu {
    open(EngineChoice::Cpu, Preset::Eager.config())
}

/// The tiny model after a change.
fn changed(change: impl FnOnce(&mut Files)) -> Files {
    let mut files = folder(&TINY, Dtype::F32);
    change(&mut files);
    files
}

fn replaced(name: &str, from: &str, to: &str) -> Files {
    changed(|files| {
        let text = String::from_utf8(files.get(name).to_vec()).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        files.set(name, text.replace(from, to));
    })
}

fn without(name: &str) -> Files {
    changed(|files| files.0.retain(|(known, _)| known != name))
}

/// A header and no data behind it.
fn header(json: &str) -> Files {
    let length = (json.len() as u64).to_le_bytes();
    changed(|files| files.set("model.safetensors", [&length, json.as_bytes()].concat()))
}

const WEIGHTS: &str = "model.safetensors";

/// Nothing of a model stays that is refused, with a sentence that holds this.
fn check(cases: Vec<(Files, &str)>) {
    check_code(Code::InvalidInput, cases);
}

fn check_code(code: Code, cases: Vec<(Files, &str)>) {
    let gpu = gpu();
    for (files, expected) in cases {
        let error = match files.open(&gpu, Storage::F32) {
            Err(error) => error,
            Ok(_) => panic!("nothing was refused where {expected:?} should be"),
        };
        assert_eq!(error.code(), code, "{error}");
        let error = error.to_string();
        assert!(error.contains(expected), "{error}\n  is not {expected}");
        let stayed = gpu.stats().tensors.sum();
        assert_eq!(stayed, 0, "{expected}: something stayed");
    }
}

#[test]
fn a_description_that_makes_no_sense_is_refused() {
    let config = |from, to| replaced("config.json", from, to);
    check(vec![
        (without("config.json"), "config.json is missing"),
        (
            without("1_Pooling/config.json"),
            "1_Pooling/config.json is missing, which modules.json names",
        ),
        (
            changed(|files| files.set("config.json", "{")),
            "config.json is no JSON: it ends too early at byte 1",
        ),
        (
            changed(|files| files.set("config.json", [0xff, 0xfe])),
            "config.json is no JSON: expected a value at byte 0",
        ),
        (
            config("\"hidden_size\": 64", "\"hidden_size\": 65"),
            "num_attention_heads must divide hidden_size 65 into heads of at most 512 floats, got 2",
        ),
        (
            config("\"hidden_size\": 64", "\"hidden_size\": -1"),
            "config.json: hidden_size must be a whole number from 1 to 65536, got -1",
        ),
        (
            config("\"vocab_size\": 128", "\"x\": 0"),
            "config.json: vocab_size must be a whole number from 1 to 16777216, got nothing",
        ),
        (
            config("1e-12", "\"small\""),
            "layer_norm_eps must be a number from 0, got \"small\"",
        ),
        (
            replaced("sentence_bert_config.json", "40", "1"),
            "max_seq_length must be a whole number from 2, got 1",
        ),
        (
            replaced("modules.json", "Normalize\"", "Dense\""),
            "2_Dense/config.json is missing, which modules.json names",
        ),
    ]);
}

#[test]
fn a_model_of_another_kind_is_told_what_is_known() {
    let config = |from, to| replaced("config.json", from, to);
    check_code(
        Code::Unsupported,
        vec![
            (
                config("\"bert\"", "\"t5\""),
                "config.json: model_type is \"t5\", and only bert, roberta, xlm-roberta, distilbert, mpnet, modernbert, nomic_bert, gte, new, jina_embeddings_v3, qwen3, gemma3_text, embedding_gemma2_text are known",
            ),
            (
                config("\"gelu\"", "\"quick_gelu\""),
                "config.json: hidden_act is \"quick_gelu\", and only gelu,",
            ),
            (
                config("absolute", "relative_key"),
                "config.json: position_embedding_type is \"relative_key\", and only \"absolute\" is known",
            ),
            (
                replaced("modules.json", "Normalize\"", "Asym\""),
                "modules.json is [[\"Transformer\",\"\"],[\"Pooling\",\"1_Pooling\"],[\"Asym\",\"2_Asym\"…, and only Transformer",
            ),
            (
                replaced(
                    "1_Pooling/config.json",
                    "cls_token\": false",
                    "max_tokens\": true",
                ),
                "1_Pooling/config.json: pooling_mode is [\"mean_tokens\",\"max_tokens\"], and only one of",
            ),
        ],
    );
}

#[test]
fn a_weight_file_that_is_cut_or_hostile_is_refused() {
    let whole = folder(&TINY, Dtype::F32).get(WEIGHTS).to_vec();
    let file = |bytes: &[u8]| changed(|files| files.set(WEIGHTS, bytes));
    let overlap = r#"{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}}"#;
    let huge = r#"{"a":{"dtype":"F32","shape":[9223372036854775807,8],"data_offsets":[0,16]}}"#;
    let one = |offsets: &str| {
        header(&format!(
            r#"{{"a":{{"dtype":"F32","shape":[4],"data_offsets":[{offsets}]}}}}"#
        ))
    };
    let (short, not_good) = (
        "is shorter than the length of its header",
        "its header is not good",
    );
    let other_length = "bytes of data, but its header speaks of";
    check(vec![
        (without(WEIGHTS), "model.safetensors: is missing"),
        (file(&[]), short),
        (file(&whole[..7]), short),
        (file(&whole[..100]), "is longer than the file"),
        (
            file(&[0xff; 64]),
            "its header of 18446744073709551615 bytes is longer",
        ),
        (file(&whole[..whole.len() - 1]), other_length),
        (file(&[&whole[..], &[0]].concat()), other_length),
        (header("[1, 2"), not_good),
        (header(overlap), not_good),
        (header(huge), not_good),
        (one("0,15"), not_good),
        (one("16,0"), not_good),
        (
            one("0,16"),
            "has 0 bytes of data, but its header speaks of 16",
        ),
        (
            header("{}"),
            "tensor embeddings.word_embeddings.weight is missing",
        ),
    ]);
}

#[test]
fn tensors_that_do_not_suit_the_sizes_are_refused() {
    let with = |change: &dyn Fn(&mut Vec<Part>)| {
        let mut parts = parts(&TINY);
        change(&mut parts);
        changed(|files| files.set(WEIGHTS, safetensors(&parts, Dtype::F32, "")))
    };
    let integers = changed(|files| {
        let mut bytes = files.get(WEIGHTS).to_vec();
        let find = |bytes: &[u8]| bytes.windows(5).position(|five| five == b"\"F32\"");
        while let Some(at) = find(&bytes) {
            bytes[at..at + 5].copy_from_slice(b"\"I32\"");
        }
        files.set(WEIGHTS, bytes);
    });
    check(vec![
        (
            with(&|parts| drop(parts.remove(7))),
            "tensor encoder.layer.0.attention.self.value.weight is missing",
        ),
        (
            with(&|parts| parts[0].dims = vec![64, 128]),
            "tensor embeddings.word_embeddings.weight has shape [64, 128], but by config.json it must have [128, 64]",
        ),
        (
            with(&|parts| parts[0].dims = vec![128 * 64]),
            "has shape [8192]",
        ),
        (integers, "has elements of I32; F32, F16 and BF16 are read"),
    ]);
}

#[test]
fn what_a_dtype_cannot_hold_leaves_nothing() {
    let gpu = gpu();
    let mut parts = parts(&TINY);
    let last = parts.iter().rposition(|part| part.dims.len() == 2).unwrap();
    parts[last].floats[3] = f32::NAN;
    let files =
        changed(|files| files.set("model.safetensors", safetensors(&parts, Dtype::F32, "")));
    let error = files.open(&gpu, Storage::Int8).unwrap_err();
    assert!(error.to_string().contains(&parts[last].name), "{error}");
    assert_eq!(gpu.stats().tensors.sum(), 0, "half of it stayed");
}

#[test]
fn a_folder_is_read_as_its_files_are() {
    let gpu = gpu();
    let text = ids(&TINY, 8, 15);
    let from = |embedder: Embedder| embedder.embed_ids(&text).wait().unwrap();
    let open = |name| Embedder::open(&gpu, &data(name), EmbedderOptions::default());
    let of_folder = from(open("tiny-model").unwrap());
    let of_bytes = from(folder(&TINY, Dtype::F32).open(&gpu, Storage::Auto).unwrap());
    assert_eq!(of_folder, of_bytes);
    assert_eq!(
        gpu.stats().tensors.sum(),
        0,
        "a model goes with its last handle"
    );
    let error = open("no-model").unwrap_err().to_string();
    assert!(error.contains("no-model/config.json"), "{error}");
}

/// By the table of paths that tests of the browser's face read too.
#[test]
fn only_files_below_a_folder_are_read() {
    let gpu = gpu();
    let table = std::fs::read_to_string(data("paths.json")).unwrap();
    let table: Value = serde_json::from_str(&table).unwrap();
    let paths = |name: &str| {
        let paths = table[name].as_array().unwrap().iter();
        let paths = paths.map(|path| path.as_str().unwrap().to_string());
        paths.collect::<Vec<String>>()
    };
    let root = std::env::temp_dir().join(format!("framebatch-paths-{}", std::process::id()));
    let model = root.join("model");
    let write = |folder: &Path, name: &str, content: &[u8]| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    let files = folder(&TINY, Dtype::F32);
    for (name, content) in &files.0 {
        write(&model, name, content);
    }
    let pooling = files.get("1_Pooling/config.json");
    // What a path that leaves the folder would find.
    for outside in [&root, &root.join("outside")] {
        write(outside, "config.json", pooling);
    }
    let open = |path: &str| {
        let kinds = [("", "Transformer"), (path, "Pooling")];
        let modules = kinds.map(|(path, kind)| json!({ "type": kind, "path": path }));
        write(
            &model,
            "modules.json",
            json!(modules).to_string().as_bytes(),
        );
        Embedder::open(&gpu, &model, EmbedderOptions::default())
    };
    for path in paths("taken") {
        write(&model.join(&path), "config.json", pooling);
        open(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
    let outside = root.join("outside").to_str().unwrap().to_string();
    for path in paths("refused").into_iter().chain([outside]) {
        let error = open(&path).expect_err(&path);
        assert_eq!(error.code(), Code::InvalidInput, "{path:?}");
        let error = error.to_string();
        assert!(
            error.contains("modules.json: [1]: path"),
            "{path:?}: {error}"
        );
    }
    std::fs::remove_dir_all(&root).unwrap();
}

/// The test has a folder in place of a pipe: opening a pipe that nobody writes to would
/// end neither the test nor a program.
#[test]
fn what_is_no_file_is_not_opened() {
    let gpu = gpu();
    let model = std::env::temp_dir().join(format!("framebatch-pipe-{}", std::process::id()));
    std::fs::create_dir_all(model.join("config.json")).unwrap();
    let opened = Embedder::open(&gpu, &model, EmbedderOptions::default());
    let error = opened.unwrap_err().to_string();
    let expected = "config.json: is a folder or a device, not a file";
    assert!(error.contains(expected), "{error}");
    std::fs::remove_dir_all(&model).unwrap();
}

#[test]
fn prompts_are_those_of_the_folder() {
    const NAME: &str = "config_sentence_transformers.json";
    let gpu = gpu();
    let with = |json: &str| changed(|files| files.set(NAME, json)).open(&gpu, Storage::F32);
    let embedder = with(r#"{"prompts": {"query": "query: ", "passage": "passage: "}}"#).unwrap();
    assert_eq!(embedder.prompt("query"), Some("query: "));
    assert_eq!(embedder.prompt("passage"), Some("passage: "));
    assert_eq!(embedder.prompt("document"), None);
    assert_eq!(with("{}").unwrap().prompt("query"), None);
    for wrong in [r#"{"prompts": 1}"#, r#"{"prompts": {"query": 1}}"#] {
        let error = with(wrong).unwrap_err().to_string();
        assert!(error.contains(NAME) && error.contains("prompts"), "{error}");
    }
}

#[test]
fn ids_are_checked() {
    let gpu = gpu();
    let embedder = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
    let cases: [(&[u32], &str); 3] = [
        (&[], "there are no ids"),
        (&[1; 41], "41 ids are more than the 40 that the model takes"),
        (&[5, 128], "id 128 is not below 128"),
    ];
    for (ids, expected) in cases {
        let error = embedder.embed_ids(ids).wait().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    gpu.dispose();
    let error = embedder.embed_ids(&[1]).wait().unwrap_err();
    assert_eq!(error.code(), Code::Disposed);
}

#[test]
fn padding_of_roberta_is_no_part_of_a_text() {
    let gpu = gpu();
    // [MASK] is the fourth token.
    let config = Config {
        first_position: 5,
        ..TINY
    };
    let embedder = folder(&config, Dtype::F32).open(&gpu, Storage::F32);
    let embedder = embedder.unwrap();
    let text = embedder.embed("a [MASK]").wait().unwrap_err();
    let ids = embedder.embed_ids(&[2, 5, 4, 3]).wait().unwrap_err();
    for (about, error) in [("embed", text), ("embed_ids", ids)] {
        let expected = format!("{about}: id 4 is the model's padding");
        assert!(error.to_string().contains(&expected), "{error}");
    }
    assert_eq!(embedder.embed("a").wait().unwrap().len(), 64);
    let bert = folder(&TINY, Dtype::F32).open(&gpu, Storage::F32).unwrap();
    assert_eq!(bert.embed_ids(&[2, 0, 3]).wait().unwrap().len(), 64);
}
