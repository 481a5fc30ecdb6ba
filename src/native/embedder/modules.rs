//! How the vectors of a text's tokens become one vector, by `modules.json` and the pooling's
//! file. How the tokens' vectors are computed is the matter of `folder`.

use serde_json::{Map, Value};

use super::files::{ModelFiles, refuse};
use super::json::Json;
use crate::embed::Pooling;
use crate::error::Error;

const MODULES: &str = "modules.json";

/// The pooling, and whether vectors are normalized. For a folder without `modules.json`,
/// sentence-transformers takes the mean and does not normalize.
pub(super) fn modules(files: &ModelFiles<'_>, hidden: u32) -> Result<(Pooling, bool), Error> {
    let Some(modules) = Json::find_any(files, MODULES)? else {
        return Ok((Pooling::Mean, false));
    };
    let Some(list) = modules.value.as_array() else {
        return Err(refuse(MODULES, "must be a list"));
    };
    let modules = list
        .iter()
        .enumerate()
        .map(|(at, module)| module_of(at, module));
    let modules = modules.collect::<Result<Vec<(String, String)>, Error>>()?;
    let named: Vec<(&str, &str)> = modules
        .iter()
        .map(|(kind, path)| (&kind[..], &path[..]))
        .collect();
    let (path, normalize) = match named[..] {
        [("Transformer", ""), ("Pooling", path)] => (path, false),
        [("Transformer", ""), ("Pooling", path), ("Normalize", _)] => (path, true),
        _ => ("", false),
    };
    if path.is_empty() {
        return Err(refuse(
            MODULES,
            &format!(
                "modules {named:?} are not supported; Transformer in the folder itself, Pooling in one below and perhaps Normalize are, in this order"
            ),
        ));
    }
    Ok((pooling_of(files, path, hidden)?, normalize))
}

/// The kind of a module, and the folder that it lies in.
fn module_of(at: usize, module: &Value) -> Result<(String, String), Error> {
    let place = format!("{MODULES}: [{at}]");
    let fields = Json::of(&place, module.clone());
    let Some(kind) = fields.text("type")? else {
        return Err(refuse(&place, "type is missing"));
    };
    let kind = kind.rsplit('.').next().unwrap_or_default().to_string();
    let path = fields.text("path")?.unwrap_or_default();
    if !(path.is_empty() || is_plain(path)) {
        let rule = "must name a folder below by letters, digits, '_', '-' and '.'";
        return Err(fields.refuse("path", &path.into(), rule));
    }
    Ok((kind, path.into()))
}

/// Whether a path consists of names of folders alone. Any other path might lead out of the model's
/// folder.
fn is_plain(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let mut parts = path.split(['.', '/']);
    parts.all(|part| !part.is_empty() && part.bytes().all(is_plain))
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
    // The pooling's name overrides all flags.
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
