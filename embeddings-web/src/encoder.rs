//! The forward pass of a model as JavaScript sees it: which tensors it needs, and
//! what the core is to compute, in words.

use wasm_bindgen::prelude::*;

use framebatch::Error;
use framebatch::embed::{Config, Pooling, Role, forward, numbers, weights};
use framebatch::graph::chain::Home;

/// An encoder of some sizes.
#[wasm_bindgen(js_name = Encoder)]
pub struct WebEncoder(Config);

#[wasm_bindgen(js_class = Encoder)]
impl WebEncoder {
    /// An encoder of the sizes in their order in [`Config`], with 1 for CLS pooling and 1 to
    /// normalize; the epsilon is given by itself.
    #[wasm_bindgen(constructor)]
    pub fn new(sizes: &[u32], epsilon: f32) -> Result<WebEncoder, Error> {
        let &[
            hidden,
            layers,
            heads,
            intermediate,
            vocab,
            positions,
            first_position,
            types,
            is_cls,
            normalize,
            max_tokens,
        ] = sizes
        else {
            return Err(Error::InvalidInput("an encoder has 11 sizes".into()));
        };
        let pooling = match is_cls {
            0 => Pooling::Mean,
            _ => Pooling::Cls,
        };
        let config = Config {
            hidden,
            layers,
            heads,
            intermediate,
            vocab,
            positions,
            first_position,
            types,
            epsilon,
            pooling,
            normalize: normalize != 0,
            max_tokens,
        };
        config.validate()?;
        Ok(WebEncoder(config))
    }

    /// A line for each tensor of the file: the number of the one that it is a part
    /// of, 1 where that is kept in 32-bit floats always, dimensions, name.
    pub fn weights(&self) -> String {
        let mut lines = Vec::new();
        for (number, weight) in weights(&self.0).iter().enumerate() {
            let is_vector = match weight.role {
                Role::Matrix => "0",
                Role::Vector => "1",
            };
            let dims: Vec<String> = weight.part_dims().iter().map(u32::to_string).collect();
            for name in &weight.parts {
                lines.push([&number.to_string(), is_vector, &dims.join(","), name].join(" "));
            }
        }
        lines.join("\n")
    }

    /// The chain of a text of so many tokens, in words; `homes` says where each
    /// tensor lies, as numbers of the wire.
    pub fn forward(&self, tokens: u32, homes: &[u32]) -> Result<Vec<u32>, Error> {
        let homes: Option<Vec<Home>> = homes
            .iter()
            .map(|home| Home::ALL.get(*home as usize).copied())
            .collect();
        let homes = homes.unwrap_or_default();
        let chain = forward(&self.0, tokens, &homes)?;
        Ok(chain.encode())
    }

    /// The numbers that come with every call, in order.
    pub fn numbers(&self) -> Vec<f32> {
        numbers(&self.0).to_vec()
    }
}
