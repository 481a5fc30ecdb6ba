//! The forward pass of a model as JavaScript sees it: which tensors it needs, and
//! what the core is to compute, in words.

use wasm_bindgen::prelude::*;

use framebatch::Error;
use framebatch::embed::folder::Description;
use framebatch::embed::{
    MOST_TOKENS, Pooling, Role, Source, Stage, TEXTS, Tokens, check_arithmetic, check_fidelity,
    drawn_ids, forward, numbers, prefixes, weights,
};
use framebatch::graph::Precision;
use framebatch::graph::chain::Home;

/// The encoder of a folder.
#[wasm_bindgen(js_name = Encoder)]
pub struct WebEncoder(pub(super) Description);

#[wasm_bindgen(js_class = Encoder)]
impl WebEncoder {
    /// What callers are told: floats of a vector, layers, heads, tokens of the vocabulary, tokens
    /// of a text, types of tokens, 1 more than the id of a padding that has no position and
    /// otherwise 0, the number of the pooling, 1 where vectors have length 1, 1 where texts are put
    /// in lower case, 1 where there is a table of positions, and floats that stages hand on.
    pub fn facts(&self) -> Vec<u32> {
        let Description {
            config, lowercase, ..
        } = &self.0;
        let pooling = match config.pooling {
            Pooling::Mean => 0,
            Pooling::Cls => 1,
            Pooling::Max => 2,
            Pooling::LastToken => 3,
        };
        vec![
            config.dimensions(),
            config.layers,
            config.heads.count,
            config.vocab,
            config.max_tokens,
            config.types,
            config.first_position,
            pooling,
            config.normalize.into(),
            (*lowercase).into(),
            config.has_position_table.into(),
            config.staged(),
        ]
    }

    /// The name of the prompt of this number, if there is one.
    #[wasm_bindgen(js_name = promptName)]
    pub fn prompt_name(&self, number: usize) -> Option<String> {
        let prompt = self.0.prompts.get(number);
        prompt.map(|(name, _)| name.clone())
    }

    /// The prompt of this number; the default one behind the last.
    pub fn prompt(&self, number: usize) -> String {
        let prompt = self.0.prompts.get(number);
        prompt.map_or(&self.0.prompt, |(_, prompt)| prompt).clone()
    }

    /// Prefixes of names in `model.safetensors`, divided by spaces; the first is empty.
    pub fn prefixes(&self) -> String {
        prefixes(&self.0.config).join(" ")
    }

    /// A line for each tensor of the files: the number of the one that it is a part
    /// of; 1 where that is kept in 32-bit floats always, 2 where it goes through `layOut`
    /// besides; the part's dimensions, those of the whole on the device, 1 where the name has a
    /// prefix, name, file. For one that no file has, which `computed` gives: its number, 3, and its
    /// dimensions twice.
    pub fn weights(&self) -> String {
        let mut lines = Vec::new();
        for (number, weight) in weights(&self.0.config).iter().enumerate() {
            let role = match weight.role {
                Role::Matrix => "0",
                Role::Vector => "1",
                Role::Distances | Role::LessOne | Role::OfHeads(_) => "2",
                Role::Slopes | Role::Angles(_) => "3",
            };
            let text = |dims: &[u32]| {
                let dims: Vec<String> = dims.iter().map(u32::to_string).collect();
                dims.join(",")
            };
            let number = number.to_string();
            let whole = text(&weight.dims);
            let has_prefix = match weight.source {
                Source::Encoder => "1",
                Source::Head | Source::Module(_) => "0",
            };
            if weight.parts.is_empty() {
                lines.push([&number, role, &whole, &whole].join(" "));
            }
            let file = weight.source.file();
            for part in &weight.parts {
                let (dims, name) = (text(&part.dims), part.name.as_str());
                lines.push([&number, role, &dims, &whole, has_prefix, name, file].join(" "));
            }
        }
        lines.join("\n")
    }

    /// The floats of all parts of the tensor of this number as they lie on the device.
    #[wasm_bindgen(js_name = layOut)]
    pub fn lay_out(&self, number: usize, stored: Vec<f32>) -> Vec<f32> {
        let list = weights(&self.0.config);
        match list.get(number) {
            Some(weight) => weight.role.lay_out(&self.0.config, stored),
            None => stored,
        }
    }

    /// The floats of the tensor of this number, which no file has.
    pub fn computed(&self, number: usize) -> Vec<f32> {
        let list = weights(&self.0.config);
        let floats = list
            .get(number)
            .map(|weight| weight.role.computed(&self.0.config));
        floats.flatten().unwrap_or_default()
    }

    /// Has the products of chains that are asked for from now on computed in the precision of this
    /// number.
    #[wasm_bindgen(js_name = setPrecision)]
    pub fn set_precision(&mut self, number: usize) {
        self.0.config.precision = Precision::ALL.get(number).copied().unwrap_or_default();
    }

    /// The chain of a text of so many tokens, which come with their types if it is typed, in words;
    /// `homes` says where each tensor lies, as numbers of the wire.
    #[expect(clippy::fn_params_excessive_bools, reason = "so JavaScript asks it")]
    pub fn forward(&self, tokens: u32, is_typed: bool, homes: &[u32]) -> Result<Vec<u32>, Error> {
        let homes = homes_of(homes);
        let tokens = match is_typed {
            true => Tokens::Typed(tokens),
            false => Tokens::Ids(tokens),
        };
        let chain = forward(&self.0.config, tokens, &homes)?;
        Ok(chain.encode())
    }

    /// The numbers that come with every call, in order.
    pub fn numbers(&self) -> Vec<f32> {
        numbers(&self.0.config)
    }

    /// The places of the tensors of a stage: of that from ids, 0; from rows, 1; then of each layer;
    /// then of that which gives the vector.
    pub fn stage(&self, number: u32) -> Vec<u32> {
        let places = self.stage_of(number).weights(&self.0.config).into_iter();
        places
            .map(|at| u32::try_from(at).unwrap_or(u32::MAX))
            .collect()
    }

    /// The chain of a stage of so many tokens, in words; `homes` says where each of its tensors
    /// lies.
    #[wasm_bindgen(js_name = stageChain)]
    pub fn stage_chain(&self, number: u32, tokens: u32, homes: &[u32]) -> Result<Vec<u32>, Error> {
        let stage = self.stage_of(number);
        let chain = stage.chain(&self.0.config, tokens, &homes_of(homes))?;
        Ok(chain.encode())
    }

    /// A text that storage is tested by; none behind the last.
    #[wasm_bindgen(js_name = testText)]
    pub fn test_text(&self, number: usize) -> Option<String> {
        TEXTS.get(number).copied().map(String::from)
    }

    /// The most tokens of such a text.
    #[wasm_bindgen(js_name = testTokens)]
    pub fn test_tokens(&self) -> u32 {
        MOST_TOKENS.min(self.0.config.max_tokens)
    }

    /// Ids in the place of such a text's.
    #[wasm_bindgen(js_name = testIds)]
    pub fn test_ids(&self, number: usize) -> Vec<u32> {
        let mut drawn = drawn_ids(&self.0.config).into_iter();
        drawn.nth(number).unwrap_or_default()
    }

    /// Refuses 16-bit arithmetic for a model that does not suit it, or whose least cosine is too
    /// small.
    #[wasm_bindgen(js_name = checkArithmetic)]
    pub fn check_arithmetic(&self, cosine: f32) -> Result<(), Error> {
        check_arithmetic(&self.0.config, cosine)
    }

    /// Refuses storage of this name whose least cosine is too small.
    #[wasm_bindgen(js_name = checkFidelity)]
    pub fn check_fidelity(&self, storage: &str, cosine: f32) -> Result<(), Error> {
        check_fidelity(storage, cosine)
    }
}

impl WebEncoder {
    fn stage_of(&self, number: u32) -> Stage {
        const LAYERS: u32 = 2;
        match number {
            0 => Stage::Embeddings,
            1 => Stage::Rows,
            _ if number - LAYERS < self.0.config.layers => Stage::Layer(number - LAYERS),
            _ => Stage::Vector,
        }
    }
}

/// Where tensors lie, by the numbers of the wire.
fn homes_of(homes: &[u32]) -> Vec<Home> {
    let homes = homes.iter();
    let homes: Option<Vec<Home>> = homes
        .map(|home| Home::ALL.get(*home as usize).copied())
        .collect();
    homes.unwrap_or_default()
}
