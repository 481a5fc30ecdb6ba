//! What becomes of the vectors of a text's tokens: `modules.json`, and the files of its modules.
//!
//! How these vectors are computed is the matter of `encoder`.

use super::super::config::{Activation, Config, Dense, Pooling, Source};
use super::super::json::Value;
use super::fields::{Fields, refuse, shown, unknown};
use super::files::Files;
use super::{MODULES, PROMPTS, Stop};
use crate::error::Error;

/// The encoder with what its modules say, its vectors cut to so many floats if that is asked for.
pub(super) fn behind(
    files: &Files,
    mut config: Config,
    dimensions: Option<u32>,
) -> Result<Config, Stop> {
    if let Some(value) = files.value(MODULES)? {
        let modules = modules(value)?;
        let names: Vec<String> = modules.iter().filter_map(Module::file).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        files.want(&names)?;
        for module in &modules {
            module.read(files, &mut config)?;
        }
    }
    config.cut = dimensions.or(truncated(files)?.filter(|cut| *cut < config.pooled()));
    Ok(config)
}

/// The floats that the model's own settings cut its vectors to.
fn truncated(files: &Files) -> Result<Option<u32>, Stop> {
    const CUT: &str = "truncate_dim";
    let settings = files.object(PROMPTS)?;
    let cut = settings.filter(|settings| settings.get(CUT).is_some());
    let cut = cut.map(|settings| settings.whole(CUT, 1..=u32::MAX, None));
    Ok(cut.transpose()?)
}

/// A module behind the transformer.
struct Module<'a> {
    kind: Kind,
    path: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pooling,
    Dense,
    Normalize,
}

/// The modules behind the transformer, which must be in an order that is known.
fn modules(value: &Value) -> Result<Vec<Module<'_>>, Error> {
    let Value::List(list) = value else {
        return Err(refuse(MODULES, "must be a list of modules"));
    };
    let mut modules = Vec::new();
    for (at, module) in list.iter().enumerate() {
        let place = [MODULES, ": [", &at.to_string(), "]"].concat();
        let fields = Fields::of(place, module)?;
        let Some(kind) = fields.text("type")? else {
            return Err(fields.wrong("type", None, "must be a string"));
        };
        let path = fields.text("path")?.unwrap_or_default();
        if !(path.is_empty() || is_plain(path)) {
            let rule = "must name a folder below by letters, digits, '_', '-' and '.'";
            return Err(fields.wrong("path", fields.get("path"), rule));
        }
        modules.push((kind.rsplit('.').next().unwrap_or_default(), path));
    }
    known(&modules).ok_or_else(|| {
        let text = |text: &str| Value::Text(text.into());
        let pairs = modules.iter();
        let pairs = pairs.map(|(kind, path)| Value::List(vec![text(kind), text(path)]));
        let problem = [
            "is ",
            &shown(&Value::List(pairs.collect())),
            ", and only Transformer in the folder itself, Pooling in one below, perhaps Dense in others, and perhaps Normalize are known, in this order",
        ];
        unknown(MODULES, &problem.concat())
    })
}

fn known<'a>(modules: &[(&str, &'a str)]) -> Option<Vec<Module<'a>>> {
    let [("Transformer", ""), ("Pooling", pooling), rest @ ..] = modules else {
        return None;
    };
    let mut known = vec![("Pooling", *pooling)];
    known.extend_from_slice(rest);
    let kind = |(at, (kind, path)): (usize, (&str, &'a str))| {
        let kind = match kind {
            "Pooling" if at == 0 => Kind::Pooling,
            "Dense" => Kind::Dense,
            "Normalize" if at == rest.len() => Kind::Normalize,
            _ => return None,
        };
        let is_found = kind == Kind::Normalize || !path.is_empty();
        is_found.then_some(Module { kind, path })
    };
    known.into_iter().enumerate().map(kind).collect()
}

/// Whether a path consists of names of folders alone. Any other path might lead out of the model's
/// folder.
pub(super) fn is_plain(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let mut parts = path.split(['.', '/']);
    parts.all(|part| !part.is_empty() && part.bytes().all(is_plain))
}

impl Module<'_> {
    /// The name of the file that says what the module does, if there is one.
    fn file(&self) -> Option<String> {
        (self.kind != Kind::Normalize).then(|| [self.path, "/config.json"].concat())
    }

    fn read(&self, files: &Files, config: &mut Config) -> Result<(), Stop> {
        let Some(name) = self.file() else {
            config.normalize = true;
            return Ok(());
        };
        let Some(fields) = files.object(&name)? else {
            return Err(refuse(&name, "is missing, which modules.json names"))?;
        };
        match self.kind {
            Kind::Pooling => config.pooling = pooling(&fields, config)?,
            _ => config.dense.push(dense(self.path, &fields)?),
        }
        Ok(())
    }
}

fn pooling(fields: &Fields<'_>, config: &Config) -> Result<Pooling, Error> {
    const MODE: &str = "pooling_mode_";
    const MEAN: &str = "mean_tokens";
    fields.only("include_prompt", &Value::Flag(true))?;
    for field in ["word_embedding_dimension", "embedding_dimension"] {
        if let Some(width) = fields.get(field)
            && width.as_whole() != Some(u64::from(config.pooled()))
        {
            let (name, floats) = match config.dense[..] {
                [] => ("hidden_size", config.hidden),
                _ => ("embedding_dim", config.pooled()),
            };
            let rule = ["must be ", name, " of config.json, ", &floats.to_string()];
            return Err(fields.wrong(field, Some(width), &rule.concat()));
        }
    }
    // The pooling's name overrides all flags; without either it is the mean.
    let mut modes = Vec::new();
    match fields.text("pooling_mode")? {
        Some(mode) => modes.push(mode),
        None => {
            if fields.flag(&[MODE, MEAN].concat())?.unwrap_or(true) {
                modes.push(MEAN);
            }
            for name in fields.names() {
                if let Some(mode) = name.strip_prefix(MODE)
                    && mode != MEAN
                    && fields.flag(name)? == Some(true)
                {
                    modes.push(mode);
                }
            }
        }
    }
    match modes[..] {
        [MEAN | "mean"] => Ok(Pooling::Mean),
        ["cls_token" | "cls"] => Ok(Pooling::Cls),
        // Behind the largest a product would not give what it gives in front.
        ["max_tokens" | "max"] if config.dense.is_empty() => Ok(Pooling::Max),
        ["lasttoken"] => Ok(Pooling::LastToken),
        _ => {
            let modes = modes.iter().map(|mode| Value::Text((*mode).into()));
            let modes = shown(&Value::List(modes.collect()));
            let place = [&fields.place, ": pooling_mode"].concat();
            let known = ", and only one of mean, cls, max and lasttoken is known";
            Err(unknown(&place, &["is ", &modes, known].concat()))
        }
    }
}

fn dense(path: &str, fields: &Fields<'_>) -> Result<Dense, Error> {
    const NAME: &str = "activation_function";
    for name in ["module_input_name", "module_output_name"] {
        let value = fields.text(name)?;
        if value.is_some_and(|value| value != "sentence_embedding") {
            return Err(fields.unknown(name, "only \"sentence_embedding\" is known"));
        }
    }
    fields.only("use_residual", &Value::Flag(false))?;
    let activation = match fields.text(NAME)? {
        // What sentence-transformers takes where nothing is said.
        None => Activation::Tanh,
        Some(name) => of_torch(name).ok_or_else(|| fields.unknown(NAME, OF_TORCH))?,
    };
    Ok(Dense {
        source: Source::Module([path, "/model.safetensors"].concat()),
        name: "linear".into(),
        inputs: fields.whole("in_features", 1..=1 << 16, None)?,
        outputs: fields.whole("out_features", 1..=1 << 16, None)?,
        bias: fields.flag("bias")?.unwrap_or(true).into(),
        activation,
        norm: None,
    })
}

/// The functions that [`of_torch`] knows.
pub(super) const OF_TORCH: &str =
    "only Identity, Tanh, ReLU, GELU, SiLU and Sigmoid of torch are known";

/// A function by the name of its class in torch.
pub(super) fn of_torch(name: &str) -> Option<Activation> {
    match name.rsplit('.').next().unwrap_or_default() {
        "Identity" => Some(Activation::Identity),
        "Tanh" => Some(Activation::Tanh),
        "ReLU" => Some(Activation::Relu),
        "GELU" => Some(Activation::Gelu),
        "SiLU" => Some(Activation::Silu),
        "Sigmoid" => Some(Activation::Sigmoid),
        _ => None,
    }
}
