//! The forward pass of an encoder over one text, as a chain: ids go in, and one
//! vector comes out. Texts of other lengths are calls of the same program.
//!
//! Which parts there are is read from the [`Config`]; no family is named here.

use super::config::{Answers, Bias, Config, Dense, Gate, NormPlace, Pooling};
use super::pass::{END, Pass, refuse};
use super::per_layer;
use super::weights::{Role, Weight};
use crate::error::Error;
use crate::graph::chain::{Axes, Chain, Home, Norm, Reduction, Store, StoreExtent};
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, NodeId};
use crate::tensor::DType;

/// The least length that vectors are divided by, as PyTorch's `normalize` has it.
const LEAST_LENGTH: f32 = 1e-12;

/// The numbers that come with every call besides its ids, in the chain's order.
pub fn numbers(config: &Config) -> Vec<f32> {
    let usual = || 1.0 / (config.heads.size as f32).sqrt();
    let scale = config.score_scale.unwrap_or_else(usual);
    let mut numbers = vec![config.epsilon, scale, LEAST_LENGTH];
    numbers.extend(config.word_scale);
    numbers.extend(per_layer::scale(config));
    numbers
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

/// The chain of a text, and its vector.
pub(super) fn record(
    config: &Config,
    tokens: Tokens,
    homes: &[Home],
) -> Result<(Chain, NodeId), Error> {
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
    pass.share(super::weights::shared(config).iter(), count)?;
    for number in 0..config.layers {
        x = pass.layer(x, number)?;
    }
    let vector = pass.vector(x, count)?;
    Ok((pass.chain, vector))
}

impl Pass<'_> {
    /// Takes the table of words, which is the first of the tensors wherever it is among these.
    pub(super) fn take_words(&mut self) -> Result<NodeId, Error> {
        let words = self.weight()?;
        self.words = Some(words);
        Ok(words)
    }

    pub(super) fn embed(
        &mut self,
        ids: NodeId,
        types: Option<NodeId>,
        tokens: u32,
    ) -> Result<NodeId, Error> {
        let words = self.take_words()?;
        let words = self.chain.gather(words, ids, 0)?;
        let mut positions = None;
        if self.config.has_position_table {
            let table = self.weight()?;
            let first = self.config.first_position as i32;
            let rows = (first, first + tokens as i32, 1);
            positions = Some(self.chain.slice(table, &[rows])?);
        }
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
        positions: Option<NodeId>,
        types: Option<NodeId>,
    ) -> Result<NodeId, Error> {
        let mut x = match self.word_scale {
            Some(scale) => self.chain.binary(BinaryFn::Mul, words, scale)?,
            None => words,
        };
        for table in [types, positions].into_iter().flatten() {
            x = self.add(x, table)?;
        }
        if self.config.norms.is_embedding_normed {
            x = self.norm(x)?;
        }
        if let Some(per_layer) = &mut self.per_layer {
            per_layer.first = Some(x);
        }
        Ok(x)
    }

    /// Takes these of the tensors that layers share, as far as a text of so many tokens needs them:
    /// of biases those of its distances, which are those of the longest text without the furthest.
    pub(super) fn share<'b>(
        &mut self,
        weights: impl Iterator<Item = &'b Weight>,
        tokens: u32,
    ) -> Result<(), Error> {
        let (tokens, longest) = (tokens as i32, self.config.max_tokens as i32);
        for weight in weights {
            let table = self.weight()?;
            match weight.role {
                Role::Angles(sight) => {
                    let mut half = |at: i32| {
                        let parts = [(0, tokens, 1), (0, 1, 1), (at, at + 1, 1)];
                        self.chain.slice(table, &parts)
                    };
                    self.shared.angles[sight as usize] = Some([half(0)?, half(1)?]);
                }
                Role::Distances | Role::Slopes => {
                    let columns = (longest - tokens, longest + tokens - 1, 1);
                    let bias = self.chain.slice(table, &[(0, END, 1), columns])?;
                    self.shared.bias = Some(bias);
                }
                Role::Matrix => self.take_projections(table),
                _ => self.take_projected_norm(table),
            }
        }
        Ok(())
    }

    /// The layer of this number.
    pub(super) fn layer(&mut self, x: NodeId, number: u32) -> Result<NodeId, Error> {
        let x = self.attend_and_feed(x, number)?;
        let x = self.add_per_layer(x, number)?;
        match self.config.are_layers_scaled {
            true => {
                let scale = self.weight()?;
                self.chain.binary(BinaryFn::Mul, x, scale)
            }
            false => Ok(x),
        }
    }

    fn attend_and_feed(&mut self, x: NodeId, number: u32) -> Result<NodeId, Error> {
        let sight = self.config.sight(number);
        let norms = self.config.norms;
        if norms.place == NormPlace::After {
            let seen = self.attend(x, sight)?;
            let seen = self.add(seen, x)?;
            let x = self.norm(seen)?;
            let fed = self.feed(x)?;
            let fed = self.add(fed, x)?;
            return self.norm(fed);
        }
        let is_around = norms.place == NormPlace::Around;
        let normed = match number == 0 && norms.is_embedding_normed {
            true => x,
            false => self.norm(x)?,
        };
        let mut seen = self.attend(normed, sight)?;
        if is_around {
            seen = self.norm(seen)?;
        }
        let x = self.add(seen, x)?;
        let normed = self.norm(x)?;
        let mut fed = self.feed(normed)?;
        if is_around {
            fed = self.norm(fed)?;
        }
        self.add(fed, x)
    }

    fn feed(&mut self, x: NodeId) -> Result<NodeId, Error> {
        let config = self.config;
        let function = config.activation.function();
        let inner = self.linear(x, config.biases.inner)?;
        let inner = match config.gate {
            None => self.unary(function, inner)?,
            Some(gate) => {
                let width = config.intermediate as i32;
                let mut half = |at: i32| {
                    let columns = (at * width, (at + 1) * width, 1);
                    self.chain.slice(inner, &[(0, END, 1), columns])
                };
                let halves = [half(0)?, half(1)?];
                let gates = usize::from(gate == Gate::Second);
                let gating = self.unary(function, halves[gates])?;
                self.chain
                    .binary(BinaryFn::Mul, gating, halves[1 - gates])?
            }
        };
        self.linear(inner, config.biases.outer)
    }

    /// What becomes of the last layer's vectors.
    pub(super) fn vector(&mut self, x: NodeId, tokens: u32) -> Result<NodeId, Error> {
        let config = self.config;
        let x = match config.norms.place {
            NormPlace::After => x,
            NormPlace::Before | NormPlace::Around => self.norm(x)?,
        };
        let mut vector = self.pool(x, tokens)?;
        for layer in &config.dense {
            vector = self.dense(layer, vector)?;
        }
        if let Some(answers) = config.answers {
            vector = self.answer(answers, vector)?;
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
        let x = self.linear(x, layer.bias)?;
        let x = self.unary(layer.activation.function(), x)?;
        match layer.norm {
            Some(_) => self.weighted_norm(x, Bias::Absent),
            None => Ok(x),
        }
    }

    /// The difference of two words' logits, and what is done with it.
    fn answer(&mut self, answers: Answers, vector: NodeId) -> Result<NodeId, Error> {
        let words = self.words;
        let words = words.ok_or_else(|| refuse("the table of words is not among the tensors"))?;
        let mut row = |word: u32| {
            let word = word as i32;
            self.chain.slice(words, &[(word, word + 1, 1)])
        };
        let [yes, no] = [row(answers.yes)?, row(answers.no)?];
        let direction = self.chain.binary(BinaryFn::Sub, yes, no)?;
        let difference = self.chain.dot(direction, vector)?;
        self.unary(answers.activation.function(), difference)
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
}
