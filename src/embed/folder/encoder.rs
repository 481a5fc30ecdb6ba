//! What `config.json` says of an encoder, by the table of the architectures that are known.

use super::super::config::{
    Activation, Bias, Config, Dense, DistanceBias, Family, Heads, Near, Pooling, Rotation, Source,
};
use super::super::json::Value;
use super::architectures::{ARCHITECTURES, Architecture, JINA_V2, Names, OF_NOMIC, Places};
use super::fields::Fields;
use super::files::Files;
use super::heads::{self, BOTH_WAYS, CAUSAL, Sizes};
use super::turns;
use super::{SENTENCE, Stop, TOKENIZER};
use crate::error::Error;
use crate::graph::Precision;

/// The most tokens of a vocabulary.
const MOST_TOKENS: u32 = 1 << 24;

/// The most layers, of any encoder.
const MOST_LAYERS: u32 = 1024;

/// The most positions of a text. Where no table has them, longer texts are cut.
const MOST_POSITIONS: u32 = 1 << 16;

/// The field that says of which architecture an encoder is.
const KIND: &str = "model_type";

/// The field that says how an encoder knows the places of tokens.
const POSITIONS: &str = "position_embedding_type";

/// The encoder, whose texts have at most `limit` tokens, with nothing behind it but the mean.
pub(super) fn encoder(json: &Fields<'_>, limit: Option<u32>) -> Result<Config, Error> {
    let json = &of_texts(json)?;
    let of = architecture(json)?;
    let names = names_of(json, of);
    let activation = activation(json, names.activation, of)?;
    refuse_others(json, of)?;
    let most = 1 << 16;
    let hidden = json.whole(names.hidden, 1..=most, None)?;
    let layers = json.whole(names.layers, 1..=MOST_LAYERS, None)?;
    let near = match of.places {
        Places::TurnedTwice(kinds) => kinds.near(json, layers)?,
        _ => Vec::new(),
    };
    let sizes = Sizes {
        hidden,
        near: &near,
    };
    let heads = heads::heads(json, of.heads, names, sizes)?;
    let [first_position, positions] = positions(json, of, names)?;
    let places = positions - first_position;
    let epsilon = match names.epsilon {
        Some(name) => json.number(name, names.usual_epsilon)?,
        None => names.usual_epsilon,
    };
    let (rotation, near) = turns_of(json, of, heads.by_sight, near)?;
    let behind = embedded(json, of, hidden)?;
    Ok(Config {
        family: of.family,
        hidden,
        layers,
        heads: heads.by_sight[0],
        score_scale: heads.score_scale,
        intermediate: json.whole(names.intermediate, 1..=1 << 18, None)?,
        activation,
        gate: of.gate,
        norms: of.norms,
        biases: of.biases,
        vocab: json.whole("vocab_size", 1..=MOST_TOKENS, None)?,
        positions,
        has_position_table: rotation.is_none() && !matches!(of.places, Places::Linear),
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
            Family::Gemma3 | Family::EmbeddingGemma2 => Some((hidden as f32).sqrt()),
            _ => None,
        },
        per_layer_embedding: match of.family {
            Family::EmbeddingGemma2 => {
                Some(json.whole("hidden_size_per_layer_input", 1..=most, Some(512))?)
            }
            _ => None,
        },
        are_layers_scaled: of.family == Family::EmbeddingGemma2,
        distance_bias: match of.places {
            Places::PaddedWithBias(_) => Some(DistanceBias::Learned),
            Places::Linear => Some(DistanceBias::Linear),
            _ => None,
        },
        rotation,
        near,
        #[expect(clippy::cast_possible_truncation, reason = "checked to be finite")]
        epsilon: epsilon as f32,
        pooling: Pooling::Mean,
        dense: behind.into_iter().collect(),
        answers: None,
        cut: None,
        normalize: false,
        max_tokens: limit.map_or(places, |limit| limit.min(places)),
        precision: Precision::F32,
    })
}

/// The position of a text's first token, and how many positions there are.
fn positions(json: &Fields<'_>, of: &Architecture, names: &Names) -> Result<[u32; 2], Error> {
    let padding = match of.places {
        Places::Padded(usual) | Places::PaddedWithBias(usual) => Some(usual),
        Places::Table | Places::Linear | Places::Turned(_) | Places::TurnedTwice(_) => None,
    };
    let first_position = match padding {
        None => 0,
        Some(usual) => 1 + json.whole("pad_token_id", 0..=MOST_TOKENS, Some(usual))?,
    };
    let from = first_position + 1;
    let most = match of.places {
        Places::Turned(_) | Places::TurnedTwice(_) => u32::MAX,
        _ => MOST_POSITIONS.max(from),
    };
    let positions = json.whole(names.positions, from..=most, None)?;
    let positions = positions.min(MOST_POSITIONS.max(from));
    // Nomic's own code turns texts that are longer than these at another pace.
    let trained = json.whole("max_trained_positions", 1..=u32::MAX, Some(positions))?;
    Ok([first_position, positions.min(trained.max(from))])
}

/// What is said of texts, where an encoder is for images and sounds too.
fn of_texts<'a>(json: &Fields<'a>) -> Result<Fields<'a>, Error> {
    const TEXTS: &str = "text_config";
    if json.text(KIND)? != Some("embedding_gemma2") {
        return Ok(json.clone());
    }
    let texts = json.object(TEXTS)?;
    texts.ok_or_else(|| json.wrong(TEXTS, None, "must be an object"))
}

/// The product that an encoder has for each token's vector at last. Behind the mean of these it
/// gives the same.
fn embedded(json: &Fields<'_>, of: &Architecture, hidden: u32) -> Result<Option<Dense>, Error> {
    if of.family != Family::EmbeddingGemma2 {
        return Ok(None);
    }
    Ok(Some(Dense {
        source: Source::Encoder,
        name: "embedding_projection".into(),
        inputs: hidden,
        outputs: json.whole("embedding_dim", 1..=1 << 16, Some(768))?,
        bias: Bias::Absent,
        activation: Activation::Identity,
        norm: None,
    }))
}

/// The names of fields, which are not the architecture's usual ones in Nomic's own folders.
fn names_of(json: &Fields<'_>, of: &Architecture) -> &'static Names {
    let is_nomics_own = of.family == Family::NomicBert && json.get(OF_NOMIC.hidden).is_some();
    if is_nomics_own { &OF_NOMIC } else { of.fields }
}

/// How queries and keys are turned: in layers that attend to all tokens, and in those that attend to
/// neighbors.
fn turns_of(
    json: &Fields<'_>,
    of: &Architecture,
    [all, near]: [Heads; 2],
    layers: Vec<bool>,
) -> Result<(Option<Rotation>, Option<Near>), Error> {
    let theta = names_of(json, of).theta;
    Ok(match of.places {
        Places::Turned(usual) => (Some(turns::one(json, theta, usual, all.size)?), None),
        Places::TurnedTwice(kinds) => {
            let [rotation, near_rotation] = kinds.rotations(json, [all, near])?;
            let near = Near {
                reach: kinds.reach(json, near)?,
                layers,
                rotation: near_rotation,
                heads: near,
            };
            (Some(rotation), Some(near))
        }
        Places::Table | Places::Linear | Places::Padded(_) | Places::PaddedWithBias(_) => {
            (None, None)
        }
    })
}

fn architecture(json: &Fields<'_>) -> Result<&'static Architecture, Error> {
    let Some(given) = json.text(KIND)? else {
        return Err(json.wrong(KIND, None, "must be a string"));
    };
    if given == "bert" && json.text(POSITIONS)? == Some("alibi") {
        return Ok(&JINA_V2);
    }
    let mut known = ARCHITECTURES.iter();
    let found = known.find(|known| known.model_type == given);
    found.ok_or_else(|| {
        let known = ARCHITECTURES.each_ref().map(|known| known.model_type);
        let known = ["only ", &known.join(", "), " are known"].concat();
        json.unknown(KIND, &known)
    })
}

/// Refuses encoders that compute in another way than their architecture's usual one.
fn refuse_others(json: &Fields<'_>, of: &Architecture) -> Result<(), Error> {
    let (own, known) = match of.places {
        Places::Turned(_) | Places::TurnedTwice(_) => {
            (["rope", "rotary"], "only \"rope\" and \"rotary\" are known")
        }
        Places::Linear => (["alibi"; 2], "only \"alibi\" is known"),
        _ => (["absolute"; 2], "only \"absolute\" is known"),
    };
    let kind = json.text(POSITIONS)?;
    // Nothing of ModernBERT reads it, and its models have what their tools left there.
    let is_read = of.family != Family::ModernBert;
    if is_read && kind.is_some_and(|kind| !own.contains(&kind)) {
        return Err(json.unknown(POSITIONS, known));
    }
    const BUCKETS: &str = "relative_attention_num_buckets";
    let buckets = json.get(BUCKETS).map(Value::as_whole);
    if matches!(of.places, Places::PaddedWithBias(_))
        && buckets.is_some_and(|buckets| buckets != Some(32))
    {
        return Err(json.unknown(BUCKETS, "only 32 is known"));
    }
    if of.family == Family::JinaV2 {
        refuse_other_jina(json)?;
    }
    // Transformers counts the neighbors of Gemma's tokens in another way then.
    if of.family == Family::Gemma3 && json.flag(BOTH_WAYS)? != Some(true) {
        json.only(CAUSAL, &Value::Flag(true))?;
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

/// Refuses what the second version of Jina's encoders has of other kinds.
fn refuse_other_jina(json: &Fields<'_>) -> Result<(), Error> {
    const NETWORK: &str = "feed_forward_type";
    if json.text(NETWORK)? != Some("geglu") {
        return Err(json.unknown(NETWORK, "only \"geglu\" is known"));
    }
    const CODE: &str = "auto_map";
    let Some(code) = json.object(CODE)? else {
        return Ok(());
    };
    let is_other = |name: &str| {
        let place = code.get(name).and_then(Value::as_text);
        place.is_some_and(|place| place.contains("qk-post-norm"))
    };
    match code.names().any(is_other) {
        true => Err(json.unknown(CODE, "encoders that norm queries and keys are not known")),
        false => Ok(()),
    }
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
            Family::Gemma3 | Family::EmbeddingGemma2 => &["attention_bias"],
            _ => &[],
        }
    }
}

/// The function of a field, between the products of a network of this architecture.
fn activation(json: &Fields<'_>, name: &str, of: &Architecture) -> Result<Activation, Error> {
    match json.text(name)? {
        None => Ok(of.activation),
        // A gated network has the name of both.
        Some("swiglu") if of.gate.is_some() => Ok(Activation::Silu),
        Some("geglu") if of.gate.is_some() => Ok(Activation::Gelu),
        Some(_) => function(json, name),
    }
}

/// The function of a field; gelu where it is missing.
pub(super) fn function(json: &Fields<'_>, name: &str) -> Result<Activation, Error> {
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
    let mut processed = None;
    if let Some(fields) = files.object(SENTENCE)? {
        texts.lowercase = fields.flag("do_lower_case")?.unwrap_or(false);
        texts.limit = fields.limit("max_seq_length")?;
        processed = max_length(&fields)?;
    }
    // Without `max_seq_length` the tokenizer's own limit counts, as in sentence-transformers.
    let of_tokenizer = tokenizer_limit(files)?;
    texts.limit = texts.limit.or(of_tokenizer);
    let limits = [texts.limit, processed];
    texts.limit = limits.into_iter().flatten().min();
    Ok(texts)
}

/// The most tokens of a text by what the tokenizer is told for each.
fn max_length(fields: &Fields<'_>) -> Result<Option<u32>, Error> {
    let given = fields.object("processing_kwargs")?;
    let of_texts = given.map(|given| given.object("text")).transpose()?;
    match of_texts.flatten() {
        Some(text) => text.limit("max_length"),
        None => Ok(None),
    }
}

/// The most tokens of a text by the settings of the tokenizer, which must cut a longer one's end.
pub(super) fn tokenizer_limit(files: &Files) -> Result<Option<u32>, Stop> {
    match files.object(TOKENIZER)? {
        Some(fields) => {
            const SIDE: &str = "truncation_side";
            if fields.text(SIDE)?.is_some_and(|side| side != "right") {
                Err(fields.unknown(SIDE, "only \"right\" is known"))?;
            }
            Ok(fields.limit("model_max_length")?)
        }
        None => Ok(None),
    }
}
