//! What makes one score of the vectors of a pair's tokens: a head for the classification of
//! sequences with one label, as sentence-transformers' `CrossEncoder` applies it.

use super::super::config::{Activation, Bias, Config, Dense, Family, Pooling, Source};
use super::super::json::Value;
use super::encoder;
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
    let score = score(json)?;
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
        | Family::Gemma3 => {
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
