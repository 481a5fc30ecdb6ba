//! What makes one score of the vectors of a pair's tokens, as sentence-transformers' `CrossEncoder`
//! does: a head for the classification of sequences with one label, or the logits of two words.

use super::super::config::{Activation, Answers, Bias, Config, Dense, Family, Pooling, Source};
use super::super::json::Value;
use super::encoder;
use super::fields::{Fields, refuse};
use super::files::Files;
use super::modules::{OF_TORCH, is_plain, of_torch};
use super::prompts::prompts;
use super::{MODULES, PROMPTS, Stop};
use crate::error::Error;

/// The words of Qwen3's vocabulary that its rerankers answer with, "yes" and "no", where the folder
/// says nothing (the card of Qwen3-Reranker).
const YES_NO: [u32; 2] = [9693, 2152];

const ARCHITECTURES: &str = "architectures";

/// The encoder with what makes a score behind it.
pub(super) fn behind(files: &Files, json: &Fields<'_>, encoder: Config) -> Result<Config, Stop> {
    refuse_prompt(files)?;
    let score = score(files, json)?;
    match encoder.family {
        Family::Qwen3 if has_architecture(json, "ForCausalLM") => {
            by_words(files, json, encoder, score)
        }
        _ => Ok(by_head(json, encoder, score)?),
    }
}

/// A decoder that is asked for one of two words.
fn by_words(
    files: &Files,
    json: &Fields<'_>,
    encoder: Config,
    score: Activation,
) -> Result<Config, Stop> {
    const TIED: &str = "tie_word_embeddings";
    if json.flag(TIED)? != Some(true) {
        let known = "of rerankers by the logits of words only those are known whose logits are by the table of embeddings, which is true";
        return Err(json.unknown(TIED, known).into());
    }
    let [yes, no] = words(files)?.unwrap_or(YES_NO);
    let answers = Answers {
        yes,
        no,
        activation: score,
    };
    Ok(Config {
        pooling: Pooling::LastToken,
        answers: Some(answers),
        ..encoder
    })
}

/// The words of the module `LogitScore`, where the folder has it.
fn words(files: &Files) -> Result<Option<[u32; 2]>, Stop> {
    files.want(&[MODULES])?;
    let Some(Value::List(list)) = files.value(MODULES)? else {
        return Ok(None);
    };
    let of = |field: &str, module: &Value| {
        let value = module.get(field)?;
        value.as_text().map(String::from)
    };
    let is_score =
        |module: &&Value| of("type", module).is_some_and(|kind| kind.ends_with("LogitScore"));
    let Some(path) = list
        .iter()
        .find(is_score)
        .and_then(|module| of("path", module))
    else {
        return Ok(None);
    };
    if !is_plain(&path) {
        let rule = "must name a folder below by letters, digits, '_', '-' and '.'";
        return Err(refuse(MODULES, rule).into());
    }
    let name = [&path, "/config.json"].concat();
    files.want(&[&name])?;
    let Some(fields) = files.object(&name)? else {
        return Err(refuse(&name, "is missing, which modules.json names").into());
    };
    let word = |field: &str| fields.whole(field, 0..=u32::MAX, None);
    Ok(Some([word("true_token_id")?, word("false_token_id")?]))
}

fn by_head(json: &Fields<'_>, encoder: Config, score: Activation) -> Result<Config, Error> {
    check_labels(json)?;
    if encoder.max_tokens < 3 {
        let problem = "must be 3 or more, for the tokens around a pair";
        return Err(refuse("tokenizer_config.json: model_max_length", problem));
    }
    let hidden = encoder.hidden;
    let layer = |source: Source, name: &str, activation: Activation| Dense {
        source,
        name: name.into(),
        inputs: hidden,
        outputs: hidden,
        bias: Bias::Added,
        activation,
        norm: None,
    };
    let last = |name: &str, score: Activation| Dense {
        outputs: 1,
        ..layer(Source::Head, name, score)
    };
    let mut pooling = Pooling::Cls;
    let dense = match encoder.family {
        Family::Bert | Family::Gte => vec![
            layer(Source::Encoder, "pooler.dense", Activation::Tanh),
            last("classifier", score),
        ],
        Family::Roberta => vec![
            layer(Source::Head, "classifier.dense", Activation::Tanh),
            last("classifier.out_proj", score),
        ],
        Family::ModernBert => {
            pooling = classifier_pooling(json)?;
            let activation = encoder::function(json, "classifier_activation")?;
            let dense = Dense {
                bias: json.flag("classifier_bias")?.unwrap_or(false).into(),
                norm: Some("head.norm".into()),
                ..layer(Source::Head, "head.dense", activation)
            };
            vec![dense, last("classifier", score)]
        }
        Family::Qwen3 => {
            pooling = Pooling::LastToken;
            vec![Dense {
                bias: Bias::Absent,
                ..last("score", score)
            }]
        }
        Family::JinaV2
        | Family::DistilBert
        | Family::Mpnet
        | Family::NomicBert
        | Family::JinaV3
        | Family::Gemma3
        | Family::EmbeddingGemma2 => {
            let known = "only bert, roberta, xlm-roberta, modernbert, gte, new and qwen3 are known as rerankers";
            return Err(json.unknown("model_type", known));
        }
    };
    Ok(Config {
        pooling,
        dense,
        ..encoder
    })
}

/// How ModernBERT's head makes one vector of the tokens' vectors.
fn classifier_pooling(json: &Fields<'_>) -> Result<Pooling, Error> {
    const FIELD: &str = "classifier_pooling";
    match json.text(FIELD)? {
        None | Some("cls") => Ok(Pooling::Cls),
        Some("mean") => Ok(Pooling::Mean),
        Some(_) => Err(json.unknown(FIELD, "only \"cls\" and \"mean\" are known")),
    }
}

/// Refuses models that classify no sequences, or give more than one number.
fn check_labels(json: &Fields<'_>) -> Result<(), Error> {
    let is_told = matches!(json.get(ARCHITECTURES), Some(Value::List(_)));
    if is_told && !has_architecture(json, "ForSequenceClassification") {
        let known = "only models for sequence classification are rerankers";
        return Err(json.unknown(ARCHITECTURES, known));
    }
    let labels = json
        .object("id2label")?
        .map(|labels| labels.names().count());
    let (field, is_one) = match labels {
        Some(labels) => ("id2label", labels == 1),
        // Two is usual where nothing is said.
        None => (
            "num_labels",
            json.whole("num_labels", 0..=u32::MAX, Some(2))? == 1,
        ),
    };
    match is_one {
        true => Ok(()),
        false => Err(json.unknown(field, "only one label is known")),
    }
}

/// Whether one of the architectures is for this.
fn has_architecture(json: &Fields<'_>, what: &str) -> bool {
    let is_for = |value: &Value| value.as_text().is_some_and(|name| name.ends_with(what));
    match json.get(ARCHITECTURES) {
        Some(Value::List(names)) => names.iter().any(is_for),
        _ => false,
    }
}

/// Refuses a prompt that stands before every pair.
fn refuse_prompt(files: &Files) -> Result<(), Stop> {
    let (_, prompt) = prompts(files)?;
    match files.object(PROMPTS)? {
        Some(fields) if !prompt.is_empty() => {
            Err(fields.unknown("default_prompt_name", "no prompt of rerankers is known"))?
        }
        _ => Ok(()),
    }
}

/// What is done with the number that the head gives: a sigmoid, unless the model says otherwise, in
/// the newest place of three.
fn score(files: &Files, json: &Fields<'_>) -> Result<Activation, Stop> {
    const OLD: &str = "sbert_ce_default_activation_function";
    const NEW: &str = "activation_fn";
    let places = [
        files.object(PROMPTS)?,
        json.object("sentence_transformers")?,
    ];
    let mut new = places.iter().flatten();
    let (fields, name) = match new.find(|settings| settings.get(NEW).is_some()) {
        Some(settings) => (settings, NEW),
        None => (json, OLD),
    };
    match fields.text(name)? {
        None => Ok(Activation::Sigmoid),
        Some(function) => Ok(of_torch(function).ok_or_else(|| fields.unknown(name, OF_TORCH))?),
    }
}
