//! Per-layer embeddings: in each layer, behind its feed-forward network, a third sum with the
//! residual, gated by what the layer's own projection makes of what went to the first layer (Gemma
//! 3n, 2025; without a table of tokens, as EmbeddingGemma 2 has it).
//!
//! The projections of all layers are one matrix in the file. Each layer takes its rows of it, so
//! that the embeddings of other layers are never in memory.

use super::config::{Bias, Config};
use super::pass::{END, Pass, PerLayer, refuse};
use crate::error::Error;
use crate::graph::chain::Norm;
use crate::graph::{BinaryFn, NodeId};

/// What products with the rows of a layer are multiplied by.
#[expect(clippy::cast_precision_loss, reason = "at most 2^16")]
pub(super) fn scale(config: &Config) -> Option<f32> {
    let has_scale = config.per_layer_embedding.is_some();
    has_scale.then(|| 1.0 / (config.hidden as f32).sqrt())
}

impl Pass<'_> {
    /// What goes from a stage to the next: the vectors of tokens, and beside these, where layers
    /// need it, what went to the first layer.
    pub(super) fn hand_on(&mut self, x: NodeId) -> Result<NodeId, Error> {
        match self.per_layer.and_then(|per_layer| per_layer.first) {
            Some(first) => self.chain.concat(&[x, first], 1),
            None => Ok(x),
        }
    }

    /// Takes what a stage handed on.
    pub(super) fn receive(&mut self, handed: NodeId) -> Result<NodeId, Error> {
        let Some(per_layer) = &mut self.per_layer else {
            return Ok(handed);
        };
        let hidden = self.config.hidden as i32;
        let mut part = |from| {
            let columns = (from, from + hidden, 1);
            self.chain.slice(handed, &[(0, END, 1), columns])
        };
        let x = part(0)?;
        per_layer.first = Some(part(hidden)?);
        Ok(x)
    }

    /// Takes the rows of all layers.
    pub(super) fn take_projections(&mut self, table: NodeId) {
        if let Some(per_layer) = &mut self.per_layer {
            per_layer.projections = Some(table);
        }
    }

    /// Takes the weights of the norm behind products with these rows.
    pub(super) fn take_projected_norm(&mut self, weights: NodeId) {
        if let Some(per_layer) = &mut self.per_layer {
            per_layer.norm = Some(weights);
        }
    }

    /// The layer's third sum with the residual.
    pub(super) fn add_per_layer(&mut self, x: NodeId, number: u32) -> Result<NodeId, Error> {
        let Some(per_layer) = self.per_layer else {
            return Ok(x);
        };
        let embedding = self.per_layer_embedding(per_layer, number)?;
        let gate = self.linear(x, Bias::Absent)?;
        let gate = self.unary(self.config.activation.function(), gate)?;
        let gated = self.chain.binary(BinaryFn::Mul, gate, embedding)?;
        let mixed = self.linear(gated, Bias::Absent)?;
        let mixed = self.norm(mixed)?;
        self.add(mixed, x)
    }

    /// The embedding of this layer, `[tokens, floats]`.
    fn per_layer_embedding(&mut self, of: PerLayer, number: u32) -> Result<NodeId, Error> {
        let (Some(projections), Some(norm), Some(first)) = (of.projections, of.norm, of.first)
        else {
            return Err(refuse("per-layer embeddings lack a tensor"));
        };
        let from = (number * of.floats) as i32;
        let rows = (from, from + of.floats as i32, 1);
        let rows = self.chain.slice(projections, &[rows])?;
        let columns = self.chain.transpose(rows, &[])?;
        let product = (self.chain).matmul_in(self.config.precision, first, columns)?;
        let product = self.chain.binary(BinaryFn::Mul, product, of.scale)?;
        let normed = (self.chain).norm(Norm::Rms, product, -1, Some(self.epsilon))?;
        self.chain.binary(BinaryFn::Mul, normed, norm)
    }
}
