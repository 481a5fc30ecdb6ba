//! The tensors of an encoder: their names in a model's files, their shapes, and how they lie on the
//! device.
//!
//! A family is a row of a table of names.

use super::config::{Bias, Config, DistanceBias, HeadNorms, Heads, NormPlace, Sight, Source};
use super::positions;

/// The part that a tensor plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A table, or the factor of a product, which may be kept in fewer bits.
    Matrix,
    /// A bias, or the weights of a norm, which is kept in 32-bit floats.
    Vector,
    /// A bias by how far apart tokens are, which is laid out.
    Distances,
    /// The weights of a norm, of which the file has 1 less. They are laid out.
    LessOne,
    /// The weights of the norms of heads in the layers whose tokens have this sight, which are laid
    /// out: a row for each head that is normed.
    OfHeads(Sight),
    /// A bias that grows with how far apart tokens are. No file has it.
    Slopes,
    /// The cosines and sines that queries and keys are turned by, where tokens have this sight. No
    /// file has them.
    Angles(Sight),
}

impl Role {
    /// The floats of a tensor that no file has; `None` for one that a file has.
    pub fn computed(self, config: &Config) -> Option<Vec<f32>> {
        match self {
            Role::Matrix | Role::Vector => None,
            Role::Distances | Role::LessOne | Role::OfHeads(_) => None,
            Role::Slopes => Some(positions::slopes(config)),
            Role::Angles(sight) => Some(positions::angles(config, sight)),
        }
    }

    /// Whether the tensor comes to the device as [`lay_out`](Role::lay_out) gives it, in 32-bit
    /// floats.
    pub fn is_laid_out(self) -> bool {
        matches!(self, Role::Distances | Role::LessOne | Role::OfHeads(_))
    }

    /// Lays the floats of all parts out as they are on the device, for a role that is laid out.
    pub fn lay_out(self, config: &Config, stored: Vec<f32>) -> Vec<f32> {
        match self {
            Role::Distances => positions::by_distance(config, &stored),
            Role::LessOne => stored.iter().map(|weight| 1.0 + weight).collect(),
            Role::OfHeads(sight) => of_heads(config, config.heads(sight), &stored),
            Role::Matrix | Role::Vector => stored,
            Role::Slopes | Role::Angles(_) => stored,
        }
    }

    /// Whether the layers whose tokens have this sight read a tensor that layers share.
    pub(super) fn is_read(self, by: Sight) -> bool {
        match self {
            Role::Matrix | Role::Vector | Role::LessOne => true,
            Role::Distances | Role::Slopes => by == Sight::All,
            Role::OfHeads(sight) | Role::Angles(sight) => by == sight,
        }
    }
}

/// The weights of the norms of queries' and keys' heads, for each of the heads, and those of values'
/// where these are normed too.
fn of_heads(config: &Config, heads: Heads, stored: &[f32]) -> Vec<f32> {
    let size = heads.size as usize;
    let offset = if config.norms.are_less_one { 1.0 } else { 0.0 };
    let (queries, keys) = stored.split_at(size.min(stored.len()));
    let head = |head| if head < heads.count { queries } else { keys };
    let turned = (0..heads.turned()).flat_map(head);
    let mut all: Vec<f32> = turned.map(|weight| offset + weight).collect();
    all.resize(heads.normed() as usize * size, 1.0);
    all
}

/// A tensor of a file that is a part of one on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name, without a prefix of [`prefixes`].
    pub name: String,
    /// The dimensions in the file.
    pub dims: Vec<u32>,
}

/// A tensor on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    /// The part that the tensor plays.
    pub role: Role,
    /// Where its parts are.
    pub source: Source,
    /// The file's tensors that this tensor is made of, one behind the other along the first axis:
    /// queries, keys and values are one product. None for a tensor that no file has.
    pub parts: Vec<Part>,
    /// The dimensions on the device.
    pub dims: Vec<u32>,
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
        let dims = [rows, config.hidden];
        let part = part(&[table, ".weight"], &dims);
        list.push(Role::Matrix, vec![part], &dims);
    }
    if config.norms.is_embedding_normed {
        list.norm(names.embedded_norm);
    }
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
    let count = config.heads.count;
    let distances = [count, 2 * config.max_tokens - 1];
    match config.distance_bias {
        Some(DistanceBias::Learned) => {
            let name = ["encoder.relative_attention_bias.weight"];
            let table = part(&name, &[positions::BUCKETS, count]);
            list.push(Role::Distances, vec![table], &distances);
        }
        Some(DistanceBias::Linear) => list.push(Role::Slopes, Vec::new(), &distances),
        None => {}
    }
    for sight in [Sight::All, Sight::Near] {
        if seen(sight) && config.rotation(sight).is_some() {
            let dims = [config.max_tokens, 1, 2, config.heads(sight).size / 2];
            list.push(Role::Angles(sight), Vec::new(), &dims);
        }
    }
    per_layer_shared(&mut list);
    list.weights
}

/// The tensors of a layer.
pub(super) fn layer(config: &Config, number: u32) -> Vec<Weight> {
    let (hidden, names, biases) = (config.hidden, config.family.names(), config.biases);
    let sight = config.sight(number);
    let heads = config.heads(sight);
    let of = |part: &&str| [names.layers, &number.to_string(), ".", part].concat();
    let all = |parts: &[&str]| -> Vec<String> { parts.iter().map(of).collect() };
    let mut list = List::of(config);
    let attend = |list: &mut List<'_>| {
        let rows = [heads.count, heads.of_keys, heads.of_keys].map(|count| count * heads.size);
        let rows = match names.projections.len() {
            1 => vec![rows.iter().sum()],
            _ => rows.to_vec(),
        };
        list.linear(
            &all(names.projections),
            products(&rows, hidden, biases.attention),
        );
        if heads.norms != HeadNorms::Absent {
            let norms = names
                .of_heads
                .map(|norm| part(&[&of(&norm), ".weight"], &[heads.size]));
            list.push(
                Role::OfHeads(sight),
                norms.into(),
                &[heads.normed(), heads.size],
            );
        }
        let attended = [of(&names.attended)];
        list.linear(
            &attended,
            products(&[hidden], heads.width(), biases.attention),
        );
    };
    let feed = |list: &mut List<'_>| {
        let (inner, outer) = (all(names.inner), [of(&names.outer)]);
        let rows = config.inner() / if inner.len() > 1 { 2 } else { 1 };
        list.linear(
            &inner,
            products(&vec![rows; inner.len()], hidden, biases.inner),
        );
        list.linear(
            &outer,
            products(&[hidden], config.intermediate, biases.outer),
        );
    };
    let norms = [of(&names.attended_norm), of(&names.outer_norm)];
    match config.norms.place {
        NormPlace::After => {
            attend(&mut list);
            list.norm(&norms[0]);
            feed(&mut list);
            list.norm(&norms[1]);
        }
        NormPlace::Before | NormPlace::Around => {
            if number > 0 || !config.norms.is_embedding_normed {
                list.norm(&norms[0]);
            }
            attend(&mut list);
            if config.norms.place == NormPlace::Around {
                list.norm(&of(&names.behind[0]));
            }
            list.norm(&norms[1]);
            feed(&mut list);
            if config.norms.place == NormPlace::Around {
                list.norm(&of(&names.behind[1]));
            }
        }
    }
    per_layer_own(&mut list, of);
    list.weights
}

/// Adds the tensors of per-layer embeddings that layers share.
fn per_layer_shared(list: &mut List<'_>) {
    let config = list.config;
    let Some(floats) = config.per_layer_embedding else {
        return;
    };
    let projections = [config.layers * floats, config.hidden];
    let projection = part(&["ple.per_layer_model_projection.weight"], &projections);
    list.push(Role::Matrix, vec![projection], &projections);
    let norm = part(&["ple.per_layer_projection_norm.weight"], &[floats]);
    list.push(Role::Vector, vec![norm], &[floats]);
}

/// Adds a layer's own tensors, whose names `of` puts the layer in front of.
fn per_layer_own(list: &mut List<'_>, of: impl Fn(&&str) -> String) {
    let config = list.config;
    let hidden = config.hidden;
    if let Some(floats) = config.per_layer_embedding {
        let gate = of(&"ple_block.per_layer_input_gate");
        list.linear(&[gate], products(&[floats], hidden, Bias::Absent));
        let mix = of(&"ple_block.per_layer_projection");
        list.linear(&[mix], products(&[hidden], floats, Bias::Absent));
        list.norm(&of(&"ple_block.post_per_layer_input_norm"));
    }
    if config.are_layers_scaled {
        let scale = part(&[&of(&"layer_scalar")], &[1]);
        list.push(Role::Vector, vec![scale], &[1]);
    }
}

/// The tensors of what is behind the last layer.
pub(super) fn behind(config: &Config) -> Vec<Weight> {
    let mut list = List::of(config);
    if config.norms.place != NormPlace::After {
        list.norm(config.family.names().last_norm);
    }
    for layer in &config.dense {
        let from = list.weights.len();
        let name = std::slice::from_ref(&layer.name);
        list.linear(name, products(&[layer.outputs], layer.inputs, layer.bias));
        if let Some(norm) = &layer.norm {
            let part = part(&[norm, ".weight"], &[layer.outputs]);
            list.push(Role::Vector, vec![part], &[layer.outputs]);
        }
        for weight in &mut list.weights[from..] {
            weight.source = layer.source.clone();
        }
    }
    list.weights
}

/// Tensors of an encoder, in order.
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

    fn push(&mut self, role: Role, parts: Vec<Part>, dims: &[u32]) {
        self.weights.push(Weight {
            role,
            source: Source::Encoder,
            parts,
            dims: dims.to_vec(),
        });
    }

    /// Layers of these names as one.
    fn linear(&mut self, layers: &[String], products: Products<'_>) {
        let Products {
            outputs,
            inputs,
            bias,
        } = products;
        let all = outputs.iter().sum();
        let each = || layers.iter().zip(outputs);
        let weights = each().map(|(layer, rows)| part(&[layer, ".weight"], &[*rows, inputs]));
        self.push(Role::Matrix, weights.collect(), &[all, inputs]);
        if bias == Bias::Added {
            let biases = each().map(|(layer, rows)| part(&[layer, ".bias"], &[*rows]));
            self.push(Role::Vector, biases.collect(), &[all]);
        }
    }

    fn norm(&mut self, of: &str) {
        let dims = [self.config.hidden];
        let weights = match self.config.norms.are_less_one {
            true => Role::LessOne,
            false => Role::Vector,
        };
        self.push(weights, vec![part(&[of, ".weight"], &dims)], &dims);
        if self.config.biases.norms == Bias::Added {
            self.push(Role::Vector, vec![part(&[of, ".bias"], &dims)], &dims);
        }
    }
}

/// Products of the same vector, side by side.
struct Products<'a> {
    /// Floats that come out of each.
    outputs: &'a [u32],
    /// Floats that go in.
    inputs: u32,
    /// Whether each has a bias.
    bias: Bias,
}

fn products(outputs: &[u32], inputs: u32, bias: Bias) -> Products<'_> {
    Products {
        outputs,
        inputs,
        bias,
    }
}

fn part(name: &[&str], dims: &[u32]) -> Part {
    Part {
        name: name.concat(),
        dims: dims.to_vec(),
    }
}
