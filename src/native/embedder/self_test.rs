//! The self-test of a model whose matrices are kept in fewer bits than its files have: a few texts
//! pass the encoder in both, stage by stage, so that the device has the whole weights of one stage at
//! a time.

use super::arithmetic::least;
use super::files::ModelFiles;
use super::references::{Reference, references};
use super::replica::Replica;
use super::vocabulary::Split;
use super::weights::StoredWeights;
use crate::batch::Priority;
use crate::embed::folder::Task;
use crate::embed::{
    Config, MOST_TOKENS, Stage, TEXTS, Tokens, Weight, check_fidelity, cosine, drawn_ids, forward,
    numbers,
};
use crate::error::Error;
use crate::graph::chain::{Chain, Home};
use crate::graph::shape::Shape;
use crate::native::call::Call;
use crate::native::platform::block_on;
use crate::native::request::{Chained, Request, Structure};
use crate::native::shared::Purpose;
use crate::native::storage::{Storage, TensorData};
use crate::native::submission::Terms;
use crate::native::tensor::Tensor;
use crate::tensor::Packing;

/// A model on a device, and its files.
pub(super) struct SelfTest<'a, 'b> {
    pub(super) replica: &'a Replica,
    pub(super) stored: &'a mut StoredWeights<'b>,
    pub(super) config: &'a Config,
    pub(super) list: &'a [Weight],
    pub(super) task: Task,
    /// Whether storage in fewer bits is tested.
    pub(super) verifies: bool,
}

/// The vectors of a text's tokens, by the matrices as they are kept and by those of the files.
struct Pair {
    kept: Vec<f32>,
    whole: Vec<f32>,
}

impl SelfTest<'_, '_> {
    /// The least cosine of the vectors of the texts: 1 where the matrices have the bits of the
    /// files, `None` through a handle whose calls are not sent, and where nothing is tested.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where it is too small, and whatever befalls the calls.
    pub(super) fn run(
        &mut self,
        files: &ModelFiles<'_>,
        tokenizer: &Split,
    ) -> Result<Option<f32>, Error> {
        if !self.verifies {
            return Ok(None);
        }
        if let Some(blocks) = self.stored.blocks {
            return self.compare(blocks, &references(files, self.config)?);
        }
        let Some(first) = (0..self.list.len()).find(|at| self.is_cut(*at)) else {
            return Ok(Some(1.0));
        };
        if self.replica.gpu.shared().purpose != Purpose::Send {
            return Ok(None);
        }
        let texts = self.texts(tokenizer);
        let mut pairs = self.begin(&texts)?;
        for number in 0..self.config.layers {
            pairs = self.advance(Stage::Layer(number), &pairs)?;
        }
        // Of one number, which a reranker gives, there is no cosine.
        if matches!(self.task, Task::Embed { .. }) {
            pairs = self.advance(Stage::Vector, &pairs)?;
        }
        let cosines = pairs.iter().map(|pair| cosine(&pair.kept, &pair.whole));
        let least = cosines.fold(1.0, least);
        check_fidelity(name(self.replica.tensors[first].home()), least)?;
        Ok(Some(least))
    }

    /// The least cosine with the vectors that a converted folder has; `None` where these are not to
    /// be compared: vectors that were cut have other directions, and a reranker has none.
    fn compare(&self, blocks: Packing, references: &[Reference]) -> Result<Option<f32>, Error> {
        let is_whole = self.task == Task::Embed { dimensions: None };
        let is_sent = self.replica.gpu.shared().purpose == Purpose::Send;
        if references.is_empty() || !is_whole || !is_sent {
            return Ok(None);
        }
        let texts = references.iter().map(|Reference { ids, .. }| &ids[..]);
        let vectors = self.vectors(self.config, texts)?;
        let pairs = vectors.iter().zip(references);
        let cosines = pairs.map(|(found, Reference { vector, .. })| cosine(found, vector));
        let least = cosines.fold(1.0, least);
        check_fidelity(blocks.name(), least)?;
        Ok(Some(least))
    }

    /// The vectors of texts, by a whole pass of each, in one batch.
    pub(super) fn vectors<'t>(
        &self,
        config: &Config,
        texts: impl Iterator<Item = &'t [u32]>,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let tensors = &self.replica.tensors;
        let homes: Vec<Home> = tensors.iter().map(Tensor::home).collect();
        let calls = texts.map(|ids| {
            let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            let chain = forward(config, Tokens::Ids(count), &homes)?;
            let floats = config.dimensions() as usize;
            let given = [bytemuck::cast_slice(ids)];
            Ok(self.send(chain, &given, tensors, [ids.len(), floats]))
        });
        let calls = calls.collect::<Result<Vec<Call<f32>>, Error>>()?;
        calls.into_iter().map(block_on).collect()
    }

    /// Whether a tensor has fewer bits than in its file.
    fn is_cut(&self, at: usize) -> bool {
        let home = self.replica.tensors[at].home();
        self.stored.loses(&self.list[at], home.packing())
    }

    /// The tokens of the texts; drawn ids where a text has none that the encoder takes.
    pub(super) fn texts(&self, tokenizer: &Split) -> Vec<Vec<u32>> {
        let most = MOST_TOKENS.min(self.config.max_tokens) as usize;
        let split = |(text, drawn): (&&str, Vec<u32>)| {
            let mut ids = Vec::new();
            if let Ok(tokenizer) = tokenizer {
                tokenizer.encode(text, most, &mut ids);
            }
            match ids.len() {
                0 => drawn,
                count if count > most => drawn,
                _ => ids,
            }
        };
        TEXTS
            .iter()
            .zip(drawn_ids(self.config))
            .map(split)
            .collect()
    }

    /// What goes to the first layer.
    fn begin(&mut self, texts: &[Vec<u32>]) -> Result<Vec<Pair>, Error> {
        let tables = Stage::Embeddings;
        let kept = self.kept(tables);
        let rows = Stage::Rows;
        let whole = self.whole(rows)?;
        let mut calls = Vec::new();
        for ids in texts {
            let given = bytemuck::cast_slice(ids);
            let first = self.call(tables, ids.len(), &[given], &kept)?;
            let rows_of = |stored: &mut StoredWeights<'_>, table: usize, rows: &[u32]| {
                stored.rows(&self.list[table], rows)
            };
            let from = self.config.first_position;
            let places: Vec<u32> = (from..).take(ids.len()).collect();
            let tables = [
                (true, &ids[..]),
                (self.config.has_position_table, &places[..]),
                (self.config.types > 0, &[0]),
            ];
            let there = tables.into_iter().filter(|(is_there, _)| *is_there);
            let given = there.enumerate();
            let given = given.map(|(table, (_, places))| rows_of(self.stored, table, places));
            let given = given.collect::<Result<Vec<_>, Error>>()?;
            let operands: Vec<&[u8]> = given
                .iter()
                .map(|rows| bytemuck::cast_slice(rows))
                .collect();
            let operands = &operands[..];
            let second = self.call(rows, ids.len(), operands, &whole)?;
            calls.push([first, second]);
        }
        answers(calls)
    }

    /// Takes the vectors through a stage.
    fn advance(&mut self, stage: Stage, pairs: &[Pair]) -> Result<Vec<Pair>, Error> {
        let (kept, whole) = (self.kept(stage), self.whole(stage)?);
        let mut calls = Vec::new();
        for pair in pairs {
            let tokens = pair.kept.len() / self.config.staged() as usize;
            let call = |x: &[f32], weights: &[Tensor]| {
                self.call(stage, tokens, &[bytemuck::cast_slice(x)], weights)
            };
            calls.push([call(&pair.kept, &kept)?, call(&pair.whole, &whole)?]);
        }
        answers(calls)
    }

    /// The tensors of a stage as they are kept.
    fn kept(&self, stage: Stage) -> Vec<Tensor> {
        let places = stage.weights(self.config).into_iter();
        let tensors = places.map(|at| self.replica.tensors[at].clone());
        tensors.collect()
    }

    /// The tensors of a stage with all bits of the files.
    fn whole(&mut self, stage: Stage) -> Result<Vec<Tensor>, Error> {
        let places = stage.weights(self.config).into_iter();
        let tensors = places.map(|at| {
            if !self.is_cut(at) {
                return Ok(self.replica.tensors[at].clone());
            }
            let weight = &self.list[at];
            let gpu = &self.replica.gpu;
            let floats = self.stored.floats_of(weight)?;
            let contents = TensorData::Floats(&floats).contents(Storage::F32, &gpu.info())?;
            gpu.keep(Shape::new(&weight.dims)?, contents)
        });
        tensors.collect()
    }

    fn call(
        &self,
        stage: Stage,
        tokens: usize,
        given: &[&[u8]],
        weights: &[Tensor],
    ) -> Result<Call<f32>, Error> {
        let homes: Vec<Home> = weights.iter().map(Tensor::home).collect();
        let count = u32::try_from(tokens).unwrap_or(u32::MAX);
        let floats = match stage {
            Stage::Vector => self.config.dimensions() as usize,
            _ => tokens * self.config.staged() as usize,
        };
        let chain = stage.chain(self.config, count, &homes)?;
        Ok(self.send(chain, given, weights, [tokens, floats]))
    }

    /// Sends a call of a chain that takes what is given, the encoder's numbers and these tensors. Its
    /// tokens count as so many rows, and it gives so many floats.
    fn send(
        &self,
        chain: Chain,
        given: &[&[u8]],
        tensors: &[Tensor],
        [rows, floats]: [usize; 2],
    ) -> Call<f32> {
        let numbers = numbers(self.config);
        let operands = given.iter().copied();
        let operands = operands.chain([bytemuck::cast_slice(&numbers)]).collect();
        let request = Request {
            structure: Structure::Chain(chain),
            rows,
            scalar: 0,
            operands: Default::default(),
            chained: Chained {
                operands,
                tensors: tensors.iter().map(Tensor::number).collect(),
                ..Chained::default()
            },
        };
        let shared = self.replica.gpu.shared();
        // At once, whatever the policy is, without what the handle asks of its calls, and on the
        // device that the weights are on.
        let terms = Terms {
            priority: Priority::High,
            engine: Some(self.replica.gpu.info().engine),
            ..Terms::default()
        };
        shared.submit_floats(request, terms, floats)
    }
}

fn answers(calls: Vec<[Call<f32>; 2]>) -> Result<Vec<Pair>, Error> {
    let pairs = calls.into_iter().map(|[kept, whole]| {
        let (kept, whole) = (block_on(kept)?, block_on(whole)?);
        Ok(Pair { kept, whole })
    });
    pairs.collect()
}

fn name(home: Home) -> &'static str {
    home.packing().map_or("f32", Packing::name)
}
