//! An encoder as data: sizes, and which of the known parts it is made of.
//!
//! What a folder says of a model becomes a [`Config`] in `folder`; what is computed by one is said
//! in `forward`, and the names of its tensors in `weights`.

use crate::graph::{Precision, UnaryFn};

/// How the tensors of an encoder are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// BERT.
    Bert,
    /// RoBERTa and XLM-RoBERTa.
    Roberta,
    /// DistilBERT.
    DistilBert,
    /// MPNet.
    Mpnet,
    /// ModernBERT.
    ModernBert,
    /// NomicBERT.
    NomicBert,
    /// GTE, of Alibaba and of Snowflake.
    Gte,
    /// The second version of Jina's encoders.
    JinaV2,
    /// The third version of Jina's encoders.
    JinaV3,
    /// Qwen3.
    Qwen3,
    /// Gemma 3, for text.
    Gemma3,
    /// EmbeddingGemma 2, for text.
    EmbeddingGemma2,
}

/// How the vectors of a text's tokens become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of the tokens' vectors.
    Mean,
    /// The first token's vector.
    Cls,
    /// The largest of the tokens' floats at each place.
    Max,
    /// The last token's vector.
    LastToken,
}

/// A function of each float between two products, or behind the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The float itself.
    Identity,
    /// x · Φ(x), by the error function.
    Gelu,
    /// The approximation of gelu by tanh.
    GeluTanh,
    /// 0 where the float is negative.
    Relu,
    /// x · sigmoid(x), also called swish.
    Silu,
    /// Hyperbolic tangent.
    Tanh,
    /// 1 / (1 + e⁻ˣ).
    Sigmoid,
}

impl Activation {
    /// The function of a chain; `None` for the identity.
    pub(super) fn function(self) -> Option<UnaryFn> {
        match self {
            Activation::Identity => None,
            Activation::Gelu => Some(UnaryFn::Gelu),
            Activation::GeluTanh => Some(UnaryFn::GeluTanh),
            Activation::Relu => Some(UnaryFn::Relu),
            Activation::Silu => Some(UnaryFn::Silu),
            Activation::Tanh => Some(UnaryFn::Tanh),
            Activation::Sigmoid => Some(UnaryFn::Sigmoid),
        }
    }
}

/// Where the norms of a layer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormPlace {
    /// Behind each sum with a residual.
    After,
    /// In front of the attention and of the feed-forward network, and once behind the last layer.
    Before,
    /// The same, and behind the attention and the feed-forward network too, in front of the sum.
    Around,
}

/// How rows are normed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// By mean and variance (Ba, Kiros and Hinton, Layer Normalization, 2016).
    Layer,
    /// By the mean of squares (Zhang and Sennrich, Root Mean Square Layer Normalization, 2019).
    Rms,
}

/// The norms of an encoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norms {
    /// How rows are normed.
    pub kind: NormKind,
    /// Where the norms of a layer are.
    pub place: NormPlace,
    /// Whether what goes to the first layer is normed. Where it is, and norms are in front, the
    /// first attention has none of its own.
    pub is_embedding_normed: bool,
    /// Whether the files have weights less 1.
    pub are_less_one: bool,
}

impl Norms {
    /// The norms of BERT.
    pub const BERT: Norms = Norms {
        kind: NormKind::Layer,
        place: NormPlace::After,
        is_embedding_normed: true,
        are_less_one: false,
    };
}

/// What how far apart two tokens are adds to the score of an attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistanceBias {
    /// A number of a table, for each kind of distance and each head (Raffel and others, 2020,
    /// section 2.1).
    Learned,
    /// The distance times a slope of each head, which is negative (Press, Smith and Lewis, ALiBi,
    /// 2022, section 3), to both sides.
    Linear,
}

/// The norms of an attention's heads, each of which is normed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadNorms {
    /// No head is normed.
    Absent,
    /// Heads of queries and keys are normed, with weights (Henry and others, Query-Key
    /// Normalization for Transformers, 2020).
    QueriesAndKeys,
    /// Heads of queries and keys are normed with weights, and heads of values without.
    All,
}

/// The heads of an attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heads {
    /// Heads of queries.
    pub count: u32,
    /// Heads of keys and of values, a number that divides that of queries: neighboring heads of
    /// queries share one (Ainslie and others, GQA, 2023).
    pub of_keys: u32,
    /// Floats of a head.
    pub size: u32,
    /// The norms of heads.
    pub norms: HeadNorms,
    /// Whether a token attends to none behind it.
    pub is_causal: bool,
}

impl Heads {
    /// Heads that share the floats of a token evenly, each with keys of its own.
    pub const fn even(count: u32, floats: u32) -> Heads {
        let size = match floats.checked_div(count) {
            Some(size) => size,
            None => 0,
        };
        Heads {
            count,
            of_keys: count,
            size,
            norms: HeadNorms::Absent,
            is_causal: false,
        }
    }

    /// Heads of queries, keys and values together.
    pub fn all(self) -> u32 {
        self.turned().saturating_add(self.of_keys)
    }

    /// Heads of queries and keys together.
    pub fn turned(self) -> u32 {
        self.count.saturating_add(self.of_keys)
    }

    /// Heads that are normed; none or those in front.
    pub(super) fn normed(self) -> u32 {
        match self.norms {
            HeadNorms::Absent => 0,
            HeadNorms::QueriesAndKeys => self.turned(),
            HeadNorms::All => self.all(),
        }
    }

    /// Floats of all heads of queries.
    pub fn width(self) -> u32 {
        self.count.saturating_mul(self.size)
    }
}

/// A gated feed-forward network, whose first product is two halves: the activation of one times the
/// other (Shazeer, GLU Variants Improve Transformer, 2020).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The activation is of the first half.
    First,
    /// The activation is of the second half.
    Second,
}

/// Queries and keys that are turned by their places (Su and others, RoFormer, 2021, section 3.2):
/// each float of the first half of a head with one of the second, by an angle that grows with the
/// place, at the pace `scale` · `theta`^(−2 · i / size) for float `i`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotation {
    /// The base of the paces.
    pub theta: f64,
    /// What all paces are multiplied by, above 0 and at most 1.
    pub scale: f64,
}

/// Layers whose tokens attend only to their neighbors.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    /// How far away a neighbor may be.
    pub reach: u32,
    /// Whether each layer is one of these.
    pub layers: Vec<bool>,
    /// How queries and keys are turned there.
    pub rotation: Rotation,
    /// The heads there.
    pub heads: Heads,
}

/// The tokens that the tokens of a layer attend to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// To all of the text.
    All,
    /// To neighbors.
    Near,
}

/// Whether a bias is added to what a product or a norm gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// A bias is added.
    Added,
    /// No bias is added.
    Absent,
}

impl From<bool> for Bias {
    fn from(is_there: bool) -> Bias {
        match is_there {
            true => Bias::Added,
            false => Bias::Absent,
        }
    }
}

/// The products and norms that have a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Biases {
    /// The products around an attention.
    pub attention: Bias,
    /// The first product of a feed-forward network.
    pub inner: Bias,
    /// The second product of a feed-forward network.
    pub outer: Bias,
    /// Norms.
    pub norms: Bias,
}

impl Biases {
    /// Everywhere, as BERT has them.
    pub const ALL: Biases = Biases {
        attention: Bias::Added,
        inner: Bias::Added,
        outer: Bias::Added,
        norms: Bias::Added,
    };

    /// Nowhere.
    pub const NONE: Biases = Biases {
        attention: Bias::Absent,
        inner: Bias::Absent,
        outer: Bias::Absent,
        norms: Bias::Absent,
    };
}

/// Where a tensor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In `model.safetensors`, behind one of the family's prefixes.
    Encoder,
    /// In `model.safetensors`, by its whole name.
    Head,
    /// In the file of this name, by its whole name.
    Module(String),
}

impl Source {
    /// The name of the file.
    pub fn file(&self) -> &str {
        match self {
            Source::Encoder | Source::Head => "model.safetensors",
            Source::Module(file) => file,
        }
    }
}

/// A layer behind the pooling: a `Dense` module, or a part of a classification head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dense {
    /// Where its tensors are.
    pub source: Source,
    /// The name of the tensors, without `.weight` and `.bias`.
    pub name: String,
    /// Floats that go in.
    pub inputs: u32,
    /// Floats that come out.
    pub outputs: u32,
    /// Whether it has a bias.
    pub bias: Bias,
    /// What is done with each float that comes out.
    pub activation: Activation,
    /// The name of the norm behind that, without `.weight`; it has no bias.
    pub norm: Option<String>,
}

/// What scores a text by the words that may come next: by how much the logit of one is above that of
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    /// The token whose logit counts for the score.
    pub yes: u32,
    /// The token whose logit counts against it.
    pub no: u32,
    /// What is done with the difference.
    pub activation: Activation,
}

/// An encoder: embeddings of tokens, of positions and of types, then layers of attention and a
/// feed-forward network, each with a residual and a norm (Devlin and others, 2018, section 3 and
/// appendix A.2), then what makes one vector of the tokens' vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How the tensors are named.
    pub family: Family,
    /// Floats of a token's vector.
    pub hidden: u32,
    /// Layers.
    pub layers: u32,
    /// The heads of an attention, in the layers that attend to all tokens.
    pub heads: Heads,
    /// What products of queries and keys are multiplied by; `None` is one over the square root of
    /// a head's floats.
    pub score_scale: Option<f32>,
    /// Floats between the two products of a feed-forward network.
    pub intermediate: u32,
    /// What is done between the two products of a feed-forward network.
    pub activation: Activation,
    /// Whether a feed-forward network is gated, and which half gates.
    pub gate: Option<Gate>,
    /// The norms.
    pub norms: Norms,
    /// The products and norms that have a bias.
    pub biases: Biases,
    /// Tokens of the vocabulary: all ids are below.
    pub vocab: u32,
    /// The positions that there are: rows of the table of positions, where there is one.
    pub positions: u32,
    /// Whether there is a table of positions.
    pub has_position_table: bool,
    /// The row of a text's first token in the table of positions: 0, and where texts are padded
    /// with an id that has no position, 1 + that id.
    pub first_position: u32,
    /// Rows of the table of types; 0 where there is no such table. The tokens of a single text have
    /// the first type, those of a pair's second text the second.
    pub types: u32,
    /// What the rows of words are multiplied by before anything is added.
    pub word_scale: Option<f32>,
    /// Floats of per-layer embeddings (Gemma 3n, 2025): of what goes to the first layer a product
    /// and a norm make so many for each layer, which gate a third sum with the residual there.
    /// `None` where there are none.
    pub per_layer_embedding: Option<u32>,
    /// Whether what a layer gives is multiplied by a number of its own.
    pub are_layers_scaled: bool,
    /// What how far apart two tokens are adds to the score of an attention, in all layers.
    pub distance_bias: Option<DistanceBias>,
    /// How queries and keys are turned by their places, in the layers that attend to all tokens.
    pub rotation: Option<Rotation>,
    /// The layers that attend only to neighbors; these turn queries and keys too.
    pub near: Option<Near>,
    /// The number that is added to variances before their square root is taken.
    pub epsilon: f32,
    /// How tokens become one vector.
    pub pooling: Pooling,
    /// Layers behind the pooling, in order.
    pub dense: Vec<Dense>,
    /// What gives one number in place of the vector, if anything does: the rows of words are those of
    /// the embeddings.
    pub answers: Option<Answers>,
    /// Floats that are left of a vector that is cut off; `None` where it is whole.
    pub cut: Option<u32>,
    /// Whether the vector is divided by its length at last.
    pub normalize: bool,
    /// The most tokens of a text, those at its ends included.
    pub max_tokens: u32,
    /// What products of weights are computed in; no folder says it.
    pub precision: Precision,
}

impl Config {
    /// Floats of the vector that comes out.
    pub fn dimensions(&self) -> u32 {
        self.cut.unwrap_or(self.pooled())
    }

    /// Floats that the first product of a feed-forward network gives.
    pub(super) fn inner(&self) -> u32 {
        let halves = if self.gate.is_some() { 2 } else { 1 };
        self.intermediate.saturating_mul(halves)
    }

    /// Floats of the vector before it is cut.
    pub(super) fn pooled(&self) -> u32 {
        match self.answers {
            Some(_) => 1,
            None => self.dense.last().map_or(self.hidden, |last| last.outputs),
        }
    }

    /// The tokens that the tokens of a layer attend to.
    pub fn sight(&self, layer: u32) -> Sight {
        let near = self.near.as_ref();
        match near.and_then(|near| near.layers.get(layer as usize)) {
            Some(true) => Sight::Near,
            _ => Sight::All,
        }
    }

    /// How far away the keys are that a token attends to where it has this sight; `None` is however
    /// far.
    pub(super) fn window(&self, sight: Sight) -> Option<u32> {
        match sight {
            Sight::All => None,
            Sight::Near => self.near.as_ref().map(|near| near.reach),
        }
    }

    /// How queries and keys are turned where tokens have this sight.
    pub fn rotation(&self, sight: Sight) -> Option<Rotation> {
        match sight {
            Sight::All => self.rotation,
            Sight::Near => self.near.as_ref().map(|near| near.rotation),
        }
    }

    /// The heads of an attention where tokens have this sight.
    pub fn heads(&self, sight: Sight) -> Heads {
        match &self.near {
            Some(near) if sight == Sight::Near => near.heads,
            _ => self.heads,
        }
    }

    /// Floats of a token that go from one stage of the forward pass to the next: per-layer embeddings
    /// are computed from what went to the first layer.
    pub fn staged(&self) -> u32 {
        let vectors = 1 + u32::from(self.per_layer_embedding.is_some());
        self.hidden.saturating_mul(vectors)
    }

    /// Whether 16-bit floats hold the numbers in the layers.
    pub(super) fn fits_f16(&self) -> bool {
        !matches!(self.family, Family::Gemma3 | Family::EmbeddingGemma2)
    }

    /// The id that texts are padded with, where that id has no position.
    pub fn padding(&self) -> Option<u32> {
        self.first_position.checked_sub(1)
    }
}
