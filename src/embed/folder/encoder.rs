//! What `config.json` says of an encoder, by a table of the architectures that are known.

use super::super::config::{Activation, Bias, Biases, Config, Family, Gate, NormPlace, Pooling};
use super::super::json::Value;
use super::fields::Fields;
use super::files::Files;
use super::{SENTENCE, Stop, TOKENIZER, turns};
use crate::error::Error;
use crate::graph::chain::MAX_HEAD;

/// The most tokens of a vocabulary.
const MOST_TOKENS: u32 = 1 << 24;

/// The most layers, of any encoder.
const MOST_LAYERS: u32 = 1024;

/// An architecture, by its `model_type`.
struct Architecture {
    model_type: &'static str,
    family: Family,
    fields: &'static Names,
    places: Places,
    /// Types of tokens, unless a field says another number; `None` where there is no such table.
    types: Option<u32>,
    gate: Option<Gate>,
    norm_place: NormPlace,
    biases: Biases,
}

/// How an architecture knows the places of tokens.
#[derive(Clone, Copy)]
enum Places {
    /// By a table.
    Table,
    /// By a table, in texts that are padded with an id that has no position: that one, unless a
    /// field says another.
    Padded(u32),
    /// The same, and by biases of distances.
    PaddedWithBias(u32),
    /// By turned queries and keys, with this base unless a field says another.
    Turned(f64),
    /// The same, with two bases, in layers of two kinds.
    TurnedTwice,
}

/// The names of fields that are not the same in all architectures.
struct Names {
    hidden: &'static str,
    layers: &'static str,
    heads: &'static str,
    intermediate: &'static str,
    activation: &'static str,
    positions: &'static str,
    /// `None` where the epsilon is 10⁻¹² whatever the file says.
    epsilon: Option<&'static str>,
    /// The epsilon where the file says none.
    usual_epsilon: f64,
    /// The base of turns.
    theta: &'static str,
}

const USUAL: Names = Names {
    hidden: "hidden_size",
    layers: "num_hidden_layers",
    heads: "num_attention_heads",
    intermediate: "intermediate_size",
    activation: "hidden_act",
    positions: "max_position_embeddings",
    epsilon: Some("layer_norm_eps"),
    usual_epsilon: 1e-12,
    theta: "rope_theta",
};

const OF_DISTILBERT: Names = Names {
    hidden: "dim",
    layers: "n_layers",
    heads: "n_heads",
    intermediate: "hidden_dim",
    activation: "activation",
    epsilon: None,
    ..USUAL
};

const OF_MODERNBERT: Names = Names {
    activation: "hidden_activation",
    epsilon: Some("norm_eps"),
    usual_epsilon: 1e-5,
    ..USUAL
};

/// The names of Nomic's own configurations; transformers writes the usual ones.
const OF_NOMIC: Names = Names {
    hidden: "n_embd",
    layers: "n_layer",
    heads: "n_head",
    intermediate: "n_inner",
    activation: "activation_function",
    positions: "n_positions",
    epsilon: Some("layer_norm_epsilon"),
    theta: "rotary_emb_base",
    ..USUAL
};

const BERT: Architecture = Architecture {
    model_type: "bert",
    family: Family::Bert,
    fields: &USUAL,
    places: Places::Table,
    types: Some(2),
    gate: None,
    norm_place: NormPlace::After,
    biases: Biases::ALL,
};

const ROBERTA: Architecture = Architecture {
    model_type: "roberta",
    family: Family::Roberta,
    places: Places::Padded(1),
    ..BERT
};

const NOMIC: Architecture = Architecture {
    model_type: "nomic_bert",
    family: Family::NomicBert,
    places: Places::Turned(1000.0),
    gate: Some(Gate::Second),
    biases: Biases {
        norms: Bias::Added,
        ..Biases::NONE
    },
    ..BERT
};

const GTE: Architecture = Architecture {
    model_type: "gte",
    family: Family::Gte,
    places: Places::Turned(160_000.0),
    types: Some(1),
    gate: Some(Gate::Second),
    biases: Biases {
        inner: Bias::Absent,
        ..Biases::ALL
    },
    ..BERT
};

const ARCHITECTURES: [Architecture; 10] = [
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
        types: None,
        ..BERT
    },
    Architecture {
        model_type: "mpnet",
        family: Family::Mpnet,
        places: Places::PaddedWithBias(1),
        types: None,
        ..BERT
    },
    Architecture {
        model_type: "modernbert",
        family: Family::ModernBert,
        fields: &OF_MODERNBERT,
        places: Places::TurnedTwice,
        types: None,
        gate: Some(Gate::First),
        norm_place: NormPlace::Before,
        biases: Biases::NONE,
    },
    NOMIC,
    GTE,
    // The name that Alibaba's folders have for it.
    Architecture {
        model_type: "new",
        places: Places::Turned(10_000.0),
        ..GTE
    },
    Architecture {
        model_type: "jina_embeddings_v3",
        family: Family::JinaV3,
        places: Places::Turned(20_000.0),
        types: Some(1),
        ..BERT
    },
];

/// The encoder, whose texts have at most `limit` tokens, with nothing behind it but the mean.
pub(super) fn encoder(json: &Fields<'_>, limit: Option<u32>) -> Result<Config, Error> {
    let of = architecture(json)?;
    let is_nomics_own = of.family == Family::NomicBert && json.get(OF_NOMIC.hidden).is_some();
    let names = if is_nomics_own { &OF_NOMIC } else { of.fields };
    let activation = activation(json, names.activation, of.gate)?;
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
    let layers = json.whole(names.layers, 1..=MOST_LAYERS, None)?;
    let padding = match of.places {
        Places::Padded(usual) | Places::PaddedWithBias(usual) => Some(usual),
        Places::Table | Places::Turned(_) | Places::TurnedTwice => None,
    };
    let first_position = match padding {
        None => 0,
        Some(usual) => 1 + json.whole("pad_token_id", 0..=MOST_TOKENS, Some(usual))?,
    };
    let from = first_position + 1;
    let positions = json.whole(names.positions, from..=most.max(from), None)?;
    // Nomic's own code turns texts that are longer than these at another pace.
    let trained = json.whole("max_trained_positions", 1..=u32::MAX, Some(positions))?;
    let positions = positions.min(trained.max(from));
    let places = positions - first_position;
    let size = hidden / heads;
    let epsilon = match names.epsilon {
        Some(name) => json.number(name, names.usual_epsilon)?,
        None => names.usual_epsilon,
    };
    let (rotation, near) = match of.places {
        Places::Turned(usual) => (Some(turns::one(json, names.theta, usual, size)?), None),
        Places::TurnedTwice => {
            let [all, near] = turns::two(json, size)?;
            (Some(all), Some(turns::neighbors(json, near, layers)?))
        }
        Places::Table | Places::Padded(_) | Places::PaddedWithBias(_) => (None, None),
    };
    Ok(Config {
        family: of.family,
        hidden,
        layers,
        heads,
        intermediate: json.whole(names.intermediate, 1..=1 << 18, None)?,
        activation,
        gate: of.gate,
        norm_place: of.norm_place,
        biases: of.biases,
        vocab: json.whole("vocab_size", 1..=MOST_TOKENS, None)?,
        positions,
        has_position_table: rotation.is_none(),
        first_position,
        types: match of.types {
            // Of GTE there are models without the table.
            Some(usual) => {
                let least = u32::from(of.family != Family::Gte);
                json.whole("type_vocab_size", least..=1024, Some(usual))?
            }
            None => 0,
        },
        has_distance_bias: matches!(of.places, Places::PaddedWithBias(_)),
        rotation,
        near,
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
    let is_turned = matches!(of.places, Places::Turned(_) | Places::TurnedTwice);
    let (own, known) = match is_turned {
        true => (["rope", "rotary"], "only \"rope\" and \"rotary\" are known"),
        false => (["absolute"; 2], "only \"absolute\" is known"),
    };
    let kind = json.text(POSITIONS)?;
    if kind.is_some_and(|kind| !own.contains(&kind)) {
        return Err(json.unknown(POSITIONS, known));
    }
    const BUCKETS: &str = "relative_attention_num_buckets";
    let buckets = json.get(BUCKETS).map(Value::as_whole);
    if matches!(of.places, Places::PaddedWithBias(_))
        && buckets.is_some_and(|buckets| buckets != Some(32))
    {
        return Err(json.unknown(BUCKETS, "only 32 is known"));
    }
    for flag in of.family.off() {
        json.only(flag, &Value::Flag(false))?;
    }
    json.only("is_decoder", &Value::Flag(false))?;
    json.only("add_cross_attention", &Value::Flag(false))
}

impl Family {
    /// Switches that would change what is computed, and are known only as they are off.
    fn off(self) -> &'static [&'static str] {
        match self {
            Family::ModernBert => &["norm_bias", "attention_bias", "mlp_bias"],
            Family::NomicBert => &[
                "prenorm",
                "qkv_proj_bias",
                "mlp_fc1_bias",
                "mlp_fc2_bias",
                "rotary_emb_interleaved",
                "use_rms_norm",
                "parallel_block",
            ],
            Family::Gte => &["logn_attention_scale"],
            _ => &[],
        }
    }
}

/// The function of a field, between the products of a network, which may be gated.
pub(super) fn activation(
    json: &Fields<'_>,
    name: &str,
    gate: Option<Gate>,
) -> Result<Activation, Error> {
    match json.text(name)? {
        // A gated network has the name of both.
        Some("swiglu") if gate.is_some() => Ok(Activation::Silu),
        Some("geglu") if gate.is_some() => Ok(Activation::Gelu),
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
