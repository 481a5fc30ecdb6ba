//! Whether a forward pass of an encoder's sizes is possible.

use super::config::{Answers, Config, Heads, Sight};
use super::forward::{Tokens, record};
use super::weights::weights;
use crate::error::Error;
use crate::graph::chain::{Home, MAX_HEAD, MAX_NODES};
use crate::graph::shape::MAX_ELEMENTS;

/// The most layers behind the pooling.
const MAX_DENSE: usize = 4;

/// What is told where a tensor of hidden_size columns has too many rows.
const TOO_LARGE: &str = "times hidden_size must be at most 2^30";

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
            ("intermediate_size", self.intermediate),
            ("vocab_size", self.vocab),
            ("max_position_embeddings", self.positions),
            (
                "hidden_size_per_layer_input",
                self.per_layer_embedding.unwrap_or(1),
            ),
        ];
        for (field, size) in sizes {
            if size == 0 {
                return Err(refuse(field, size, "must be at least 1"));
            }
        }
        for sight in [Sight::All, Sight::Near] {
            self.validate_heads(self.heads(sight))?;
        }
        if !self.score_scale.is_none_or(f32::is_finite) {
            return Err(Error::InvalidInput(
                "config.json: the scale of an attention must be a number".into(),
            ));
        }
        let per_layer = self.per_layer_embedding.unwrap_or(0);
        for (field, rows) in [
            ("vocab_size", self.vocab),
            ("intermediate_size", self.inner()),
            ("max_position_embeddings", self.positions),
            ("type_vocab_size", self.types),
            (
                "hidden_size_per_layer_input",
                per_layer.saturating_mul(self.layers),
            ),
        ] {
            if u64::from(rows) * u64::from(self.hidden) > u64::from(MAX_ELEMENTS) {
                return Err(refuse(field, rows, TOO_LARGE));
            }
        }
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            return Err(Error::InvalidInput(
                "config.json: layer_norm_eps must be a number from 0".into(),
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
        self.validate_dense()?;
        let most = max_layers(self)?;
        if self.layers > most {
            let rule = ["must be at most ", &most.to_string()].concat();
            return Err(refuse("num_hidden_layers", self.layers, &rule));
        }
        Ok(())
    }

    fn validate_heads(&self, heads: Heads) -> Result<(), Error> {
        let Heads {
            count,
            of_keys,
            size,
            ..
        } = heads;
        if count == 0 || !(1..=MAX_HEAD).contains(&size) {
            let rule = ["must give heads of 1 to ", &MAX_HEAD.to_string(), " floats"];
            return Err(refuse("num_attention_heads", count, &rule.concat()));
        }
        if of_keys == 0 || !count.is_multiple_of(of_keys) {
            let rule = "must divide num_attention_heads";
            return Err(refuse("num_key_value_heads", of_keys, rule));
        }
        let turns = self.rotation.is_some() || self.near.is_some();
        if turns && !size.is_multiple_of(2) {
            let rule = "must leave heads an even number of floats";
            return Err(refuse("num_attention_heads", count, rule));
        }
        let floats = u64::from(heads.all()) * u64::from(size);
        if floats * u64::from(self.hidden) > u64::from(MAX_ELEMENTS) {
            let (field, floats) = ("num_attention_heads", heads.all().saturating_mul(size));
            return Err(refuse(field, floats, TOO_LARGE));
        }
        Ok(())
    }

    fn validate_dense(&self) -> Result<(), Error> {
        if self.dense.len() > MAX_DENSE {
            let most = MAX_DENSE.to_string();
            let problem = ["modules.json: at most ", &most, " Dense modules are known"];
            return Err(Error::UnknownModel(problem.concat()));
        }
        let mut floats = self.hidden;
        for layer in &self.dense {
            let elements = u64::from(layer.inputs) * u64::from(layer.outputs);
            let fits = layer.inputs == floats && layer.outputs > 0;
            if !fits || elements > u64::from(MAX_ELEMENTS) {
                let (inputs, floats) = (layer.inputs.to_string(), floats.to_string());
                let problem = [
                    "the layer ",
                    &layer.name,
                    " behind the pooling takes ",
                    &inputs,
                    " floats, but gets ",
                    &floats,
                ];
                return Err(Error::InvalidInput(problem.concat()));
            }
            floats = layer.outputs;
        }
        if let Some(Answers { yes, no, .. }) = self.answers {
            if floats != self.hidden || yes.max(no) >= self.vocab {
                return Err(Error::InvalidInput(
                    "LogitScore: true_token_id and false_token_id must be tokens of the vocabulary"
                        .into(),
                ));
            }
            floats = 1;
        }
        match self.cut {
            Some(cut) if cut == 0 || cut >= floats => {
                let (cut, floats) = (cut.to_string(), floats.to_string());
                let problem = [
                    "dimensions must be a whole number from 1 and below the model's ",
                    &floats,
                    ", got ",
                    &cut,
                ];
                Err(Error::InvalidInput(problem.concat()))
            }
            _ => Ok(()),
        }
    }
}

/// The most layers whose nodes fit a chain; of few layers they always do.
///
/// # Errors
///
/// The errors of [`forward`](super::forward), for a configuration that makes no sense otherwise.
fn max_layers(config: &Config) -> Result<u32, Error> {
    let tokens = match config.types {
        0 | 1 => Tokens::Ids(1),
        _ => Tokens::Typed(1),
    };
    let nodes = |layers| {
        let config = Config {
            layers,
            ..config.clone()
        };
        let homes = vec![Home::Resident; weights(&config).len()];
        let (chain, _) = record(&config, tokens, &homes)?;
        // The tensor that takes the vector may be an input as well.
        Ok(chain.nodes().len() + 1)
    };
    // The fewest layers that have all kinds among them.
    let kinds = |layers| {
        let seen = |sight| (0..layers).any(|layer| config.sight(layer) == sight);
        [Sight::All, Sight::Near].map(seen)
    };
    let few = (2..config.layers).find(|few| kinds(*few) == kinds(config.layers));
    let Some(few) = few else {
        return Ok(u32::MAX);
    };
    let (fewer, more): (usize, usize) = (nodes(few)?, nodes(few + 1)?);
    let left = MAX_NODES.saturating_sub(fewer) / (more - fewer).max(1);
    Ok(few.saturating_add(u32::try_from(left).unwrap_or(u32::MAX)))
}

fn refuse(field: &str, given: u32, rule: &str) -> Error {
    let given = given.to_string();
    Error::InvalidInput(["config.json: ", field, " ", rule, ", got ", &given].concat())
}
