//! What becomes of the vectors of a text's tokens, by `modules.json` and the file of
//! its pooling. What these vectors are is the matter of `folder`.

use serde_json::{Map, Value};

use super::files::{ModelFiles, refuse};
use super::folder::Json;
use crate::embed::Pooling;
use crate::error::Error;

/// How tokens become a vector, and whether that is normalized. Of a folder without a
/// list of modules sentence-transformers takes the mean as it is.
pub(super) fn modules(files: &ModelFiles<'_>, hidden: u32) -> Result<(Pooling, bool), Error> {
    const MODULES: &str = "modules.json";
    let Some(modules) = Json::find(files, MODULES)? else {
        return Ok((Pooling::Mean, false));
    };
    let Some(list) = modules.value.as_array() else {
        return Err(refuse(MODULES, "must be a list"));
    };
    let modules = list.iter().map(|module| {
        let text = |field| module.get(field).and_then(Value::as_str);
        let kind = text("type").and_then(|kind| kind.rsplit('.').next());
        (kind.unwrap_or_default(), text("path").unwrap_or_default())
    });
    let modules: Vec<(&str, &str)> = modules.collect();
    let (path, normalize) = match modules[..] {
        [("Transformer", ""), ("Pooling", path)] => (path, false),
        [("Transformer", ""), ("Pooling", path), ("Normalize", _)] => (path, true),
        _ => ("", false),
    };
    if path.is_empty() {
        return Err(refuse(
            MODULES,
            &format!(
                "modules {modules:?} are not supported; Transformer in the folder itself, Pooling in one below and perhaps Normalize are, in this order"
            ),
        ));
    }
    Ok((pooling_of(files, path, hidden)?, normalize))
}

fn pooling_of(files: &ModelFiles<'_>, path: &str, hidden: u32) -> Result<Pooling, Error> {
    const MODE: &str = "pooling_mode_";
    const MEAN: &str = "mean_tokens";
    let name = [path, "/config.json"].concat();
    let json = Json::find(files, &name)?.ok_or_else(|| refuse(&name, "is missing"))?;
    json.only("include_prompt", &Value::from(true))?;
    if let Some(width) = json.count("word_embedding_dimension")?
        && width != hidden
    {
        let rule = format!("is not hidden_size {hidden} of config.json");
        return Err(json.refuse("word_embedding_dimension", &width.into(), &rule));
    }
    let refuse_all = |modes: &[&str]| {
        let problem = format!("pooling {modes:?} is not supported; one of mean and cls is");
        Err(refuse(&name, &problem))
    };
    // Said in a word, it overrides all flags.
    match json.text("pooling_mode")? {
        None => {}
        Some("mean") => return Ok(Pooling::Mean),
        Some("cls") => return Ok(Pooling::Cls),
        Some(other) => return refuse_all(&[other]),
    }
    // The mean is taken unless the file says that it is not.
    let mut modes = Vec::new();
    if json.flag(&[MODE, MEAN].concat())?.unwrap_or(true) {
        modes.push(MEAN);
    }
    for field in json.value.as_object().into_iter().flat_map(Map::keys) {
        if let Some(mode) = field.strip_prefix(MODE)
            && mode != MEAN
            && json.flag(field)? == Some(true)
        {
            modes.push(mode);
        }
    }
    match modes[..] {
        [MEAN] => Ok(Pooling::Mean),
        ["cls_token"] => Ok(Pooling::Cls),
        _ => refuse_all(&modes),
    }
}
