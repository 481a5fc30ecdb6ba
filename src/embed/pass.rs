//! A forward pass while it is recorded: its chain, the tensors that are left, and the operations that
//! all parts of it are made of.

use super::config::{Bias, Config, NormKind};
use super::weights::Weight;
use crate::error::Error;
use crate::graph::chain::{Chain, Home, Norm};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, NodeId, UnaryFn};
use crate::tensor::DType;

/// A chain that is being recorded. Each operation takes the next of the weights.
pub(super) struct Pass<'a> {
    pub(super) chain: Chain,
    pub(super) config: &'a Config,
    weights: std::vec::IntoIter<NodeId>,
    pub(super) epsilon: NodeId,
    pub(super) scale: NodeId,
    pub(super) least_length: NodeId,
    pub(super) word_scale: Option<NodeId>,
    /// The table of words, once it is taken.
    pub(super) words: Option<NodeId>,
    /// What layers share.
    pub(super) shared: Shared,
    pub(super) per_layer: Option<PerLayer>,
}

/// What layers whose tokens have the same sight share.
#[derive(Default)]
pub(super) struct Shared {
    /// What is added to scores, by heads and distances, where tokens attend to all.
    pub(super) bias: Option<NodeId>,
    /// The cosines and the sines that queries and keys are turned by: where tokens attend to all, and
    /// where they attend to neighbors.
    pub(super) angles: [Option<[NodeId; 2]>; 2],
}

/// The end of a slice that goes to the end of its axis.
pub(super) const END: i32 = i32::MAX;

/// What layers read of per-layer embeddings.
#[derive(Clone, Copy)]
pub(super) struct PerLayer {
    pub(super) floats: u32,
    /// What products with the rows of a layer are multiplied by.
    pub(super) scale: NodeId,
    /// The rows of all layers, once they are taken.
    pub(super) projections: Option<NodeId>,
    /// The weights of the norm behind that.
    pub(super) norm: Option<NodeId>,
    /// What went to the first layer.
    pub(super) first: Option<NodeId>,
}

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
        let mut number = || chain.constant();
        let [epsilon, scale, least_length] = [number()?, number()?, number()?];
        let word_scale = config.word_scale.map(|_| number()).transpose()?;
        let per_layer = config.per_layer_embedding.map(|floats| {
            Ok(PerLayer {
                floats,
                scale: number()?,
                projections: None,
                norm: None,
                first: None,
            })
        });
        Ok(Pass {
            epsilon,
            scale,
            least_length,
            word_scale,
            per_layer: per_layer.transpose()?,
            chain,
            config,
            weights: inputs.into_iter(),
            words: None,
            shared: Shared::default(),
        })
    }

    /// The next of the weights.
    pub(super) fn weight(&mut self) -> Result<NodeId, Error> {
        let next = self.weights.next();
        next.ok_or_else(|| refuse("an encoder has no more tensors"))
    }

    /// x · weightᵀ, and + bias where there is one.
    pub(super) fn linear(&mut self, x: NodeId, bias: Bias) -> Result<NodeId, Error> {
        let weight = self.weight()?;
        let weight = self.chain.transpose(weight, &[])?;
        let precision = self.config.precision;
        let product = self.chain.matmul_in(precision, x, weight)?;
        self.bias(product, bias)
    }

    fn bias(&mut self, x: NodeId, bias: Bias) -> Result<NodeId, Error> {
        match bias {
            Bias::Added => {
                let bias = self.weight()?;
                self.add(x, bias)
            }
            Bias::Absent => Ok(x),
        }
    }

    pub(super) fn unary(&mut self, function: Option<UnaryFn>, x: NodeId) -> Result<NodeId, Error> {
        match function {
            Some(function) => self.chain.unary(function, x),
            None => Ok(x),
        }
    }

    pub(super) fn norm(&mut self, x: NodeId) -> Result<NodeId, Error> {
        self.weighted_norm(x, self.config.biases.norms)
    }

    pub(super) fn weighted_norm(&mut self, x: NodeId, bias: Bias) -> Result<NodeId, Error> {
        let weight = self.weight()?;
        let x = self.normed(x)?;
        let x = self.chain.binary(BinaryFn::Mul, x, weight)?;
        self.bias(x, bias)
    }

    pub(super) fn normed(&mut self, x: NodeId) -> Result<NodeId, Error> {
        let kind = match self.config.norms.kind {
            NormKind::Layer => Norm::Layer,
            NormKind::Rms => Norm::Rms,
        };
        self.chain.norm(kind, x, -1, Some(self.epsilon))
    }

    pub(super) fn add(&mut self, a: NodeId, b: NodeId) -> Result<NodeId, Error> {
        self.chain.binary(BinaryFn::Add, a, b)
    }
}

pub(super) fn refuse(problem: &str) -> Error {
    Error::InvalidInput(["embed: ", problem].concat())
}
