//! The forward pass in stages, each a chain of its own, for whoever holds the weights of one stage at
//! a time. One after another they compute what [`forward`](super::forward) does at once.

use super::config::Config;
use super::pass::{Pass, refuse};
use super::weights::{behind, embedded, layer, shared, tables, weights};
use crate::error::Error;
use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::tensor::DType;

/// A stage of the forward pass over one text, whose tokens all have the first type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From ids to what a token has at first: `[tokens, staged]`, by [`Config::staged`].
    Embeddings,
    /// The same from rows of the tables, for whoever has these and not the tables: those of the
    /// words, those of the positions, where there is a table of them, `[tokens, hidden]` each, and
    /// that of the first type, `[1, hidden]`, where there are types.
    Rows,
    /// The layer of this number, from `[tokens, staged]` to `[tokens, staged]`.
    Layer(u32),
    /// From what the last layer gives to the vector of the text, `[dimensions]`.
    Vector,
}

impl Stage {
    /// The places in [`weights`](super::weights) of the tensors that the stage reads. Those that
    /// layers share come first.
    pub fn weights(self, config: &Config) -> Vec<usize> {
        let embedded = embedded(config).len();
        let shared = shared(config);
        let layers = embedded + shared.len();
        let before = |number: u32| {
            let each = (0..number).map(|number| layer(config, number).len());
            layers + each.sum::<usize>()
        };
        match self {
            Stage::Embeddings => (0..embedded).collect(),
            Stage::Rows => (tables(config)..embedded).collect(),
            Stage::Layer(number) => {
                let sight = config.sight(number);
                let own = before(number)..before(number + 1);
                let all = shared.iter().enumerate();
                let read = all.filter(|(_, weight)| weight.role.is_read(sight));
                read.map(|(at, _)| embedded + at).chain(own).collect()
            }
            Stage::Vector => {
                let from = before(config.layers);
                let words = config.answers.map(|_| 0);
                words
                    .into_iter()
                    .chain(from..from + behind(config).len())
                    .collect()
            }
        }
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
            Stage::Rows => given(&rows, DType::F32)?,
            Stage::Layer(_) | Stage::Vector => given(&[tokens, config.staged()], DType::F32)?,
        };
        let (mut positions, mut types) = (None, None);
        if self == Stage::Rows {
            if config.has_position_table {
                positions = Some(given(&rows, DType::F32)?);
            }
            if config.types > 0 {
                types = Some(given(&[1, config.hidden], DType::F32)?);
            }
        }
        let mut pass = Pass::new(config, chain, &own, homes)?;
        let result = match self {
            Stage::Embeddings => {
                let x = pass.embed(first, None, tokens)?;
                pass.hand_on(x)?
            }
            Stage::Rows => {
                let x = pass.sum(first, positions, types)?;
                pass.hand_on(x)?
            }
            Stage::Layer(number) => {
                let sight = config.sight(number);
                let shared = shared(config);
                let read = shared.iter().filter(|weight| weight.role.is_read(sight));
                pass.share(read, tokens)?;
                let x = pass.receive(first)?;
                let x = pass.layer(x, number)?;
                pass.hand_on(x)?
            }
            Stage::Vector => {
                if config.answers.is_some() {
                    pass.take_words()?;
                }
                let x = pass.receive(first)?;
                pass.vector(x, tokens)?
            }
        };
        pass.chain.output(result)?;
        Ok(pass.chain)
    }
}
