//! What makes one score of the vectors of a pair's tokens: a head for the classification of
//! sequences with one label, as sentence-transformers' `CrossEncoder` applies it.

use super::super::config::{Activation, Config, Dense, Family, Pooling, Source};
use super::super::json::Value;
use super::fields::{Fields, refuse};
use super::modules::{OF_TORCH, of_torch};
use crate::error::Error;

/// The encoder with its head behind it.
pub(super) fn behind(json: &Fields<'_>, encoder: Config) -> Result<Config, Error> {
    check_labels(json)?;
    if encoder.max_tokens < 3 {
        let problem = "must be 3 or more, for the tokens around a pair";
        return Err(refuse("tokenizer_config.json: model_max_length", problem));
    }
    let hidden = encoder.hidden;
    let layer = |source: Source, name: &str, outputs: u32, activation: Activation| Dense {
        source,
        name: name.into(),
        inputs: hidden,
        outputs,
        has_bias: true,
        activation,
    };
    let score = score(json)?;
    let dense = match encoder.family {
        Family::Bert => [
            layer(Source::Encoder, "pooler.dense", hidden, Activation::Tanh),
            layer(Source::Head, "classifier", 1, score),
        ],
        Family::Roberta => [
            layer(Source::Head, "classifier.dense", hidden, Activation::Tanh),
            layer(Source::Head, "classifier.out_proj", 1, score),
        ],
        Family::DistilBert | Family::Mpnet => {
            let known = "only bert, roberta and xlm-roberta are known as rerankers";
            return Err(json.unknown("model_type", known));
        }
    };
    Ok(Config {
        pooling: Pooling::Cls,
        dense: dense.into(),
        ..encoder
    })
}

/// Refuses models that classify no sequences, or give more than one number.
fn check_labels(json: &Fields<'_>) -> Result<(), Error> {
    const ARCHITECTURES: &str = "architectures";
    let is_classifier = |value: &Value| {
        let name = value.as_text();
        name.is_some_and(|name| name.ends_with("ForSequenceClassification"))
    };
    if let Some(Value::List(names)) = json.get(ARCHITECTURES)
        && !names.iter().any(is_classifier)
    {
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

/// What is done with the number that the head gives: a sigmoid, unless the model says otherwise.
fn score(json: &Fields<'_>) -> Result<Activation, Error> {
    const OLD: &str = "sbert_ce_default_activation_function";
    const NEW: &str = "activation_fn";
    let settings = json.object("sentence_transformers")?;
    let new = settings.filter(|settings| settings.get(NEW).is_some());
    let (fields, name) = match &new {
        Some(settings) => (settings, NEW),
        None => (json, OLD),
    };
    match fields.text(name)? {
        None => Ok(Activation::Sigmoid),
        Some(function) => of_torch(function).ok_or_else(|| fields.unknown(name, OF_TORCH)),
    }
}
