//! A tiny encoder with random weights, as the files of a Hugging Face folder:
//! 2 layers of 2 heads of 32 floats.
//!
//! What it writes stands in `tests/data/tiny-model` too, for tests in browsers.

use std::path::PathBuf;

use framebatch::Embedder;
use framebatch::embed::{Activation, Biases, Config, Family, Heads, Norms, Pooling, Role, weights};
use framebatch::graph::Precision;
use framebatch::{EmbedderOptions, Error, Gpu, Storage};
use safetensors::tensor::{Dtype, TensorView};

use crate::samples::Samples;

/// The sizes of the tiny encoder.
pub(crate) const TINY: Config = Config {
    family: Family::Bert,
    hidden: 64,
    layers: 2,
    heads: Heads::even(2, 64),
    score_scale: None,
    intermediate: 96,
    activation: Activation::Gelu,
    gate: None,
    norms: Norms::BERT,
    biases: Biases::ALL,
    vocab: 128,
    positions: 48,
    has_position_table: true,
    first_position: 0,
    types: 2,
    word_scale: None,
    per_layer_embedding: None,
    are_layers_scaled: false,
    distance_bias: None,
    rotation: None,
    near: None,
    epsilon: 1e-12,
    pooling: Pooling::Mean,
    dense: Vec::new(),
    answers: None,
    cut: None,
    normalize: true,
    max_tokens: 40,
    precision: Precision::F32,
};

/// A model's files by name.
#[derive(Clone)]
pub(crate) struct Files(pub(crate) Vec<(String, Vec<u8>)>);

impl Files {
    pub(crate) fn set(&mut self, name: &str, content: impl Into<Vec<u8>>) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.into(), content.into()));
    }

    pub(crate) fn get(&self, name: &str) -> &[u8] {
        &self.0.iter().find(|(known, _)| known == name).unwrap().1
    }

    pub(crate) fn open(
        &self,
        gpus: &(impl AsRef<[Gpu]> + ?Sized),
        dtype: Storage,
    ) -> Result<Embedder, Error> {
        let options = EmbedderOptions {
            dtype,
            // The self-test of storage has tests of its own.
            verify: false,
            ..EmbedderOptions::default()
        };
        self.open_with(gpus, options)
    }

    pub(crate) fn open_with(
        &self,
        gpus: &(impl AsRef<[Gpu]> + ?Sized),
        options: EmbedderOptions,
    ) -> Result<Embedder, Error> {
        let files = self.0.iter();
        let files: Vec<(&str, &[u8])> =
            files.map(|(name, bytes)| (&name[..], &bytes[..])).collect();
        Embedder::open(gpus, &files[..], options)
    }
}

/// A tensor of a model file.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) dims: Vec<u32>,
    pub(crate) floats: Vec<f32>,
}

/// Random weights of a sensible size, the same in every run.
pub(crate) fn parts(config: &Config) -> Vec<Part> {
    let mut samples = Samples(4711);
    let mut parts = Vec::new();
    for weight in weights(config) {
        for part in &weight.parts {
            let (name, dims) = (&part.name, part.dims.clone());
            let count = dims.iter().product::<u32>() as usize;
            let is_norm = name.ends_with("LayerNorm.weight");
            let (middle, reach) = match weight.role {
                Role::Matrix if name.starts_with("embeddings") => (0.0, 1.0),
                Role::Matrix => (0.0, 2.0 / (dims[1] as f32).sqrt()),
                Role::Vector if is_norm => (1.0, 0.2),
                _ => (0.0, 0.1),
            };
            let floats = samples.units(count).into_iter();
            parts.push(Part {
                name: name.clone(),
                dims,
                floats: floats
                    .map(|unit| middle + reach * (2.0 * unit - 1.0))
                    .collect(),
            });
        }
    }
    parts
}

/// A safetensors file of these tensors, in any of the formats that are read.
pub(crate) fn safetensors(parts: &[Part], dtype: Dtype, prefix: &str) -> Vec<u8> {
    let bytes = |floats: &[f32]| -> Vec<u8> {
        let each = floats.iter();
        match dtype {
            Dtype::F32 => each.flat_map(|x| x.to_le_bytes()).collect(),
            // The upper half, cut: a value that the format holds exactly.
            Dtype::BF16 => each
                .flat_map(|x| ((x.to_bits() >> 16) as u16).to_le_bytes())
                .collect(),
            Dtype::F16 => each.flat_map(|x| half(*x).to_le_bytes()).collect(),
            other => panic!("{other:?} is not written here"),
        }
    };
    let contents: Vec<Vec<u8>> = parts.iter().map(|part| bytes(&part.floats)).collect();
    let views = parts.iter().zip(&contents).map(|(part, bytes)| {
        let shape = part.dims.iter().map(|dim| *dim as usize).collect();
        let view = TensorView::new(dtype, shape, bytes).unwrap();
        ([prefix, &part.name].concat(), view)
    });
    safetensors::serialize(views, None).unwrap()
}

/// The bits of a 16-bit float near to a number of ordinary size.
fn half(x: f32) -> u16 {
    let bits = x.to_bits();
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
    if exponent <= 0 {
        return (bits >> 16 & 0x8000) as u16;
    }
    (bits >> 16 & 0x8000) as u16 | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16
}

/// The folder of an encoder of these sizes.
pub(crate) fn folder(config: &Config, dtype: Dtype) -> Files {
    let mut files = Files(Vec::new());
    files.set("model.safetensors", safetensors(&parts(config), dtype, ""));
    files.set("config.json", config_json(config));
    files.set(
        "sentence_bert_config.json",
        format!(
            "{{\n  \"max_seq_length\": {},\n  \"do_lower_case\": false\n}}\n",
            config.max_tokens
        ),
    );
    let mut modules = vec![("", "Transformer"), ("1_Pooling", "Pooling")];
    modules.extend(config.normalize.then_some(("2_Normalize", "Normalize")));
    let modules = modules.iter().enumerate().map(|(i, (path, kind))| {
        format!(
            "  {{\n    \"idx\": {i},\n    \"name\": \"{i}\",\n    \"path\": \"{path}\",\n    \"type\": \"sentence_transformers.models.{kind}\"\n  }}"
        )
    });
    let modules: Vec<String> = modules.collect();
    files.set("modules.json", format!("[\n{}\n]\n", modules.join(",\n")));
    let pooling = pooling_name(config.pooling);
    files.set(
        "1_Pooling/config.json",
        format!(
            "{{\n  \"word_embedding_dimension\": {},\n  \"pooling_mode_cls_token\": {},\n  \"pooling_mode_mean_tokens\": {}{}\n}}\n",
            config.hidden,
            pooling == "cls",
            pooling == "mean",
            match pooling {
                "max" => ",\n  \"pooling_mode_max_tokens\": true",
                "lasttoken" => ",\n  \"pooling_mode_lasttoken\": true",
                _ => "",
            }
        ),
    );
    files.set("vocab.txt", vocab(config.vocab as usize));
    files
}

/// The name of a pooling in sentence-transformers.
pub(crate) fn pooling_name(pooling: Pooling) -> &'static str {
    match pooling {
        Pooling::Mean => "mean",
        Pooling::Cls => "cls",
        Pooling::Max => "max",
        Pooling::LastToken => "lasttoken",
    }
}

fn config_json(config: &Config) -> String {
    let Config {
        hidden,
        layers,
        heads,
        intermediate,
        vocab,
        positions,
        types,
        epsilon,
        ..
    } = config;
    let kind = match config.first_position {
        0 => "bert",
        _ => "roberta",
    };
    let padding = config.first_position.saturating_sub(1);
    format!(
        "{{
  \"model_type\": \"{kind}\",
  \"hidden_act\": \"gelu\",
  \"hidden_size\": {hidden},
  \"intermediate_size\": {intermediate},
  \"layer_norm_eps\": {epsilon:e},
  \"max_position_embeddings\": {positions},
  \"num_attention_heads\": {},
  \"num_hidden_layers\": {layers},
  \"pad_token_id\": {padding},
  \"position_embedding_type\": \"absolute\",
  \"type_vocab_size\": {types},
  \"vocab_size\": {vocab}
}}
",
        heads.count
    )
}

/// Tokens, one a line: specials, letters, what words are made of.
fn vocab(size: usize) -> String {
    let mut tokens: Vec<String> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        .map(String::from)
        .to_vec();
    let letters = || ('a'..='z').map(String::from);
    tokens.extend(letters());
    tokens.extend(letters().map(|letter| ["##", &letter].concat()));
    tokens.extend((0..10).map(|digit: u32| digit.to_string()));
    let words = ". , ! ? ' - the cat dog sat ran on in fog mat hello world and is a text \
                 ##ing ##ed ##s é 中 文 мир ##ир м";
    for word in words.split_whitespace() {
        if !tokens.iter().any(|known| known == word) {
            tokens.push(word.into());
        }
    }
    for unused in 0.. {
        if tokens.len() >= size {
            break;
        }
        tokens.push(format!("[unused{unused}]"));
    }
    tokens.truncate(size);
    tokens.join("\n") + "\n"
}

/// Ids of a text of so many tokens, each text another one.
pub(crate) fn ids(config: &Config, text: u64, tokens: usize) -> Vec<u32> {
    let mut samples = Samples(text << 32 | tokens as u64);
    let vocab = u64::from(config.vocab);
    std::iter::repeat_with(|| (samples.bits() % vocab) as u32)
        .take(tokens)
        .collect()
}

/// Where the files of this model lie for other tests.
pub(crate) fn data(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    PathBuf::from(folder).join(name)
}

#[test]
fn the_folder_for_other_tests_is_this_model() {
    let folder = folder(&TINY, Dtype::F32);
    let home = data("tiny-model");
    if std::env::var_os("WRITE_TINY_MODEL").is_some() {
        for (name, content) in &folder.0 {
            std::fs::write(home.join(name), content).unwrap();
        }
    }
    for (name, content) in &folder.0 {
        let path = home.join(name);
        let known = std::fs::read(&path).unwrap_or_default();
        assert!(
            known == *content,
            "{} differs; run the tests once with WRITE_TINY_MODEL=1",
            path.display()
        );
    }
}
