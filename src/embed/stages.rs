//! The forward pass in stages, each a chain of its own, for whoever holds the weights of one stage at
//! a time. One after another they compute what [`forward`](super::forward) does at once.

use std::ops::Range;

use super::config::Config;
use super::forward::{Pass, refuse};
use super::weights::weights;
use crate::error::Error;
use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::tensor::DType;

/// A stage of the forward pass over one text, whose tokens all have the first type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From ids to a vector for each token, `[tokens, hidden]`.
    Embeddings,
    /// The same from rows of the tables, for whoever has these and not the tables: those of the
    /// words and of the positions, `[tokens, hidden]` each, and that of the first type, `[1,
    /// hidden]`, where there are types.
    Rows,
    /// The layer of this number, from vectors to vectors.
    Layer(u32),
    /// From the last layer's vectors to that of the text, `[dimensions]`.
    Vector,
}

impl Stage {
    /// The places in [`weights`](super::weights) of the tensors that the stage reads. The biases of
    /// distances, which all layers share, come first.
    pub fn weights(self, config: &Config) -> Vec<usize> {
        const NORM: usize = 2;
        const LAYER: usize = 12;
        let tables = 2 + usize::from(config.types > 0);
        let embedded = tables + NORM;
        let layers = embedded + usize::from(config.has_distance_bias);
        let layer = |number: u32| layers + LAYER * number as usize;
        let own: Range<usize> = match self {
            Stage::Embeddings => 0..embedded,
            Stage::Rows => tables..embedded,
            Stage::Layer(number) => layer(number)..layer(number + 1),
            Stage::Vector => layer(config.layers)..weights(config).len(),
        };
        let shared = match self {
            Stage::Layer(_) => embedded..layers,
            _ => 0..0,
        };
        shared.chain(own).collect()
    }

    /// The chain of a text of so many tokens. Its inputs are what comes with the call, and then the
    /// stage's tensors, of which `homes` says where each lies; its numbers are those of
    /// [`numbers`](super::numbers).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for no tokens or more than the encoder takes, for a layer that is not
    /// there, and for homes that are not as many as tensors.
    pub fn chain(self, config: &Config, tokens: u32, homes: &[Home]) -> Result<Chain, Error> {
        let is_there = !matches!(self, Stage::Layer(number) if number >= config.layers);
        if !is_there || tokens == 0 || tokens > config.max_tokens {
            return Err(refuse(
                "the encoder has no such stage, or takes fewer tokens",
            ));
        }
        let all = weights(config);
        let places = self.weights(config);
        if homes.len() != places.len() {
            return Err(refuse("each tensor of the stage needs a home"));
        }
        let own: Vec<_> = places.iter().map(|at| all[*at].clone()).collect();
        let mut chain = Chain::default();
        let mut given = |dims: &[u32], dtype| chain.input(Shape::new(dims)?, dtype, Home::Call);
        let rows = [tokens, config.hidden];
        let first = match self {
            Stage::Embeddings => given(&[tokens], DType::U32)?,
            _ => given(&rows, DType::F32)?,
        };
        let (mut positions, mut types) = (first, None);
        if self == Stage::Rows {
            positions = given(&rows, DType::F32)?;
            if config.types > 0 {
                types = Some(given(&[1, config.hidden], DType::F32)?);
            }
        }
        let mut pass = Pass::new(config, chain, &own, homes)?;
        let result = match self {
            Stage::Embeddings => pass.embed(first, None, tokens)?,
            Stage::Rows => pass.sum(first, positions, types)?,
            Stage::Layer(_) => {
                if config.has_distance_bias {
                    pass.distances(tokens)?;
                }
                pass.layer(first)?
            }
            Stage::Vector => pass.vector(first, tokens)?,
        };
        pass.chain.output(result)?;
        Ok(pass.chain)
    }
}
