//! The forward pass of an encoder over one text, as a chain: ids go in, and one
//! vector comes out. Texts of other lengths are calls of the same program.

use super::config::{Config, Pooling};
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

/// The chain of a text of `tokens` tokens. Its inputs are the ids, `[tokens]`
/// indexes that come with the call, and then the tensors of
/// [`weights`](super::weights) in order, of which `homes` says where each lies;
/// its numbers are those of [`numbers`]. Its result is `[hidden]`.
///
/// # Errors
///
/// [`Error::InvalidInput`] for no tokens or more than the encoder has positions
/// for, and for homes that are not as many as tensors.
pub fn forward(config: &Config, tokens: u32, homes: &[Home]) -> Result<Chain, Error> {
    let (mut chain, vector) = record(config, tokens, homes)?;
    chain.output(vector)?;
    Ok(chain)
}

/// The same chain, whose vector stays on the device: a tensor takes it, which is the last input.
///
/// # Errors
///
/// The errors of [`forward`].
pub fn forward_into(config: &Config, tokens: u32, homes: &[Home]) -> Result<Chain, Error> {
    let (mut chain, vector) = record(config, tokens, homes)?;
    let shape = Shape::new(&[config.hidden])?;
    let target = chain.input(shape, DType::F32, Home::Resident)?;
    let extent = StoreExtent::Whole;
    chain.store(vector, Store { target, extent })?;
    Ok(chain)
}

fn record(config: &Config, tokens: u32, homes: &[Home]) -> Result<(Chain, NodeId), Error> {
    let weights = super::weights(config);
    if homes.len() != weights.len() {
        return Err(refuse("each tensor of the encoder needs a home"));
    }
    if tokens == 0 || tokens > config.max_tokens {
        return Err(refuse(
            "a text has at least one token, and no more than the encoder takes",
        ));
    }
    let mut chain = Chain::default();
    let ids = chain.input(Shape::new(&[tokens])?, DType::U32, Home::Call)?;
    let mut inputs = Vec::with_capacity(weights.len());
    for (weight, home) in weights.iter().zip(homes) {
        inputs.push(chain.input(Shape::new(&weight.dims)?, DType::F32, *home)?);
    }
    let mut pass = Pass {
        epsilon: chain.constant()?,
        scale: chain.constant()?,
        least_length: chain.constant()?,
        chain,
        config,
        weights: inputs.into_iter(),
    };
    let mut x = pass.embed(ids, tokens)?;
    for _ in 0..config.layers {
        x = pass.layer(x)?;
    }
    let pooled = pass.pool(x)?;
    Ok((pass.chain, pooled))
}

/// A chain that is being recorded. Each operation takes the next of the weights.
struct Pass<'a> {
    chain: Chain,
    config: &'a Config,
    weights: std::vec::IntoIter<NodeId>,
    epsilon: NodeId,
    scale: NodeId,
    least_length: NodeId,
}

/// The end of a slice that goes to the end of its axis.
const END: i32 = i32::MAX;

impl Pass<'_> {
    fn weight(&mut self) -> Result<NodeId, Error> {
        let next = self.weights.next();
        next.ok_or_else(|| refuse("an encoder has no more tensors"))
    }

    fn embed(&mut self, ids: NodeId, tokens: u32) -> Result<NodeId, Error> {
        let (words, positions, types) = (self.weight()?, self.weight()?, self.weight()?);
        let first = self.config.first_position as i32;
        let rows = (first, first + tokens as i32, 1);
        let words = self.chain.gather(words, ids, 0)?;
        let positions = self.chain.slice(positions, &[rows])?;
        let types = self.chain.slice(types, &[(0, 1, 1)])?;
        let x = self.add(words, types)?;
        let x = self.add(x, positions)?;
        self.norm(x)
    }

    fn layer(&mut self, x: NodeId) -> Result<NodeId, Error> {
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
        let seen = self.chain.attention(heads, parts, self.scale)?;
        let seen = self.linear(seen)?;
        let seen = self.add(seen, x)?;
        let x = self.norm(seen)?;
        let inner = self.linear(x)?;
        let inner = self.chain.unary(UnaryFn::Gelu, inner)?;
        let inner = self.linear(inner)?;
        let inner = self.add(inner, x)?;
        self.norm(inner)
    }

    fn pool(&mut self, x: NodeId) -> Result<NodeId, Error> {
        let pooled = match self.config.pooling {
            Pooling::Mean => self.chain.reduce(Reduction::Mean, x, Axes::of(&[0]))?,
            Pooling::Cls => {
                let first = self.chain.slice(x, &[(0, 1, 1)])?;
                let shape = Shape::new(&[self.config.hidden])?;
                self.chain.reshape(first, shape)?
            }
        };
        if !self.config.normalize {
            return Ok(pooled);
        }
        let least = Some(self.least_length);
        self.chain.norm(Norm::Normalize, pooled, 0, least)
    }

    /// x · weightᵀ + bias.
    fn linear(&mut self, x: NodeId) -> Result<NodeId, Error> {
        let (weight, bias) = (self.weight()?, self.weight()?);
        let weight = self.chain.transpose(weight, &[])?;
        let product = self.chain.matmul(x, weight)?;
        self.add(product, bias)
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

fn refuse(problem: &str) -> Error {
    Error::InvalidInput(["embed: ", problem].concat())
}
