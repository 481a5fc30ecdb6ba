//! What the JSON files of a Hugging Face folder say of a model.
//!
//! Everything that would change what is computed is either understood or refused.

use serde_json::Value;

use super::files::{ModelFiles, refuse};
use crate::embed::{Config, Pooling};
use crate::error::Error;

/// A JSON file.
#[derive(Debug)]
pub(super) struct Json<'n> {
    name: &'n str,
    value: Value,
}

impl<'n> Json<'n> {
    /// A file's content; `None` where there is no such file.
    pub(super) fn find(files: &ModelFiles<'_>, name: &'n str) -> Result<Option<Json<'n>>, Error> {
        let Some(text) = files.text(name)? else {
            return Ok(None);
        };
        match serde_json::from_str(&text) {
            Ok(value) => Ok(Some(Json { name, value })),
            Err(error) => Err(refuse(name, &format!("is no JSON: {error}"))),
        }
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

    fn size(&self, field: &str) -> Result<u32, Error> {
        let size = self.count(field)?;
        size.ok_or_else(|| refuse(self.name, &format!("{field} is missing")))
    }

    /// Refuses a field that says something other than this, if it says anything.
    fn only(&self, field: &str, accepted: &Value) -> Result<(), Error> {
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
    let positions = json.size("max_position_embeddings")?;
    let texts = Json::find(files, "sentence_bert_config.json")?;
    let max_tokens = match &texts {
        Some(texts) => texts.count("max_seq_length")?,
        None => None,
    };
    let lowercase = match &texts {
        Some(texts) => texts.flag("do_lower_case")?,
        None => None,
    };
    let epsilon = match json.get("layer_norm_eps") {
        None => 1e-12,
        Some(value) => {
            let epsilon = value.as_f64();
            epsilon.ok_or_else(|| json.refuse("layer_norm_eps", value, "must be a number"))?
        }
    };
    let (pooling, normalize) = modules(files)?;
    let config = Config {
        hidden: json.size("hidden_size")?,
        layers: json.size("num_hidden_layers")?,
        heads: json.size("num_attention_heads")?,
        intermediate: json.size("intermediate_size")?,
        vocab: json.size("vocab_size")?,
        positions,
        first_position,
        types: json.count("type_vocab_size")?.unwrap_or(2),
        #[expect(clippy::cast_possible_truncation, reason = "checked to be finite")]
        epsilon: epsilon as f32,
        pooling,
        normalize,
        max_tokens: max_tokens.unwrap_or(positions.saturating_sub(first_position)),
    };
    config.validate()?;
    let (prompts, prompt) = prompts(files)?;
    Ok(Description {
        config,
        prompts,
        prompt,
        lowercase: lowercase.unwrap_or(false),
    })
}

/// The place of a text's first token, which is the one thing that the supported
/// architectures differ in.
fn first_position(config: &Json<'_>) -> Result<u32, Error> {
    match config.text("model_type")? {
        Some("bert") => Ok(0),
        Some("roberta" | "xlm-roberta") => {
            let padding = config.count("pad_token_id")?.unwrap_or(1);
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

/// How tokens become a vector. A folder without a list of modules is a bare
/// encoder: the mean, normalized.
fn modules(files: &ModelFiles<'_>) -> Result<(Pooling, bool), Error> {
    const MODULES: &str = "modules.json";
    let Some(modules) = Json::find(files, MODULES)? else {
        return Ok((Pooling::Mean, true));
    };
    let (mut pooling, mut normalize) = (Pooling::Mean, false);
    let Some(list) = modules.value.as_array() else {
        return Err(refuse(MODULES, "must be a list"));
    };
    for module in list {
        let text = |field| {
            module
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        match text("type").rsplit('.').next() {
            Some("Transformer") if text("path").is_empty() => {}
            Some("Pooling") => pooling = pooling_of(files, text("path"))?,
            Some("Normalize") => normalize = true,
            _ => {
                return Err(refuse(
                    MODULES,
                    &format!(
                        "module {module} is not supported; Transformer, Pooling and Normalize are"
                    ),
                ));
            }
        }
    }
    Ok((pooling, normalize))
}

fn pooling_of(files: &ModelFiles<'_>, path: &str) -> Result<Pooling, Error> {
    let name = [path, "/config.json"].concat();
    let json = Json::find(files, &name)?.ok_or_else(|| refuse(&name, "is missing"))?;
    json.only("include_prompt", &Value::from(true))?;
    let fields = json.value.as_object().into_iter().flatten();
    let modes = fields.filter(|(field, value)| {
        field.starts_with("pooling_mode_") && value.as_bool() != Some(false)
    });
    let modes: Vec<&str> = modes.map(|(field, _)| field.as_str()).collect();
    match modes[..] {
        ["pooling_mode_mean_tokens"] => Ok(Pooling::Mean),
        ["pooling_mode_cls_token"] => Ok(Pooling::Cls),
        _ => Err(refuse(
            &name,
            &format!(
                "{modes:?} is not supported; one of pooling_mode_mean_tokens and pooling_mode_cls_token is"
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
