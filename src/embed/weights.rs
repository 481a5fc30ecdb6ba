//! The tensors of an encoder: their names in a model's files, their shapes, and how they lie on the
//! device.
//!
//! A family is a row of a table of names.

use super::config::{Config, Family, Source};

/// The part that a tensor plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A table, or the factor of a product, which may be kept in fewer bits.
    Matrix,
    /// A bias, or the weights of a norm, which is kept in 32-bit floats.
    Vector,
    /// A bias by how far apart tokens are, which is kept in 32-bit floats and comes to the device as
    /// [`by_distance`] lays it out.
    Distances,
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
    /// keys and values are one product.
    pub parts: Vec<String>,
    /// The dimensions of all parts together, in the file.
    pub stored: Vec<u32>,
    /// The dimensions on the device.
    pub dims: Vec<u32>,
}

impl Weight {
    /// The dimensions of each part.
    pub fn part_dims(&self) -> Vec<u32> {
        let parts = u32::try_from(self.parts.len()).unwrap_or(1); // One, or three.
        let mut dims = self.stored.clone();
        dims[0] /= parts;
        dims
    }
}

/// The names of a family's tensors. Those of a layer have the layer's number in front.
struct Names {
    prefixes: &'static [&'static str],
    layers: &'static str,
    projections: [&'static str; 3],
    attended: &'static str,
    attended_norm: &'static str,
    inner: &'static str,
    outer: &'static str,
    outer_norm: &'static str,
}

const BERT: Names = Names {
    prefixes: &["", "bert.", "roberta."],
    layers: "encoder.layer.",
    projections: [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
    ],
    attended: "attention.output.dense",
    attended_norm: "attention.output.LayerNorm",
    inner: "intermediate.dense",
    outer: "output.dense",
    outer_norm: "output.LayerNorm",
};

const DISTILBERT: Names = Names {
    prefixes: &["", "distilbert."],
    layers: "transformer.layer.",
    projections: ["attention.q_lin", "attention.k_lin", "attention.v_lin"],
    attended: "attention.out_lin",
    attended_norm: "sa_layer_norm",
    inner: "ffn.lin1",
    outer: "ffn.lin2",
    outer_norm: "output_layer_norm",
};

const MPNET: Names = Names {
    prefixes: &["", "mpnet."],
    projections: ["attention.attn.q", "attention.attn.k", "attention.attn.v"],
    attended: "attention.attn.o",
    attended_norm: "attention.LayerNorm",
    ..BERT
};

impl Family {
    fn names(self) -> &'static Names {
        match self {
            Family::Bert | Family::Roberta => &BERT,
            Family::DistilBert => &DISTILBERT,
            Family::Mpnet => &MPNET,
        }
    }
}

/// Prefixes of the names of an encoder's tensors. All names of a file have the same one.
pub fn prefixes(config: &Config) -> &'static [&'static str] {
    config.family.names().prefixes
}

/// Kinds of distances between tokens, each with a bias for each head.
const BUCKETS: u32 = 32;

/// The kind of the distance from a query to a key: one each for the nearest, and of those further
/// away one for each half of a doubling, up to 128; keys in front of the query and keys behind it
/// apart (Raffel and others, 2020; as transformers has it for MPNet).
fn bucket(distance: i32) -> u32 {
    const EACH: u32 = BUCKETS / 2;
    const NEAR: u32 = EACH / 2;
    let side = if distance > 0 { EACH } else { 0 };
    let far = distance.unsigned_abs();
    let own = match far {
        0..NEAR => far,
        // The whole part of 2 · log2(far / 8), and 8 more.
        _ => (u64::from(far).pow(2).ilog2() + 2).min(EACH - 1),
    };
    side + own
}

/// Lays out a table of a bias for each kind of distance and each head, `[32, heads]`, by heads and
/// distances: `[heads, 2 · max_tokens - 1]`, from the key that is furthest in front of a query on.
pub fn by_distance(config: &Config, table: &[f32]) -> Vec<f32> {
    let heads = config.heads as usize;
    let reach = i32::try_from(config.max_tokens).unwrap_or(i32::MAX) - 1;
    let each = |head: usize| {
        (-reach..=reach).map(move |distance| table[bucket(distance) as usize * heads + head])
    };
    (0..heads).flat_map(each).collect()
}

/// The tensors of an encoder, in the order of the inputs of
/// [`forward`](super::forward) behind the ids. Linear layers are `[out, in]`, as
/// files have them.
pub fn weights(config: &Config) -> Vec<Weight> {
    let (hidden, inner) = (config.hidden, config.intermediate);
    let names = config.family.names();
    let mut list = List {
        hidden,
        weights: Vec::new(),
    };
    let tables = [
        ("word", config.vocab),
        ("position", config.positions),
        ("token_type", config.types),
    ];
    for (table, rows) in tables.into_iter().filter(|(_, rows)| *rows > 0) {
        let name = ["embeddings.", table, "_embeddings.weight"].concat();
        list.push(Role::Matrix, vec![name], &[rows, hidden]);
    }
    list.norm("embeddings.LayerNorm");
    if config.has_distance_bias {
        list.weights.push(Weight {
            role: Role::Distances,
            source: Source::Encoder,
            parts: vec!["encoder.relative_attention_bias.weight".into()],
            stored: vec![BUCKETS, config.heads],
            dims: vec![config.heads, 2 * config.max_tokens - 1],
        });
    }
    for layer in 0..config.layers {
        let of = |part: &str| [names.layers, &layer.to_string(), ".", part].concat();
        list.linear(&names.projections.map(of), [3 * hidden, hidden]);
        list.linear(&[of(names.attended)], [hidden, hidden]);
        list.norm(&of(names.attended_norm));
        list.linear(&[of(names.inner)], [inner, hidden]);
        list.linear(&[of(names.outer)], [hidden, inner]);
        list.norm(&of(names.outer_norm));
    }
    for layer in &config.dense {
        let from = list.weights.len();
        list.linear(
            std::slice::from_ref(&layer.name),
            [layer.outputs, layer.inputs],
        );
        list.weights
            .truncate(from + 1 + usize::from(layer.has_bias));
        for weight in &mut list.weights[from..] {
            weight.source = layer.source.clone();
        }
    }
    list.weights
}

struct List {
    hidden: u32,
    weights: Vec<Weight>,
}

impl List {
    fn push(&mut self, role: Role, parts: Vec<String>, dims: &[u32]) {
        self.weights.push(Weight {
            role,
            source: Source::Encoder,
            parts,
            stored: dims.to_vec(),
            dims: dims.to_vec(),
        });
    }

    fn linear(&mut self, layers: &[String], dims: [u32; 2]) {
        let named = |end: &str| layers.iter().map(|layer| [layer, end].concat()).collect();
        self.push(Role::Matrix, named(".weight"), &dims);
        self.push(Role::Vector, named(".bias"), &dims[..1]);
    }

    fn norm(&mut self, of: &str) {
        for end in [".weight", ".bias"] {
            self.push(Role::Vector, vec![[of, end].concat()], &[self.hidden]);
        }
    }
}
