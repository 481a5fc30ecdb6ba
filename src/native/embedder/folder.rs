//! Reads from the JSON files of a Hugging Face folder what a model computes.
//!
//! A field that would change the result is either followed or refused.

use serde_json::Value;

use super::files::{ModelFiles, refuse};
use super::json::Json;
use super::modules::modules;
use crate::embed::{Config, Pooling};
use crate::error::Error;

/// The most tokens of a vocabulary.
const MOST_TOKENS: u32 = 1 << 24;

/// The file that says how a tokenizer is used.
pub(super) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// A model as its folder describes it, without the tokenizer.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) config: Config,
    /// Prompts by name: each is put in front of texts of that kind.
    pub(super) prompts: Vec<(String, String)>,
    /// The prompt of texts without a kind.
    pub(super) prompt: String,
    /// Whether texts are put in lower case before anything else.
    pub(super) lowercase: bool,
}

/// Reads a model's description.
pub(super) fn describe(files: &ModelFiles<'_>) -> Result<Description, Error> {
    const CONFIG: &str = "config.json";
    let json = Json::find(files, CONFIG)?.ok_or_else(|| refuse(CONFIG, "is missing"))?;
    let first_position = first_position(&json)?;
    for (field, accepted) in [
        ("hidden_act", Value::from("gelu")),
        ("position_embedding_type", Value::from("absolute")),
        ("is_decoder", Value::from(false)),
        ("add_cross_attention", Value::from(false)),
    ] {
        json.only(field, &accepted)?;
    }
    let hidden = json.size("hidden_size", 1 << 16)?;
    let positions = json.size("max_position_embeddings", 1 << 16)?;
    if positions <= first_position {
        let rule = ["must be more than ", &first_position.to_string()].concat();
        return Err(json.refuse("max_position_embeddings", &positions.into(), &rule));
    }
    let (max_tokens, lowercase) = texts(files, positions - first_position)?;
    let epsilon = match json.get("layer_norm_eps") {
        None => 1e-12,
        Some(value) => {
            let epsilon = value.as_f64();
            epsilon.ok_or_else(|| json.refuse("layer_norm_eps", value, "must be a number"))?
        }
    };
    let sizes = Config {
        hidden,
        layers: json.size("num_hidden_layers", 1 << 16)?,
        heads: json.size("num_attention_heads", 1 << 16)?,
        intermediate: json.size("intermediate_size", 1 << 18)?,
        vocab: json.size("vocab_size", MOST_TOKENS)?,
        positions,
        first_position,
        types: json.count_below("type_vocab_size", 1024)?.unwrap_or(2),
        #[expect(clippy::cast_possible_truncation, reason = "checked to be finite")]
        epsilon: epsilon as f32,
        pooling: Pooling::Mean,
        normalize: false,
        max_tokens,
    };
    sizes.validate()?;
    let (pooling, normalize) = modules(files, hidden)?;
    let (prompts, prompt) = prompts(files)?;
    Ok(Description {
        config: Config {
            pooling,
            normalize,
            ..sizes
        },
        prompts,
        prompt,
        lowercase,
    })
}

/// The most tokens of a text, no more than there are positions for, and whether texts are put in
/// lower case.
fn texts(files: &ModelFiles<'_>, positions: u32) -> Result<(u32, bool), Error> {
    let mut lowercase = false;
    if let Some(json) = Json::find(files, "sentence_bert_config.json")? {
        lowercase = json.flag("do_lower_case")?.unwrap_or(false);
        if let Some(most) = json.limit("max_seq_length", positions)? {
            return Ok((most, lowercase));
        }
    }
    // Without that limit the tokenizer's own limit counts, as in sentence-transformers.
    let most = match Json::find(files, TOKENIZER_CONFIG)? {
        Some(json) => json.limit("model_max_length", positions)?,
        None => None,
    };
    Ok((most.unwrap_or(positions), lowercase))
}

/// The position of a text's first token. The supported architectures differ in nothing else.
fn first_position(config: &Json<'_>) -> Result<u32, Error> {
    match config.text("model_type")? {
        Some("bert") => Ok(0),
        Some("roberta" | "xlm-roberta") => {
            let padding = config
                .count_below("pad_token_id", MOST_TOKENS)?
                .unwrap_or(1);
            Ok(padding.saturating_add(1))
        }
        other => Err(refuse(
            config.name,
            &format!(
                "model_type {} is no known architecture; bert, roberta and xlm-roberta are",
                other.unwrap_or("is missing, which")
            ),
        )),
    }
}

/// Prompts by name, and the prompt of texts without a kind.
type Prompts = (Vec<(String, String)>, String);

fn prompts(files: &ModelFiles<'_>) -> Result<Prompts, Error> {
    let Some(json) = Json::find(files, "config_sentence_transformers.json")? else {
        return Ok((Vec::new(), String::new()));
    };
    let mut prompts = Vec::new();
    if let Some(value) = json.get("prompts") {
        let Some(fields) = value.as_object() else {
            return Err(json.refuse("prompts", value, "must be an object"));
        };
        for (name, prompt) in fields {
            let Some(prompt) = prompt.as_str() else {
                return Err(json.refuse("prompts", value, "must hold texts"));
            };
            prompts.push((name.clone(), prompt.to_string()));
        }
    }
    let Some(name) = json.text("default_prompt_name")? else {
        return Ok((prompts, String::new()));
    };
    match prompts.iter().find(|(known, _)| known == name) {
        Some((_, prompt)) => {
            let prompt = prompt.clone();
            Ok((prompts, prompt))
        }
        None => Err(json.refuse("default_prompt_name", &name.into(), "names no prompt")),
    }
}
