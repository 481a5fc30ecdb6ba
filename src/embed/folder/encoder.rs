//! What `config.json` says of an encoder, by a table of the architectures that are known.

use super::super::config::{Activation, Config, Family, MAX_LAYERS, Pooling};
use super::super::json::Value;
use super::fields::Fields;
use super::files::Files;
use super::{SENTENCE, Stop, TOKENIZER};
use crate::error::Error;
use crate::graph::chain::MAX_HEAD;

/// The most tokens of a vocabulary.
const MOST_TOKENS: u32 = 1 << 24;

/// An architecture, by its `model_type`.
struct Architecture {
    model_type: &'static str,
    family: Family,
    fields: &'static Names,
    /// Where texts are padded with an id that has no position: that id, unless a field says
    /// another one.
    padding: Option<u32>,
    has_types: bool,
    has_distance_bias: bool,
}

/// The names of fields that are not the same in all architectures.
struct Names {
    hidden: &'static str,
    layers: &'static str,
    heads: &'static str,
    intermediate: &'static str,
    activation: &'static str,
    /// `None` where the epsilon is 10⁻¹² whatever the file says.
    epsilon: Option<&'static str>,
}

const USUAL: Names = Names {
    hidden: "hidden_size",
    layers: "num_hidden_layers",
    heads: "num_attention_heads",
    intermediate: "intermediate_size",
    activation: "hidden_act",
    epsilon: Some("layer_norm_eps"),
};

const OF_DISTILBERT: Names = Names {
    hidden: "dim",
    layers: "n_layers",
    heads: "n_heads",
    intermediate: "hidden_dim",
    activation: "activation",
    epsilon: None,
};

const BERT: Architecture = Architecture {
    model_type: "bert",
    family: Family::Bert,
    fields: &USUAL,
    padding: None,
    has_types: true,
    has_distance_bias: false,
};

const ROBERTA: Architecture = Architecture {
    model_type: "roberta",
    family: Family::Roberta,
    padding: Some(1),
    ..BERT
};

const ARCHITECTURES: [Architecture; 5] = [
    BERT,
    ROBERTA,
    Architecture {
        model_type: "xlm-roberta",
        ..ROBERTA
    },
    Architecture {
        model_type: "distilbert",
        family: Family::DistilBert,
        fields: &OF_DISTILBERT,
        has_types: false,
        ..BERT
    },
    Architecture {
        model_type: "mpnet",
        family: Family::Mpnet,
        padding: Some(1),
        has_types: false,
        has_distance_bias: true,
        ..BERT
    },
];

/// The encoder, whose texts have at most `limit` tokens, with nothing behind it but the mean.
pub(super) fn encoder(json: &Fields<'_>, limit: Option<u32>) -> Result<Config, Error> {
    let of = architecture(json)?;
    let (names, activation) = (of.fields, activation(json, of.fields.activation)?);
    refuse_others(json, of)?;
    let most = 1 << 16;
    let hidden = json.whole(names.hidden, 1..=most, None)?;
    let heads = json.whole(names.heads, 1..=hidden, None)?;
    if !hidden.is_multiple_of(heads) || hidden / heads > MAX_HEAD {
        let (size, floats) = (hidden.to_string(), MAX_HEAD.to_string());
        let rule = [
            "must divide ",
            names.hidden,
            " ",
            &size,
            " into heads of at most ",
            &floats,
            " floats",
        ];
        return Err(json.wrong(names.heads, json.get(names.heads), &rule.concat()));
    }
    let first_position = match of.padding {
        None => 0,
        Some(usual) => 1 + json.whole("pad_token_id", 0..=MOST_TOKENS, Some(usual))?,
    };
    let from = first_position + 1;
    let positions = json.whole("max_position_embeddings", from..=most.max(from), None)?;
    let places = positions - first_position;
    let epsilon = match names.epsilon {
        Some(name) => json.number(name, 1e-12)?,
        None => 1e-12,
    };
    Ok(Config {
        family: of.family,
        hidden,
        layers: json.whole(names.layers, 1..=MAX_LAYERS, None)?,
        heads,
        intermediate: json.whole(names.intermediate, 1..=1 << 18, None)?,
        activation,
        vocab: json.whole("vocab_size", 1..=MOST_TOKENS, None)?,
        positions,
        first_position,
        types: match of.has_types {
            true => json.whole("type_vocab_size", 1..=1024, Some(2))?,
            false => 0,
        },
        has_distance_bias: of.has_distance_bias,
        #[expect(clippy::cast_possible_truncation, reason = "checked to be finite")]
        epsilon: epsilon as f32,
        pooling: Pooling::Mean,
        dense: Vec::new(),
        cut: None,
        normalize: false,
        max_tokens: limit.map_or(places, |limit| limit.min(places)),
    })
}

fn architecture(json: &Fields<'_>) -> Result<&'static Architecture, Error> {
    const FIELD: &str = "model_type";
    let Some(given) = json.text(FIELD)? else {
        return Err(json.wrong(FIELD, None, "must be a string"));
    };
    let mut known = ARCHITECTURES.iter();
    let found = known.find(|known| known.model_type == given);
    found.ok_or_else(|| {
        let known = ARCHITECTURES.each_ref().map(|known| known.model_type);
        let known = ["only ", &known.join(", "), " are known"].concat();
        json.unknown(FIELD, &known)
    })
}

/// Refuses encoders that compute in another way than their architecture's usual one.
fn refuse_others(json: &Fields<'_>, of: &Architecture) -> Result<(), Error> {
    const POSITIONS: &str = "position_embedding_type";
    if json.text(POSITIONS)?.is_some_and(|kind| kind != "absolute") {
        return Err(json.unknown(POSITIONS, "only \"absolute\" is known"));
    }
    const BUCKETS: &str = "relative_attention_num_buckets";
    let buckets = json.get(BUCKETS).map(Value::as_whole);
    if of.has_distance_bias && buckets.is_some_and(|buckets| buckets != Some(32)) {
        return Err(json.unknown(BUCKETS, "only 32 is known"));
    }
    json.only("is_decoder", &Value::Flag(false))?;
    json.only("add_cross_attention", &Value::Flag(false))
}

fn activation(json: &Fields<'_>, name: &str) -> Result<Activation, Error> {
    match json.text(name)? {
        None | Some("gelu") => Ok(Activation::Gelu),
        Some("gelu_new" | "gelu_pytorch_tanh") => Ok(Activation::GeluTanh),
        Some("relu") => Ok(Activation::Relu),
        Some("silu" | "swish") => Ok(Activation::Silu),
        Some(_) => {
            let known = "only gelu, gelu_new, gelu_pytorch_tanh, relu, silu and swish are known";
            Err(json.unknown(name, known))
        }
    }
}

/// How texts become tokens.
pub(super) struct Texts {
    /// The most tokens of a text, if something says so.
    pub(super) limit: Option<u32>,
    /// Whether texts are put in lower case before anything else.
    pub(super) lowercase: bool,
}

pub(super) fn texts(files: &Files) -> Result<Texts, Stop> {
    let mut texts = Texts {
        limit: None,
        lowercase: false,
    };
    if let Some(fields) = files.object(SENTENCE)? {
        texts.lowercase = fields.flag("do_lower_case")?.unwrap_or(false);
        texts.limit = fields.limit("max_seq_length")?;
    }
    // Without `max_seq_length` the tokenizer's own limit counts, as in sentence-transformers.
    if texts.limit.is_none() {
        texts.limit = tokenizer_limit(files)?;
    }
    Ok(texts)
}

/// The most tokens of a text by the settings of the tokenizer.
pub(super) fn tokenizer_limit(files: &Files) -> Result<Option<u32>, Stop> {
    match files.object(TOKENIZER)? {
        Some(fields) => Ok(fields.limit("model_max_length")?),
        None => Ok(None),
    }
}
