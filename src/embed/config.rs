//! The sizes of an encoder, checked. The faces read the sizes; errors name the file and the field of
//! a Hugging Face folder that has them.

use crate::error::Error;
use crate::graph::chain::MAX_HEAD;
use crate::graph::shape::MAX_ELEMENTS;

/// How the vectors of a text's tokens become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of the tokens' vectors.
    Mean,
    /// The first token's vector.
    Cls,
}

/// An encoder of the BERT family: token, position and type embeddings, then
/// layers of attention and a feed-forward network of erf-GELU, each with a
/// residual and a norm behind it (Devlin and others, 2018, section 3 and
/// appendix A.2). No decoder, no relative positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Floats of a token's vector, and of the result.
    pub hidden: u32,
    /// Layers.
    pub layers: u32,
    /// Heads of an attention; they share a token's floats evenly.
    pub heads: u32,
    /// Floats between the two products of a feed-forward network.
    pub intermediate: u32,
    /// Tokens of the vocabulary: all ids are below.
    pub vocab: u32,
    /// Rows of the table of positions.
    pub positions: u32,
    /// The row of a text's first token in the table of positions: 0, and in RoBERTa 1 + the id of
    /// the padding.
    pub first_position: u32,
    /// Rows of the table of types. Every token has the first one.
    pub types: u32,
    /// The number that is added to variances before their square root is taken.
    pub epsilon: f32,
    /// How tokens become one vector.
    pub pooling: Pooling,
    /// Whether the vector is divided by its length.
    pub normalize: bool,
    /// The most tokens of a text, `[CLS]` and `[SEP]` included.
    pub max_tokens: u32,
}

/// The most layers whose nodes fit a chain: 37 for each layer, and 40 besides.
const MAX_LAYERS: u32 = 26;

impl Config {
    /// Checks that a forward pass of these sizes is possible.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] naming file, field and what it may be.
    pub fn validate(&self) -> Result<(), Error> {
        let sizes = [
            ("hidden_size", self.hidden),
            ("num_hidden_layers", self.layers),
            ("num_attention_heads", self.heads),
            ("intermediate_size", self.intermediate),
            ("vocab_size", self.vocab),
            ("max_position_embeddings", self.positions),
            ("type_vocab_size", self.types),
        ];
        for (field, size) in sizes {
            if size == 0 {
                return Err(refuse(field, size, "must be at least 1"));
            }
        }
        if !self.hidden.is_multiple_of(self.heads) || self.hidden / self.heads > MAX_HEAD {
            let most = MAX_HEAD.to_string();
            let rule = ["must share hidden_size evenly, in heads of at most ", &most].concat();
            return Err(refuse("num_attention_heads", self.heads, &rule));
        }
        if self.layers > MAX_LAYERS {
            let rule = ["must be at most ", &MAX_LAYERS.to_string()].concat();
            return Err(refuse("num_hidden_layers", self.layers, &rule));
        }
        for (field, rows) in [
            ("vocab_size", self.vocab),
            ("intermediate_size", self.intermediate),
            ("max_position_embeddings", self.positions),
            ("type_vocab_size", self.types),
            ("hidden_size", self.hidden.saturating_mul(3)),
        ] {
            if u64::from(rows) * u64::from(self.hidden) > u64::from(MAX_ELEMENTS) {
                return Err(refuse(
                    field,
                    rows,
                    "times hidden_size must be at most 2^30",
                ));
            }
        }
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            return Err(Error::InvalidInput(
                "config.json: layer_norm_eps must be a number from 0 on".into(),
            ));
        }
        let most = self.positions.saturating_sub(self.first_position);
        if self.max_tokens == 0 || self.max_tokens > most {
            let (given, most) = (self.max_tokens.to_string(), most.to_string());
            return Err(Error::InvalidInput(
                [
                    "sentence_bert_config.json: max_seq_length ",
                    &given,
                    " must be 1 to ",
                    &most,
                    ", the positions of config.json",
                ]
                .concat(),
            ));
        }
        Ok(())
    }
}

fn refuse(field: &str, given: u32, rule: &str) -> Error {
    let given = given.to_string();
    Error::InvalidInput(["config.json: ", field, " ", &given, " ", rule].concat())
}
