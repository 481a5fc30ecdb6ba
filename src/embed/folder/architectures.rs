//! The architectures that are known, as a table: what each is made of, and the names of its fields.
//!
//! What a folder's own fields say besides is the matter of `encoder`.

use super::super::config::{Activation, Bias, Biases, Family, Gate, NormKind, NormPlace, Norms};
use super::turns::Kinds;

/// An architecture, by its `model_type`.
pub(super) struct Architecture {
    pub(super) model_type: &'static str,
    pub(super) family: Family,
    pub(super) fields: &'static Names,
    pub(super) places: Places,
    /// Types of tokens, unless a field says another number; `None` where there is no such table.
    pub(super) types: Option<u32>,
    pub(super) gate: Option<Gate>,
    /// The function of a feed-forward network, unless a field says another.
    pub(super) activation: Activation,
    pub(super) norms: Norms,
    pub(super) heads: Share,
    pub(super) biases: Biases,
}

/// How heads share the floats of a token.
#[derive(Clone, Copy)]
pub(super) enum Share {
    /// Evenly, and all attend to all tokens.
    Even,
    /// Each has so many floats, unless a field says another number; some share keys and values, and
    /// all are normed. A token attends to none behind it, unless a field says otherwise.
    Own(u32),
    /// Each layer's attend to all tokens or to neighbors, and have sizes by that; heads of values are
    /// normed as well.
    ByLayer,
}

/// How an architecture knows the places of tokens.
#[derive(Clone, Copy)]
pub(super) enum Places {
    /// By a table.
    Table,
    /// By a table, in texts that are padded with an id that has no position: that one, unless a
    /// field says another.
    Padded(u32),
    /// The same, and by biases of distances.
    PaddedWithBias(u32),
    /// By biases that grow with the distance.
    Linear,
    /// By turned queries and keys, with this base unless a field says another.
    Turned(f64),
    /// The same, in layers of two kinds.
    TurnedTwice(&'static Kinds),
}

/// The names of fields that are not the same in all architectures.
pub(super) struct Names {
    pub(super) hidden: &'static str,
    pub(super) layers: &'static str,
    pub(super) heads: &'static str,
    pub(super) intermediate: &'static str,
    pub(super) activation: &'static str,
    pub(super) positions: &'static str,
    /// `None` where the epsilon is 10⁻¹² whatever the file says.
    pub(super) epsilon: Option<&'static str>,
    /// The epsilon where the file says none.
    pub(super) usual_epsilon: f64,
    /// The base of turns.
    pub(super) theta: &'static str,
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
pub(super) const OF_NOMIC: Names = Names {
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
    ends_with_all: false,
    window: "local_attention",
    usual_window: 128,
    reach: |window| window / 2,
};

const KINDS_OF_GEMMA3: Kinds = Kinds {
    thetas: [("rope_theta", 1e6), ("rope_local_base_freq", 10_000.0)],
    every: &["sliding_window_pattern", "_sliding_window_pattern"],
    usual_every: 6,
    all_at: |every| every - 1,
    ends_with_all: false,
    window: "sliding_window",
    usual_window: 4096,
    reach: |window| window / 2,
};

/// The window of the second version is how far away a neighbor may be.
const KINDS_OF_EMBEDDING_GEMMA2: Kinds = Kinds {
    ends_with_all: true,
    usual_window: 512,
    reach: |window| window,
    ..KINDS_OF_GEMMA3
};

const BERT: Architecture = Architecture {
    model_type: "bert",
    family: Family::Bert,
    fields: &USUAL,
    places: Places::Table,
    types: Some(2),
    gate: None,
    activation: Activation::Gelu,
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

/// The second version of Jina's encoders, which says that it is a BERT.
pub(super) const JINA_V2: Architecture = Architecture {
    family: Family::JinaV2,
    places: Places::Linear,
    gate: Some(Gate::First),
    biases: Biases {
        inner: Bias::Absent,
        ..Biases::ALL
    },
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
    activation: Activation::Silu,
    norms: Norms {
        kind: NormKind::Rms,
        place: NormPlace::Before,
        is_embedding_normed: false,
        are_less_one: false,
    },
    heads: Share::Own(128),
    biases: Biases::NONE,
};

const GEMMA3: Architecture = Architecture {
    model_type: "gemma3_text",
    family: Family::Gemma3,
    fields: &OF_GEMMA3,
    activation: Activation::GeluTanh,
    places: Places::TurnedTwice(&KINDS_OF_GEMMA3),
    norms: Norms {
        place: NormPlace::Around,
        are_less_one: true,
        ..QWEN3.norms
    },
    heads: Share::Own(256),
    ..QWEN3
};

pub(super) const ARCHITECTURES: [Architecture; 13] = [
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
    GEMMA3,
    Architecture {
        model_type: "embedding_gemma2_text",
        family: Family::EmbeddingGemma2,
        places: Places::TurnedTwice(&KINDS_OF_EMBEDDING_GEMMA2),
        norms: Norms {
            are_less_one: false,
            ..GEMMA3.norms
        },
        heads: Share::ByLayer,
        ..GEMMA3
    },
];
