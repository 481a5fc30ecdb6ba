//! An encoder with random weights, as the files of a Hugging Face folder, and texts
//! for it. What it says means nothing, and takes as long as if it did.

use framebatch::embed::{Activation, Biases, Config, Family, Heads, Norms, Pooling, Role, weights};
use framebatch::graph::Precision;
use safetensors::tensor::{Dtype, TensorView};

/// The sizes of all-MiniLM-L6-v2.
pub(crate) const MINILM: Config = Config {
    family: Family::Bert,
    hidden: 384,
    layers: 6,
    heads: Heads::even(12, 384),
    intermediate: 1536,
    activation: Activation::Gelu,
    vocab: 30_522,
    positions: 512,
    first_position: 0,
    types: 2,
    score_scale: None,
    word_scale: None,
    per_layer_embedding: None,
    are_layers_scaled: false,
    distance_bias: None,
    has_position_table: true,
    gate: None,
    norms: Norms::BERT,
    biases: Biases::ALL,
    rotation: None,
    near: None,
    epsilon: 1e-12,
    pooling: Pooling::Mean,
    dense: Vec::new(),
    answers: None,
    cut: None,
    normalize: true,
    max_tokens: 256,
    precision: Precision::F32,
};

/// An encoder of 2 layers.
pub(crate) const TINY: Config = Config {
    hidden: 64,
    layers: 2,
    heads: Heads::even(2, 64),
    intermediate: 96,
    vocab: 1000,
    positions: 48,
    max_tokens: 40,
    precision: Precision::F32,
    family: Family::Bert,
    activation: Activation::Gelu,
    first_position: 0,
    types: 2,
    score_scale: None,
    word_scale: None,
    per_layer_embedding: None,
    are_layers_scaled: false,
    distance_bias: None,
    has_position_table: true,
    gate: None,
    norms: Norms::BERT,
    biases: Biases::ALL,
    rotation: None,
    near: None,
    epsilon: 1e-12,
    pooling: Pooling::Mean,
    dense: Vec::new(),
    answers: None,
    cut: None,
    normalize: true,
};

const SPECIALS: [&str; 4] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];

pub(crate) struct Model {
    config: Config,
    files: Vec<(&'static str, Vec<u8>)>,
}

impl Model {
    pub(crate) fn new(config: Config) -> Model {
        let json = format!(
            r#"{{"model_type":"bert","hidden_act":"gelu","hidden_size":{},"intermediate_size":{},
            "layer_norm_eps":1e-12,"max_position_embeddings":{},"num_attention_heads":{},
            "num_hidden_layers":{},"type_vocab_size":{},"vocab_size":{}}}"#,
            config.hidden,
            config.intermediate,
            config.positions,
            config.heads.count,
            config.layers,
            config.types,
            config.vocab
        );
        let limit = format!(r#"{{"max_seq_length":{}}}"#, config.max_tokens);
        let words = (SPECIALS.len()..config.vocab as usize).map(word);
        let vocab = SPECIALS.map(String::from).into_iter().chain(words);
        let vocab: Vec<String> = vocab.collect();
        let modules = r#"[{"type":"Transformer","path":""},{"type":"Pooling","path":"1_Pooling"},
            {"type":"Normalize","path":"2_Normalize"}]"#;
        let files = vec![
            ("config.json", json.into_bytes()),
            ("modules.json", modules.into()),
            ("1_Pooling/config.json", b"{}".to_vec()),
            ("sentence_bert_config.json", limit.into_bytes()),
            ("vocab.txt", vocab.join("\n").into_bytes()),
            ("model.safetensors", safetensors(&config)),
        ];
        Model { config, files }
    }

    pub(crate) fn files(&self) -> Vec<(&str, &[u8])> {
        let files = self.files.iter();
        files.map(|(name, bytes)| (*name, &bytes[..])).collect()
    }

    /// Tokens of each text.
    pub(crate) fn tokens(&self) -> usize {
        self.config.max_tokens.min(128) as usize
    }

    /// Texts of known words, all different.
    pub(crate) fn texts(&self, count: usize) -> Vec<String> {
        let mut state = 1;
        let first = SPECIALS.len();
        let known = self.config.vocab as usize - first;
        let text = |_| {
            let words = (2..self.tokens()).map(|_| word(first + bits(&mut state) as usize % known));
            words.collect::<Vec<String>>().join(" ")
        };
        (0..count).map(text).collect()
    }
}

/// A word of letters for each number.
fn word(mut number: usize) -> String {
    let mut word = String::new();
    loop {
        word.push(char::from(b"abcdefghijklmnopqrstuvwxyz"[number % 26]));
        number /= 26;
        if number == 0 {
            return word;
        }
    }
}

/// The next of a series of random numbers.
fn bits(state: &mut u64) -> u32 {
    *state = state
        .wrapping_mul(0x5851_F42D_4C95_7F2D)
        .wrapping_add(0x1405_7B7E_F767_814F);
    (*state >> 33) as u32 // 31 bits are left.
}

fn safetensors(config: &Config) -> Vec<u8> {
    let mut state = 7;
    let mut parts: Vec<(&str, Vec<usize>, Vec<u8>)> = Vec::new();
    let weights = weights(config);
    for weight in &weights {
        for part in &weight.parts {
            let (name, dims) = (&part.name, &part.dims);
            let count: u32 = dims.iter().product();
            let (middle, reach) = match weight.role {
                Role::Matrix if name.starts_with("embeddings") => (0.0, 1.0),
                Role::Matrix => (0.0, 2.0 / (dims[1] as f32).sqrt()),
                Role::Vector if name.ends_with("LayerNorm.weight") => (1.0, 0.2),
                _ => (0.0, 0.1),
            };
            let float = |_| {
                let unit = bits(&mut state) as f32 / (1_u64 << 31) as f32;
                (middle + reach * (2.0 * unit - 1.0)).to_le_bytes()
            };
            let bytes: Vec<u8> = (0..count).flat_map(float).collect();
            let shape = dims.iter().map(|dim| *dim as usize).collect();
            parts.push((name, shape, bytes));
        }
    }
    let views = parts.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
        (name, view.expect("as many bytes as the shape says"))
    });
    safetensors::serialize(views, None).expect("tensors of different names")
}
