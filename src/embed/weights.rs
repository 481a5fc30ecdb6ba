//! The tensors of an encoder: their names in a model's files, their shapes, and how they lie on the
//! device.
//!
//! A family is a row of a table of names.

use super::config::{Bias, Config, Family, NormPlace, Sight, Source};
use super::positions;

/// The part that a tensor plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A table, or the factor of a product, which may be kept in fewer bits.
    Matrix,
    /// A bias, or the weights of a norm, which is kept in 32-bit floats.
    Vector,
    /// A bias by how far apart tokens are, which is kept in 32-bit floats and comes to the device as
    /// [`by_distance`](super::by_distance) lays it out.
    Distances,
    /// What is added to scores so that tokens attend to neighbors alone. No file has it.
    Neighbors,
    /// The cosines and sines that queries and keys are turned by, where tokens have this sight. No
    /// file has them.
    Angles(Sight),
}

impl Role {
    /// The floats of a tensor that no file has; `None` for one that a file has.
    pub fn computed(self, config: &Config) -> Option<Vec<f32>> {
        match self {
            Role::Matrix | Role::Vector | Role::Distances => None,
            Role::Neighbors => Some(positions::neighbors(config)),
            Role::Angles(sight) => Some(positions::angles(config, sight)),
        }
    }

    /// Whether the tensor is of all layers whose tokens have this sight.
    pub(super) fn is_shared(self, of: Sight) -> bool {
        match self {
            Role::Matrix | Role::Vector => false,
            Role::Distances => of == Sight::All,
            Role::Neighbors => of == Sight::Near,
            Role::Angles(sight) => of == sight,
        }
    }
}

/// A tensor on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    /// The part that the tensor plays.
    pub role: Role,
    /// Where its parts are.
    pub source: Source,
    /// Names of the file's tensors that this tensor is made of, without a prefix of [`prefixes`].
    /// The parts are equally long and lie one behind the other along the first axis: queries,
    /// keys and values are one product. None for a tensor that no file has.
    pub parts: Vec<String>,
    /// The dimensions of all parts together, in the file.
    pub stored: Vec<u32>,
    /// The dimensions on the device.
    pub dims: Vec<u32>,
}

impl Weight {
    /// The dimensions of each part.
    pub fn part_dims(&self) -> Vec<u32> {
        let parts = u32::try_from(self.parts.len()).unwrap_or(1).max(1);
        let mut dims = self.stored.clone();
        dims[0] /= parts;
        dims
    }
}

/// The names of a family's tensors. Those of a layer have the layer's number in front.
struct Names {
    prefixes: &'static [&'static str],
    words: &'static str,
    embedded_norm: &'static str,
    layers: &'static str,
    /// Queries, keys and values, if they are not one tensor.
    projections: &'static [&'static str],
    attended: &'static str,
    attended_norm: &'static str,
    /// The halves of a gated network, if they are not one tensor.
    inner: &'static [&'static str],
    outer: &'static str,
    outer_norm: &'static str,
}

const BERT: Names = Names {
    prefixes: &["", "bert.", "roberta."],
    words: "embeddings.word_embeddings",
    embedded_norm: "embeddings.LayerNorm",
    layers: "encoder.layer.",
    projections: &[
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
    ],
    attended: "attention.output.dense",
    attended_norm: "attention.output.LayerNorm",
    inner: &["intermediate.dense"],
    outer: "output.dense",
    outer_norm: "output.LayerNorm",
};

const DISTILBERT: Names = Names {
    prefixes: &["", "distilbert."],
    layers: "transformer.layer.",
    projections: &["attention.q_lin", "attention.k_lin", "attention.v_lin"],
    attended: "attention.out_lin",
    attended_norm: "sa_layer_norm",
    inner: &["ffn.lin1"],
    outer: "ffn.lin2",
    outer_norm: "output_layer_norm",
    ..BERT
};

const MPNET: Names = Names {
    prefixes: &["", "mpnet."],
    projections: &["attention.attn.q", "attention.attn.k", "attention.attn.v"],
    attended: "attention.attn.o",
    attended_norm: "attention.LayerNorm",
    ..BERT
};

const MODERNBERT: Names = Names {
    prefixes: &["", "model."],
    words: "embeddings.tok_embeddings",
    embedded_norm: "embeddings.norm",
    layers: "layers.",
    projections: &["attn.Wqkv"],
    attended: "attn.Wo",
    attended_norm: "attn_norm",
    inner: &["mlp.Wi"],
    outer: "mlp.Wo",
    outer_norm: "mlp_norm",
};

const NOMIC: Names = Names {
    prefixes: &["", "nomic_bert.", "bert."],
    embedded_norm: "emb_ln",
    layers: "encoder.layers.",
    projections: &["attn.Wqkv"],
    attended: "attn.out_proj",
    attended_norm: "norm1",
    inner: &["mlp.fc11", "mlp.fc12"],
    outer: "mlp.fc2",
    outer_norm: "norm2",
    ..BERT
};

const GTE: Names = Names {
    prefixes: &["", "new.", "gte."],
    projections: &["attention.qkv_proj"],
    attended: "attention.o_proj",
    attended_norm: "attn_ln",
    inner: &["mlp.up_gate_proj"],
    outer: "mlp.down_proj",
    outer_norm: "mlp_ln",
    ..BERT
};

const JINA_V3: Names = Names {
    prefixes: &["", "roberta."],
    embedded_norm: "emb_ln",
    layers: "encoder.layers.",
    projections: &["mixer.Wqkv"],
    attended: "mixer.out_proj",
    attended_norm: "norm1",
    inner: &["mlp.fc1"],
    outer: "mlp.fc2",
    outer_norm: "norm2",
    ..BERT
};

/// The norm behind the last layer, where norms are in front of what they are for.
const LAST_NORM: &str = "final_norm";

impl Family {
    fn names(self) -> &'static Names {
        match self {
            Family::Bert | Family::Roberta => &BERT,
            Family::DistilBert => &DISTILBERT,
            Family::Mpnet => &MPNET,
            Family::ModernBert => &MODERNBERT,
            Family::NomicBert => &NOMIC,
            Family::Gte => &GTE,
            Family::JinaV3 => &JINA_V3,
        }
    }
}

/// Prefixes of the names of an encoder's tensors. All names of a file have the same one.
pub fn prefixes(config: &Config) -> &'static [&'static str] {
    config.family.names().prefixes
}

/// The tensors of an encoder, in the order of the inputs of
/// [`forward`](super::forward) behind the ids. Linear layers are `[out, in]`, as
/// files have them.
pub fn weights(config: &Config) -> Vec<Weight> {
    let mut all = embedded(config);
    all.extend(shared(config));
    all.extend((0..config.layers).flat_map(|number| layer(config, number)));
    all.extend(behind(config));
    all
}

/// The tables, and the norm of what is looked up in them.
pub(super) fn embedded(config: &Config) -> Vec<Weight> {
    let names = config.family.names();
    let mut list = List::of(config);
    let positions = match config.has_position_table {
        true => config.positions,
        false => 0,
    };
    let tables = [
        (names.words, config.vocab),
        ("embeddings.position_embeddings", positions),
        ("embeddings.token_type_embeddings", config.types),
    ];
    for (table, rows) in tables.into_iter().filter(|(_, rows)| *rows > 0) {
        let name = [table, ".weight"].concat();
        list.push(Role::Matrix, vec![name], &[rows, config.hidden]);
    }
    list.norm(names.embedded_norm);
    list.weights
}

/// How many tables there are.
pub(super) fn tables(config: &Config) -> usize {
    1 + usize::from(config.has_position_table) + usize::from(config.types > 0)
}

/// What layers share.
pub(super) fn shared(config: &Config) -> Vec<Weight> {
    let seen = |sight| (0..config.layers).any(|layer| config.sight(layer) == sight);
    let mut list = List::of(config);
    let distances = [config.heads, 2 * config.max_tokens - 1];
    if config.has_distance_bias {
        let name = "encoder.relative_attention_bias.weight".into();
        list.push(Role::Distances, vec![name], &distances);
        if let Some(weight) = list.weights.last_mut() {
            weight.stored = vec![positions::BUCKETS, config.heads];
        }
    }
    if seen(Sight::Near) {
        list.push(Role::Neighbors, Vec::new(), &distances);
    }
    for sight in [Sight::All, Sight::Near] {
        if seen(sight) && config.rotation(sight).is_some() {
            let half = config.hidden / config.heads / 2;
            let dims = [config.max_tokens, 1, 2, half];
            list.push(Role::Angles(sight), Vec::new(), &dims);
        }
    }
    list.weights
}

/// The tensors of a layer.
pub(super) fn layer(config: &Config, number: u32) -> Vec<Weight> {
    let (hidden, names, biases) = (config.hidden, config.family.names(), config.biases);
    let of = |part: &&str| [names.layers, &number.to_string(), ".", part].concat();
    let all = |parts: &[&str]| -> Vec<String> { parts.iter().map(of).collect() };
    let mut list = List::of(config);
    let attend = |list: &mut List<'_>| {
        let (projections, attended) = (all(names.projections), [of(&names.attended)]);
        list.linear(&projections, [3 * hidden, hidden], biases.attention);
        list.linear(&attended, [hidden, hidden], biases.attention);
    };
    let feed = |list: &mut List<'_>| {
        let (inner, outer) = (all(names.inner), [of(&names.outer)]);
        list.linear(&inner, [config.inner(), hidden], biases.inner);
        list.linear(&outer, [hidden, config.intermediate], biases.outer);
    };
    let norms = [of(&names.attended_norm), of(&names.outer_norm)];
    match config.norm_place {
        NormPlace::After => {
            attend(&mut list);
            list.norm(&norms[0]);
            feed(&mut list);
            list.norm(&norms[1]);
        }
        NormPlace::Before => {
            if number > 0 {
                list.norm(&norms[0]);
            }
            attend(&mut list);
            list.norm(&norms[1]);
            feed(&mut list);
        }
    }
    list.weights
}

/// The tensors of what is behind the last layer.
pub(super) fn behind(config: &Config) -> Vec<Weight> {
    let mut list = List::of(config);
    if config.norm_place == NormPlace::Before {
        list.norm(LAST_NORM);
    }
    for layer in &config.dense {
        let from = list.weights.len();
        let name = std::slice::from_ref(&layer.name);
        list.linear(name, [layer.outputs, layer.inputs], layer.bias);
        if let Some(norm) = &layer.norm {
            let name = [norm, ".weight"].concat();
            list.push(Role::Vector, vec![name], &[layer.outputs]);
        }
        for weight in &mut list.weights[from..] {
            weight.source = layer.source.clone();
        }
    }
    list.weights
}

struct List<'a> {
    config: &'a Config,
    weights: Vec<Weight>,
}

impl List<'_> {
    fn of(config: &Config) -> List<'_> {
        List {
            config,
            weights: Vec::new(),
        }
    }

    fn push(&mut self, role: Role, parts: Vec<String>, dims: &[u32]) {
        self.weights.push(Weight {
            role,
            source: Source::Encoder,
            parts,
            stored: dims.to_vec(),
            dims: dims.to_vec(),
        });
    }

    fn linear(&mut self, layers: &[String], dims: [u32; 2], bias: Bias) {
        let named = |end: &str| layers.iter().map(|layer| [layer, end].concat()).collect();
        self.push(Role::Matrix, named(".weight"), &dims);
        if bias == Bias::Added {
            self.push(Role::Vector, named(".bias"), &dims[..1]);
        }
    }

    fn norm(&mut self, of: &str) {
        let ends = [".weight", ".bias"];
        for end in &ends[..1 + usize::from(self.config.biases.norms == Bias::Added)] {
            self.push(
                Role::Vector,
                vec![[of, end].concat()],
                &[self.config.hidden],
            );
        }
    }
}
