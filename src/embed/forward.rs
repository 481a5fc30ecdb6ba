//! The forward pass of an encoder over one text, as a chain: ids go in, and one
//! vector comes out. Texts of other lengths are calls of the same program.
//!
//! Which parts there are is read from the [`Config`]; no family is named here.

use super::config::{Config, Dense, Pooling};
use super::weights::Weight;
use crate::error::Error;
use crate::graph::chain::{Axes, Chain, Heads, Home, Norm, Reduction, Store, StoreExtent};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, NodeId, UnaryFn};
use crate::tensor::DType;

/// The least length that vectors are divided by, as PyTorch's `normalize` has it.
const LEAST_LENGTH: f32 = 1e-12;

/// The numbers that come with every call besides its ids, in the chain's order.
pub fn numbers(config: &Config) -> [f32; 3] {
    let size = (config.hidden / config.heads) as f32;
    [config.epsilon, 1.0 / size.sqrt(), LEAST_LENGTH]
}

/// What comes with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// Ids alone: every token has the first type.
    Ids(u32),
    /// As many types as ids.
    Typed(u32),
}

impl Tokens {
    /// How many tokens the text has.
    pub fn count(self) -> u32 {
        match self {
            Tokens::Ids(count) | Tokens::Typed(count) => count,
        }
    }
}

/// The chain of a text. Its inputs are the ids, `[tokens]` indexes that come with the call, behind
/// these the types of a typed text in the same form, and then the tensors of
/// [`weights`](super::weights) in order, of which `homes` says where each lies;
/// its numbers are those of [`numbers`]. Its result is `[dimensions]`.
///
/// # Errors
///
/// [`Error::InvalidInput`] for no tokens or more than the encoder has positions
/// for, for types where the encoder has one or none, and for homes that are not as many as tensors.
pub fn forward(config: &Config, tokens: Tokens, homes: &[Home]) -> Result<Chain, Error> {
    let (mut chain, vector) = record(config, tokens, homes)?;
    chain.output(vector)?;
    Ok(chain)
}

/// The same chain, whose vector stays on the device: a tensor takes it, which is the last input.
///
/// # Errors
///
/// The errors of [`forward`].
pub fn forward_into(config: &Config, tokens: Tokens, homes: &[Home]) -> Result<Chain, Error> {
    let (mut chain, vector) = record(config, tokens, homes)?;
    let shape = Shape::new(&[config.dimensions()])?;
    let target = chain.input(shape, DType::F32, Home::Resident)?;
    let extent = StoreExtent::Whole;
    chain.store(vector, Store { target, extent })?;
    Ok(chain)
}

fn record(config: &Config, tokens: Tokens, homes: &[Home]) -> Result<(Chain, NodeId), Error> {
    let weights = super::weights(config);
    if homes.len() != weights.len() {
        return Err(refuse("each tensor of the encoder needs a home"));
    }
    let count = tokens.count();
    if count == 0 || count > config.max_tokens {
        return Err(refuse(
            "a text has at least one token, and no more than the encoder takes",
        ));
    }
    let mut chain = Chain::default();
    let mut indexes = || chain.input(Shape::new(&[count])?, DType::U32, Home::Call);
    let ids = indexes()?;
    let types = match tokens {
        Tokens::Ids(_) => None,
        Tokens::Typed(_) if config.types < 2 => {
            return Err(refuse("the encoder has no types of tokens"));
        }
        Tokens::Typed(_) => Some(indexes()?),
    };
    let mut pass = Pass::new(config, chain, &weights, homes)?;
    let mut x = pass.embed(ids, types, count)?;
    if config.has_distance_bias {
        pass.distances(count)?;
    }
    for _ in 0..config.layers {
        x = pass.layer(x)?;
    }
    let vector = pass.vector(x, count)?;
    Ok((pass.chain, vector))
}

/// A chain that is being recorded. Each operation takes the next of the weights.
pub(super) struct Pass<'a> {
    pub(super) chain: Chain,
    config: &'a Config,
    weights: std::vec::IntoIter<NodeId>,
    epsilon: NodeId,
    scale: NodeId,
    least_length: NodeId,
    /// What is added to scores, by heads and distances.
    bias: Option<NodeId>,
}

/// The end of a slice that goes to the end of its axis.
const END: i32 = i32::MAX;

impl<'a> Pass<'a> {
    /// Goes on with a chain whose inputs of the call are there: the tensors and numbers come next.
    pub(super) fn new(
        config: &'a Config,
        mut chain: Chain,
        weights: &[Weight],
        homes: &[Home],
    ) -> Result<Pass<'a>, Error> {
        let mut inputs = Vec::with_capacity(weights.len());
        for (weight, home) in weights.iter().zip(homes) {
            inputs.push(chain.input(Shape::new(&weight.dims)?, DType::F32, *home)?);
        }
        Ok(Pass {
            epsilon: chain.constant()?,
            scale: chain.constant()?,
            least_length: chain.constant()?,
            chain,
            config,
            weights: inputs.into_iter(),
            bias: None,
        })
    }

    fn weight(&mut self) -> Result<NodeId, Error> {
        let next = self.weights.next();
        next.ok_or_else(|| refuse("an encoder has no more tensors"))
    }

    pub(super) fn embed(
        &mut self,
        ids: NodeId,
        types: Option<NodeId>,
        tokens: u32,
    ) -> Result<NodeId, Error> {
        let (words, positions) = (self.weight()?, self.weight()?);
        let first = self.config.first_position as i32;
        let rows = (first, first + tokens as i32, 1);
        let words = self.chain.gather(words, ids, 0)?;
        let positions = self.chain.slice(positions, &[rows])?;
        let mut typed = None;
        if self.config.types > 0 {
            let table = self.weight()?;
            typed = Some(match types {
                Some(types) => self.chain.gather(table, types, 0)?,
                None => self.chain.slice(table, &[(0, 1, 1)])?,
            });
        }
        self.sum(words, positions, typed)
    }

    /// What goes to the first layer, of the rows of the tables.
    pub(super) fn sum(
        &mut self,
        words: NodeId,
        positions: NodeId,
        types: Option<NodeId>,
    ) -> Result<NodeId, Error> {
        let x = match types {
            Some(types) => self.add(words, types)?,
            None => words,
        };
        let x = self.add(x, positions)?;
        self.norm(x)
    }

    /// Takes the biases of the distances that the tokens of a text have: those of the longest text
    /// without the furthest.
    pub(super) fn distances(&mut self, tokens: u32) -> Result<(), Error> {
        let bias = self.weight()?;
        let middle = self.config.max_tokens as i32;
        let tokens = tokens as i32;
        let columns = (middle - tokens, middle + tokens - 1, 1);
        self.bias = Some(self.chain.slice(bias, &[(0, END, 1), columns])?);
        Ok(())
    }

    pub(super) fn layer(&mut self, x: NodeId) -> Result<NodeId, Error> {
        let projected = self.linear(x)?;
        let hidden = self.config.hidden as i32;
        let mut part = |k: i32| {
            let columns = (k * hidden, (k + 1) * hidden, 1);
            self.chain.slice(projected, &[(0, END, 1), columns])
        };
        let parts = [part(0)?, part(1)?, part(2)?];
        let heads = Heads {
            count: self.config.heads,
            is_causal: false,
        };
        let seen = match self.bias {
            None => self.chain.attention(heads, parts, self.scale)?,
            Some(bias) => (self.chain).biased_attention(heads, parts, self.scale, bias)?,
        };
        let seen = self.linear(seen)?;
        let seen = self.add(seen, x)?;
        let x = self.norm(seen)?;
        let inner = self.linear(x)?;
        let inner = self.unary(self.config.activation.function(), inner)?;
        let inner = self.linear(inner)?;
        let inner = self.add(inner, x)?;
        self.norm(inner)
    }

    /// What becomes of the last layer's vectors.
    pub(super) fn vector(&mut self, x: NodeId, tokens: u32) -> Result<NodeId, Error> {
        let config = self.config;
        let mut vector = self.pool(x, tokens)?;
        for layer in &config.dense {
            vector = self.dense(layer, vector)?;
        }
        self.finish(vector)
    }

    fn pool(&mut self, x: NodeId, tokens: u32) -> Result<NodeId, Error> {
        let row = match self.config.pooling {
            Pooling::Mean => return self.chain.reduce(Reduction::Mean, x, Axes::of(&[0])),
            Pooling::Max => return self.chain.reduce(Reduction::Max, x, Axes::of(&[0])),
            Pooling::Cls => 0,
            Pooling::LastToken => tokens as i32 - 1,
        };
        let row = self.chain.slice(x, &[(row, row + 1, 1)])?;
        let shape = Shape::new(&[self.config.hidden])?;
        self.chain.reshape(row, shape)
    }

    fn dense(&mut self, layer: &Dense, x: NodeId) -> Result<NodeId, Error> {
        let x = match layer.has_bias {
            true => self.linear(x)?,
            false => self.product(x)?,
        };
        self.unary(layer.activation.function(), x)
    }

    /// Cuts and normalizes a vector, where the model does.
    fn finish(&mut self, mut vector: NodeId) -> Result<NodeId, Error> {
        if let Some(cut) = self.config.cut {
            vector = self.chain.slice(vector, &[(0, cut as i32, 1)])?;
        }
        if !self.config.normalize {
            return Ok(vector);
        }
        let least = Some(self.least_length);
        self.chain.norm(Norm::Normalize, vector, 0, least)
    }

    /// x · weightᵀ.
    fn product(&mut self, x: NodeId) -> Result<NodeId, Error> {
        let weight = self.weight()?;
        let weight = self.chain.transpose(weight, &[])?;
        self.chain.matmul(x, weight)
    }

    /// x · weightᵀ + bias.
    fn linear(&mut self, x: NodeId) -> Result<NodeId, Error> {
        let product = self.product(x)?;
        let bias = self.weight()?;
        self.add(product, bias)
    }

    fn unary(&mut self, function: Option<UnaryFn>, x: NodeId) -> Result<NodeId, Error> {
        match function {
            Some(function) => self.chain.unary(function, x),
            None => Ok(x),
        }
    }

    fn norm(&mut self, x: NodeId) -> Result<NodeId, Error> {
        let (weight, bias) = (self.weight()?, self.weight()?);
        let x = self.chain.norm(Norm::Layer, x, -1, Some(self.epsilon))?;
        let x = self.chain.binary(BinaryFn::Mul, x, weight)?;
        self.add(x, bias)
    }

    fn add(&mut self, a: NodeId, b: NodeId) -> Result<NodeId, Error> {
        self.chain.binary(BinaryFn::Add, a, b)
    }
}

pub(super) fn refuse(problem: &str) -> Error {
    Error::InvalidInput(["embed: ", problem].concat())
}
