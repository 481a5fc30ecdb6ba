//! What the JSON files of a Hugging Face folder say of a model.
//!
//! Everything that would change what is computed is either understood or refused.

use serde_json::Value;

use super::files::{ModelFiles, refuse};
use super::modules::modules;
use crate::embed::{Config, Pooling};
use crate::error::Error;

/// Tokens that a model may know.
const MOST_TOKENS: u32 = 1 << 24;

/// What says how a tokenizer is used.
pub(super) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// What JSON says, in which 64.0 and 64 are one number, as in most languages.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::from_slice(bytes)?;
    make_whole(&mut value);
    Ok(value)
}

fn make_whole(value: &mut Value) {
    /// Whole numbers up to here are themselves in 64-bit floats.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(list) => list.iter_mut().for_each(make_whole),
        Value::Object(fields) => fields.values_mut().for_each(make_whole),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if (0.0..MOST).contains(&float) && float.fract() == 0.0 {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is whole and below 2^53"
                )]
                let whole = float as u64;
                *value = whole.into();
            }
        }
        _ => {}
    }
}

/// A JSON file.
#[derive(Debug)]
pub(super) struct Json<'n> {
    name: &'n str,
    pub(super) value: Value,
}

impl<'n> Json<'n> {
    /// A file's object; `None` where there is no such file.
    pub(super) fn find(files: &ModelFiles<'_>, name: &'n str) -> Result<Option<Json<'n>>, Error> {
        let json = Json::find_any(files, name)?;
        match json {
            Some(json) if !json.value.is_object() => Err(refuse(name, "must be an object")),
            json => Ok(json),
        }
    }

    /// A file's content, whatever it is; `None` where there is no such file.
    pub(super) fn find_any(
        files: &ModelFiles<'_>,
        name: &'n str,
    ) -> Result<Option<Json<'n>>, Error> {
        let Some(text) = files.text(name)? else {
            return Ok(None);
        };
        let value = parse(text.as_bytes());
        let value = value.map_err(|error| refuse(name, &format!("is no JSON: {error}")))?;
        Ok(Some(Json::of(name, value)))
    }

    /// A part of the file `name`.
    pub(super) fn of(name: &'n str, value: Value) -> Json<'n> {
        Json { name, value }
    }

    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        self.value.get(field).filter(|value| !value.is_null())
    }

    /// A count that may be missing.
    pub(super) fn count(&self, field: &str) -> Result<Option<u32>, Error> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
        let count = count.map(Some);
        count.ok_or_else(|| self.refuse(field, value, "must be a whole number below 2^32"))
    }

    /// A text that may be missing.
    pub(super) fn text(&self, field: &str) -> Result<Option<&str>, Error> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let text = value.as_str().map(Some);
        text.ok_or_else(|| self.refuse(field, value, "must be a text"))
    }

    /// A truth that may be missing.
    pub(super) fn flag(&self, field: &str) -> Result<Option<bool>, Error> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let flag = value.as_bool().map(Some);
        flag.ok_or_else(|| self.refuse(field, value, "must be true or false"))
    }

    /// A token's text, which stands for itself or beside how it is to be matched.
    pub(super) fn token(&self, field: &str) -> Result<Option<&str>, Error> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let token = value.get("content").unwrap_or(value).as_str().map(Some);
        token.ok_or_else(|| self.refuse(field, value, "must be a text, or have one as content"))
    }

    /// A count of tokens that may be missing, cut to what there are positions for.
    fn limit(&self, field: &str, positions: u32) -> Result<Option<u32>, Error> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        // Tokenizers without a limit say 10^30.
        match value.as_f64() {
            Some(limit) if limit >= f64::from(u32::MAX) && limit.fract() == 0.0 => {
                Ok(Some(positions))
            }
            Some(limit) if limit >= 2.0 && limit.fract() == 0.0 => {
                #[expect(clippy::cast_possible_truncation, reason = "it is below 2^32")]
                let limit = limit as u32;
                Ok(Some(limit.min(positions)))
            }
            _ => Err(self.refuse(field, value, "must be a whole number from 2")),
        }
    }

    /// A count that must be there, up to what a model of any use has.
    fn size(&self, field: &str, most: u32) -> Result<u32, Error> {
        let size = self.count_below(field, most)?;
        size.ok_or_else(|| refuse(self.name, &format!("{field} is missing")))
    }

    fn count_below(&self, field: &str, most: u32) -> Result<Option<u32>, Error> {
        match self.count(field)? {
            Some(count) if count > most => {
                Err(self.refuse(field, &count.into(), &format!("must be at most {most}")))
            }
            count => Ok(count),
        }
    }

    /// Refuses a field that says something other than this, if it says anything.
    pub(super) fn only(&self, field: &str, accepted: &Value) -> Result<(), Error> {
        match self.get(field) {
            Some(value) if value != accepted => {
                Err(self.refuse(field, value, &format!("is not supported; {accepted} is")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn refuse(&self, field: &str, value: &Value, rule: &str) -> Error {
        refuse(self.name, &format!("{field} {value} {rule}"))
    }
}

/// What a folder says of its model, but for the tokenizer.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) config: Config,
    /// Names, and what stands before texts that are embedded under them.
    pub(super) prompts: Vec<(String, String)>,
    /// What stands before texts otherwise.
    pub(super) prompt: String,
    /// Whether texts are put in lower case before anything else.
    pub(super) lowercase: bool,
}

/// Reads what says how a model computes.
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
    let (max_tokens, lowercase) = texts(files, positions.saturating_sub(first_position))?;
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

/// How many tokens a text has at most, of so many that there are positions for, and
/// whether it is put in lower case.
fn texts(files: &ModelFiles<'_>, positions: u32) -> Result<(u32, bool), Error> {
    let mut lowercase = false;
    if let Some(json) = Json::find(files, "sentence_bert_config.json")? {
        lowercase = json.flag("do_lower_case")?.unwrap_or(false);
        if let Some(most) = json.limit("max_seq_length", positions)? {
            return Ok((most, lowercase));
        }
    }
    // Otherwise the tokenizer's own limit counts, as in sentence-transformers.
    let most = match Json::find(files, TOKENIZER_CONFIG)? {
        Some(json) => json.limit("model_max_length", positions)?,
        None => None,
    };
    Ok((most.unwrap_or(positions), lowercase))
}

/// The place of a text's first token, which is the one thing that the supported
/// architectures differ in.
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

/// Prompts by name, and the one that stands before texts of no kind.
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
