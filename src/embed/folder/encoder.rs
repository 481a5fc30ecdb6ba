//! What `config.json` says of an encoder, by a table of the architectures that are known.

use super::super::config::{
    Activation, Bias, Biases, Config, Family, Gate, Heads, Near, NormKind, NormPlace, Norms,
    Pooling,
};
use super::super::json::Value;
use super::fields::Fields;
use super::files::Files;
use super::turns::{self, Kinds};
use super::{SENTENCE, Stop, TOKENIZER};
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
    norms: Norms,
    heads: Share,
    biases: Biases,
}

/// How heads share the floats of a token.
#[derive(Clone, Copy)]
enum Share {
    /// Evenly, and all attend to all tokens.
    Even,
    /// Each has so many floats, unless a field says another number; some share keys and values, and
    /// all are normed. A token attends to none behind it, unless a field says otherwise.
    Own(u32),
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
    /// The same, in layers of two kinds.
    TurnedTwice(&'static Kinds),
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

const OF_QWEN3: Names = Names {
    epsilon: Some("rms_norm_eps"),
    usual_epsilon: 1e-6,
    ..USUAL
};

const OF_GEMMA3: Names = Names {
    activation: "hidden_activation",
    ..OF_QWEN3
};

const KINDS_OF_MODERNBERT: Kinds = Kinds {
    thetas: [
        ("global_rope_theta", 160_000.0),
        ("local_rope_theta", 10_000.0),
    ],
    every: &["global_attn_every_n_layers"],
    usual_every: 3,
    all_at: |every| every,
    window: "local_attention",
    usual_window: 128,
};

const KINDS_OF_GEMMA3: Kinds = Kinds {
    thetas: [("rope_theta", 1e6), ("rope_local_base_freq", 10_000.0)],
    every: &["sliding_window_pattern", "_sliding_window_pattern"],
    usual_every: 6,
    all_at: |every| every - 1,
    window: "sliding_window",
    usual_window: 4096,
};

const BERT: Architecture = Architecture {
    model_type: "bert",
    family: Family::Bert,
    fields: &USUAL,
    places: Places::Table,
    types: Some(2),
    gate: None,
    norms: Norms::BERT,
    heads: Share::Even,
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

const QWEN3: Architecture = Architecture {
    model_type: "qwen3",
    family: Family::Qwen3,
    fields: &OF_QWEN3,
    places: Places::Turned(10_000.0),
    types: None,
    gate: Some(Gate::First),
    norms: Norms {
        kind: NormKind::Rms,
        place: NormPlace::Before,
        is_embedding_normed: false,
        are_less_one: false,
    },
    heads: Share::Own(128),
    biases: Biases::NONE,
};

const ARCHITECTURES: [Architecture; 12] = [
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
        places: Places::TurnedTwice(&KINDS_OF_MODERNBERT),
        types: None,
        gate: Some(Gate::First),
        norms: Norms {
            place: NormPlace::Before,
            ..Norms::BERT
        },
        biases: Biases::NONE,
        ..BERT
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
    QWEN3,
    Architecture {
        model_type: "gemma3_text",
        family: Family::Gemma3,
        fields: &OF_GEMMA3,
        places: Places::TurnedTwice(&KINDS_OF_GEMMA3),
        norms: Norms {
            place: NormPlace::Around,
            are_less_one: true,
            ..QWEN3.norms
        },
        heads: Share::Own(256),
        ..QWEN3
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
    let heads = heads(json, of, hidden)?;
    let layers = json.whole(names.layers, 1..=MOST_LAYERS, None)?;
    let padding = match of.places {
        Places::Padded(usual) | Places::PaddedWithBias(usual) => Some(usual),
        Places::Table | Places::Turned(_) | Places::TurnedTwice(_) => None,
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
    let epsilon = match names.epsilon {
        Some(name) => json.number(name, names.usual_epsilon)?,
        None => names.usual_epsilon,
    };
    let (rotation, near) = match of.places {
        Places::Turned(usual) => (
            Some(turns::one(json, names.theta, usual, heads.size)?),
            None,
        ),
        Places::TurnedTwice(kinds) => {
            let [all, near] = kinds.rotations(json, heads.size)?;
            let reach = kinds.reach(json, heads)?;
            let near = Near {
                reach,
                layers: kinds.near(json, layers)?,
                rotation: near,
            };
            (Some(all), Some(near))
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
        norms: of.norms,
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
        word_scale: match of.family {
            #[expect(clippy::cast_precision_loss, reason = "at most 2^16")]
            Family::Gemma3 => Some((hidden as f32).sqrt()),
            _ => None,
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

/// The heads of an encoder whose tokens have so many floats.
fn heads(json: &Fields<'_>, of: &Architecture, hidden: u32) -> Result<Heads, Error> {
    let is_nomics_own = of.family == Family::NomicBert && json.get(OF_NOMIC.hidden).is_some();
    let names = if is_nomics_own { &OF_NOMIC } else { of.fields };
    let most = match of.heads {
        Share::Even => hidden,
        Share::Own(_) => 1 << 10,
    };
    let count = json.whole(names.heads, 1..=most, None)?;
    let Share::Own(usual) = of.heads else {
        if !hidden.is_multiple_of(count) || hidden / count > MAX_HEAD {
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
        return Ok(Heads::even(count, hidden));
    };
    const OF_KEYS: &str = "num_key_value_heads";
    const BOTH_WAYS: &str = "use_bidirectional_attention";
    let of_keys = json.whole(OF_KEYS, 1..=count, Some(count))?;
    if !count.is_multiple_of(of_keys) {
        let rule = ["must divide ", names.heads, " ", &count.to_string()];
        return Err(json.wrong(OF_KEYS, json.get(OF_KEYS), &rule.concat()));
    }
    let size = json.whole("head_dim", 1..=MAX_HEAD, Some(usual))?;
    let scaled = json.number("query_pre_attn_scalar", f64::from(size))?;
    Ok(Heads {
        of_keys,
        #[expect(clippy::cast_possible_truncation, reason = "a factor in 32 bits")]
        scale: Some((1.0 / scaled.sqrt()) as f32),
        are_normed: true,
        is_causal: !json.flag(BOTH_WAYS)?.unwrap_or(false),
        ..Heads::even(count, count * size)
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
    let is_turned = matches!(of.places, Places::Turned(_) | Places::TurnedTwice(_));
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
    const CAPPING: &str = "attn_logit_softcapping";
    if json.get(CAPPING).is_some() {
        return Err(json.unknown(CAPPING, "only null is known"));
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
            Family::Qwen3 => &["attention_bias", "use_sliding_window"],
            Family::Gemma3 => &["attention_bias"],
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
