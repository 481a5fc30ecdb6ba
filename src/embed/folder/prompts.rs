//! What may stand in front of texts, by `config_sentence_transformers.json`.

use super::super::json::Value;
use super::files::Files;
use super::{PROMPTS, Stop};

/// Prompts by name, and the prompt of texts without a kind.
type Prompts = (Vec<(String, String)>, String);

pub(super) fn prompts(files: &Files) -> Result<Prompts, Stop> {
    let Some(file) = files.object(PROMPTS)? else {
        return Ok(Prompts::default());
    };
    let mut prompts: Vec<(String, String)> = Vec::new();
    if let Some(fields) = file.object("prompts")? {
        for name in fields.names() {
            let value = fields.get(name);
            let Some(Value::Text(prompt)) = value else {
                return Err(file.wrong(&["prompts.", name].concat(), value, "must be a string"))?;
            };
            if !prompts.iter().any(|(known, _)| known == name) {
                prompts.push((name.into(), prompt.clone()));
            }
        }
    }
    let Some(value) = file.get("default_prompt_name") else {
        return Ok((prompts, String::new()));
    };
    let mut known = prompts.iter();
    match known.find(|(name, _)| Some(&name[..]) == value.as_text()) {
        Some((_, prompt)) => {
            let prompt = prompt.clone();
            Ok((prompts, prompt))
        }
        None => Err(file.wrong(
            "default_prompt_name",
            Some(value),
            "must name one of its prompts",
        ))?,
    }
}
