//! The tensors of an encoder: their names in a model file, their shapes, and how they lie on the
//! device.

use super::config::Config;

/// The part that a tensor plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A table, or the factor of a product, which may be kept in fewer bits.
    Matrix,
    /// A bias, or the weights of a norm, which is kept in 32-bit floats.
    Vector,
}

/// A tensor on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    /// The part that the tensor plays.
    pub role: Role,
    /// Names of the file's tensors that this tensor is made of, without a prefix of [`PREFIXES`].
    /// The parts are equally long and lie one behind the other along the first axis: queries,
    /// keys and values are one product.
    pub parts: Vec<String>,
    /// The dimensions of all parts together.
    pub dims: Vec<u32>,
}

impl Weight {
    /// The dimensions of each part.
    pub fn part_dims(&self) -> Vec<u32> {
        let parts = u32::try_from(self.parts.len()).unwrap_or(1); // One, or three.
        let mut dims = self.dims.clone();
        dims[0] /= parts;
        dims
    }
}

/// Prefixes of the names in a file. All names of a file have the same one.
pub const PREFIXES: [&str; 3] = ["", "bert.", "roberta."];

/// The tensors of an encoder, in the order of the inputs of
/// [`forward`](super::forward) behind the ids. Linear layers are `[out, in]`, as
/// files have them.
pub fn weights(config: &Config) -> Vec<Weight> {
    let (hidden, inner) = (config.hidden, config.intermediate);
    let mut list = List {
        hidden,
        weights: Vec::new(),
    };
    let tables = [
        ("word", config.vocab),
        ("position", config.positions),
        ("token_type", config.types),
    ];
    for (table, rows) in tables {
        let name = ["embeddings.", table, "_embeddings.weight"].concat();
        list.push(Role::Matrix, vec![name], &[rows, hidden]);
    }
    list.norm("embeddings");
    for layer in 0..config.layers {
        let of = |part: &str| ["encoder.layer.", &layer.to_string(), ".", part].concat();
        let projections = ["query", "key", "value"].map(|part| of("attention.self.") + part);
        list.linear(&projections, [3 * hidden, hidden]);
        list.linear(&[of("attention.output.dense")], [hidden, hidden]);
        list.norm(&of("attention.output"));
        list.linear(&[of("intermediate.dense")], [inner, hidden]);
        list.linear(&[of("output.dense")], [hidden, inner]);
        list.norm(&of("output"));
    }
    list.weights
}

struct List {
    hidden: u32,
    weights: Vec<Weight>,
}

impl List {
    fn push(&mut self, role: Role, parts: Vec<String>, dims: &[u32]) {
        let dims = dims.to_vec();
        self.weights.push(Weight { role, parts, dims });
    }

    fn linear(&mut self, layers: &[String], dims: [u32; 2]) {
        let named = |end: &str| layers.iter().map(|layer| [layer, end].concat()).collect();
        self.push(Role::Matrix, named(".weight"), &dims);
        self.push(Role::Vector, named(".bias"), &dims[..1]);
    }

    fn norm(&mut self, of: &str) {
        for end in [".LayerNorm.weight", ".LayerNorm.bias"] {
            self.push(Role::Vector, vec![[of, end].concat()], &[self.hidden]);
        }
    }
}
