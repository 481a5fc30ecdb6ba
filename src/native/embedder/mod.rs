//! Text embeddings: a model's folder becomes tensors on one device or on several, a text becomes a
//! call, and texts that wait together are one forward pass.
//!
//! What is computed is the matter of `embed`; when and where, that of the session.

mod arithmetic;
mod blocks;
mod convert;
mod embedding;
mod encoder;
mod files;
mod folder;
mod json;
mod load;
mod many;
mod model;
mod references;
mod replica;
mod reranker;
mod self_test;
mod sharing;
mod vocabulary;
mod weights;

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

pub use arithmetic::Arithmetic;
pub use convert::{Conversion, convert};
pub use embedding::Embedding;
pub(super) use encoder::{Destination, Encoder};
pub use files::ModelFiles;
pub(super) use load::Burden;
pub use load::EmbedderStats;
pub use many::Embeddings;
pub use reranker::{Ranked, Ranking, Reranker, RerankerOptions, Scores};

#[cfg(test)]
pub(super) use sharing::SharedFuture;

use self::embedding::Text;
use self::load::Load;
use self::model::{Model, Usage};
use self::vocabulary::leaving_ids;
use super::gpu::Gpu;
use super::storage::Storage;
use super::tensor::Tensor;
use crate::embed::Config;
use crate::embed::folder::Task;
use crate::embed::tokenizer::Tokens;
use crate::error::Error;
use crate::graph::Precision;
use crate::tensor::Packing;

/// How a model is opened.
#[derive(Clone, Debug)]
pub struct EmbedderOptions {
    /// The format in which the device keeps tables and matrices. Biases and norms are always
    /// 32-bit floats, and so is everything that is computed of them, unless
    /// [`EmbedderOptions::arithmetic`] says otherwise. On a GPU in hardware [`Storage::Auto`] is the format of the file, or 16 bits where the file has more; elsewhere
    /// it is 32 bits. [`Embedder::dtype`] tells the format in use. [`Storage::F32`] unless set.
    pub dtype: Storage,
    /// The floats that products of matrices are computed in. [`Arithmetic::F16`] takes a GPU with
    /// the feature `shader-f16`, and a model that is sound in it: the cosines of a few texts'
    /// vectors with those in 32 bits must be 0.9999 or more, unless
    /// [`EmbedderOptions::verify`] is off, and Gemma is refused, whose layers leave the range of
    /// 16-bit floats. [`Arithmetic::Auto`] takes 32 bits in place of failing.
    /// [`Embedder::arithmetic`] tells the one in use. [`Arithmetic::F32`] unless set.
    pub arithmetic: Arithmetic,
    /// Whether texts of more than [`Config::max_tokens`] are cut off or refused.
    pub long_texts: LongTexts,
    /// Floats that vectors are cut to, for models that were trained for it (Matryoshka); a model
    /// that normalizes does so behind the cut. `None` leaves vectors as long as they are.
    pub dimensions: Option<u32>,
    /// Whether matrices in fewer bits than the files have are tested while the model is opened: a
    /// few texts pass the encoder in both, layer by layer, and where the vectors' cosine is below
    /// 0.99 opening fails. [`Embedder::fidelity`] tells the cosine. `true` unless set.
    pub verify: bool,
}

impl Default for EmbedderOptions {
    fn default() -> Self {
        EmbedderOptions {
            dtype: Storage::default(),
            arithmetic: Arithmetic::default(),
            long_texts: LongTexts::default(),
            dimensions: None,
            verify: true,
        }
    }
}

/// What is done with a text of more tokens than the model takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongTexts {
    /// The text's end is cut off, as the model's own library does.
    #[default]
    Truncate,
    /// The text fails with [`Error::InvalidInput`].
    Reject,
}

/// A text-embedding model on a session's device, or on those of several sessions.
///
/// Each text is a call of its own, from any thread: what waits together is one
/// forward pass, whatever its lengths, without padding, and only the vectors come
/// back. A text gives the same bits alone and among others. While an equal text
/// waits, it is computed once for all who asked.
///
/// With several sessions ([`Gpus`](super::Gpus)) a text goes to the one that has the
/// fewest tokens to do. When its device is lost, it goes to another one, if any is
/// sound, and otherwise waits as calls do; so do texts that a session refuses because
/// it is full or closed, once each. [`Embedder::stats`] counts. Devices of one kind
/// give the same bits.
///
/// Clones share the model; it leaves the device with the last one, and with the last
/// embedding that is waited for.
///
/// ```no_run
/// # fn main() -> Result<(), framebatch::Error> {
/// use framebatch::{Blocking, Config, Embedder, EmbedderOptions};
///
/// let gpu = Blocking::open(Config::default())?;
/// let embedder = Embedder::open(gpu.gpu(), "models/minilm", EmbedderOptions::default())?;
/// let (a, b) = (embedder.embed("a text"), embedder.embed("and another")); // One pass.
/// let (a, b) = (a.wait()?, b.wait()?);
/// println!("{}", a.iter().zip(&b).map(|(a, b)| a * b).sum::<f32>());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Embedder {
    /// The handle that all calls go through, if there is one.
    through: Option<Gpu>,
    model: Arc<Model>,
    /// Prompts by name.
    prompts: Arc<[(String, String)]>,
    prompt: Arc<str>,
}

impl Embedder {
    /// Reads a model from a Hugging Face folder as it is, or from its files in
    /// memory, and copies it to the device: of one session, `&gpu`, or of each of up
    /// to 64, `&gpus`. It blocks while it reads.
    ///
    /// `config.json` and `model.safetensors` (32-bit, 16-bit or bfloat16) must be
    /// there; `tokenizer.json` or `vocab.txt` with `tokenizer_config.json`,
    /// `modules.json` with the files that it names, `sentence_bert_config.json` and
    /// `config_sentence_transformers.json` are followed where they are, as
    /// sentence-transformers does. Without `modules.json` embeddings are the mean of
    /// the tokens, not normalized. Architectures are BERT (with ALiBi too), RoBERTa,
    /// XLM-RoBERTa, DistilBERT, MPNet, ModernBERT, NomicBERT, GTE, Qwen3, Gemma 3 for
    /// text and EmbeddingGemma 2; a model whose tokenizer is none that is known takes
    /// [`Embedder::embed_ids`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] naming the file, and the field or the tensor with
    /// both shapes, for what is missing, cut off or contradictory, and
    /// [`Error::UnknownModel`] for a model of another kind; all of it is found before
    /// anything is uploaded.
    /// [`Error::TooLarge`] where a tensor fits no buffer, [`Error::OutOfMemory`] where
    /// the memory budget or the GPU has no room for the weights, [`Error::Disposed`].
    /// What was uploaded until then is freed.
    /// [`Error::InvalidInput`] also for no session, and for one that is there twice, and
    /// [`Error::Unsupported`] for a storage that changes vectors too much
    /// ([`EmbedderOptions::verify`]), and for an arithmetic that the model or a device does not suit
    /// ([`EmbedderOptions::arithmetic`]).
    pub fn open<'a>(
        gpus: &(impl AsRef<[Gpu]> + ?Sized),
        files: impl Into<ModelFiles<'a>>,
        options: EmbedderOptions,
    ) -> Result<Embedder, Error> {
        let dimensions = options.dimensions;
        let (mut model, description) = Model::open(
            gpus.as_ref(),
            &files.into(),
            Task::Embed { dimensions },
            Usage {
                dtype: options.dtype,
                arithmetic: options.arithmetic,
                long_texts: options.long_texts,
                verify: options.verify,
            },
        )?;
        model.tokenizer = model.tokenizer.map_err(leaving_ids);
        Ok(Embedder {
            through: None,
            model: Arc::new(model),
            prompts: description.prompts.into(),
            prompt: description.prompt.into(),
        })
    }

    /// The same model with calls through another handle of its session, or of one of
    /// them: one with a [`key`](Gpu::keyed), on one [engine](Gpu::on), of another
    /// [priority](Gpu::with_priority), or that of
    /// [`Gpu::explain`] and [`Gpu::warmup`].
    #[must_use]
    pub fn through(&self, gpu: &Gpu) -> Embedder {
        Embedder {
            through: Some(gpu.clone()),
            ..self.clone()
        }
    }

    /// The sizes of the model: layers, heads, floats of a vector, and the most tokens of a
    /// text.
    pub fn config(&self) -> &Config {
        &self.model.encoder.config
    }

    /// The same model with this prompt in front of every text. Without this method it is the
    /// folder's default prompt, or nothing.
    ///
    /// ```no_run
    /// # fn ask(embedder: &framebatch::Embedder) -> Result<Vec<f32>, framebatch::Error> {
    /// let prompt = embedder.prompt("query").unwrap_or_default();
    /// embedder.with_prompt(prompt).embed("where do cats sleep?").wait()
    /// # }
    /// ```
    #[must_use]
    pub fn with_prompt(&self, prompt: &str) -> Embedder {
        Embedder {
            prompt: prompt.into(),
            ..self.clone()
        }
    }

    /// The folder's prompt for texts of this kind, such as `query` or `passage`, if it has one.
    pub fn prompt(&self, name: &str) -> Option<&str> {
        let mut prompts = self.prompts.iter();
        let prompt = prompts.find(|(known, _)| known == name);
        prompt.map(|(_, prompt)| &prompt[..])
    }

    /// The format in which the device keeps the model's largest table, that of the words.
    pub fn dtype(&self) -> Storage {
        match self.model.replicas[0].tensors[0].home().packing() {
            None => Storage::F32,
            Some(Packing::F16) => Storage::F16,
            Some(Packing::Bf16) => Storage::Bf16,
            Some(Packing::Int8) => Storage::Int8,
            Some(Packing::Int4) => Storage::Int4,
        }
    }

    /// The floats that products of matrices are computed in: [`Arithmetic::F32`] or
    /// [`Arithmetic::F16`].
    pub fn arithmetic(&self) -> Arithmetic {
        match self.config().precision {
            Precision::F32 => Arithmetic::F32,
            Precision::F16 => Arithmetic::F16,
        }
    }

    /// How near the vectors come to those of the files' own bits: the least cosine that a few texts
    /// have in both storages, and 1 where the device keeps all bits. `None` where the model was
    /// opened without [`EmbedderOptions::verify`].
    pub fn fidelity(&self) -> Option<f32> {
        self.model.fidelity
    }

    /// What each session's device did and has to do, in the order in which the sessions were
    /// given.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), framebatch::Error> {
    /// use framebatch::{Config, Embedder, EmbedderOptions, EmbedderStats, Gpus};
    ///
    /// let gpus = Gpus::open_blocking(Config::default())?; // Every GPU of the machine.
    /// let embedder = Embedder::open(&gpus, "models/minilm", EmbedderOptions::default())?;
    /// let texts = (0..10_000).map(|n| format!("text {n}"));
    /// let vectors: Result<Vec<Vec<f32>>, _> = embedder.embed_many(texts).wait().collect();
    /// assert_eq!(vectors?.len(), 10_000);
    /// let all: EmbedderStats = embedder.stats().into_iter().sum();
    /// assert_eq!(all.texts, 10_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stats(&self) -> Vec<EmbedderStats> {
        self.model.loads.iter().map(Load::stats).collect()
    }

    /// Embeds a text, with its prompt in front: a vector of [`Config::dimensions`] floats, of
    /// length 1 where the model normalizes. The call is on its way when this returns;
    /// [`Embedder`] has an example.
    ///
    /// # Errors
    ///
    /// Out of the future comes [`Error::InvalidInput`] for a text of too many tokens
    /// under [`LongTexts::Reject`], and for any text where the folder has no
    /// tokenizer of a kind that is known, which leaves
    /// [`Embedder::embed_ids`]; besides what may befall any call, as of
    /// [`Gpu::lerp`](crate::Gpu::lerp).
    pub fn embed(&self, text: &str) -> Embedding {
        self.begin(self.ids(text)).1
    }

    /// A text's number of tokens, and its call.
    fn begin(&self, ids: Result<Vec<u32>, Error>) -> (usize, Embedding) {
        match ids {
            Ok(ids) => (ids.len(), Embedding(Ok(self.enter(Text::of(&ids))))),
            Err(error) => (0, Embedding(Err(error))),
        }
    }

    /// The sessions that calls may go to.
    fn sessions(&self) -> impl Iterator<Item = &Gpu> {
        let all = self.model.replicas.iter().map(|replica| &replica.gpu);
        let all = self.through.is_none().then_some(all);
        self.through.iter().chain(all.into_iter().flatten())
    }

    /// The tokens of a text, without a prompt and however many they are, and the bytes of the text
    /// that each one stands for: to show what a model sees, or to highlight it. Special tokens are
    /// there as in [`Embedder::ids`], and have the offsets (0, 0).
    ///
    /// ```no_run
    /// # fn show(embedder: &framebatch::Embedder) -> Result<(), framebatch::Error> {
    /// let text = "where do cats sleep?";
    /// let tokens = embedder.tokenize(text)?;
    /// for (id, (from, to)) in tokens.ids.iter().zip(&tokens.offsets) {
    ///     println!("{id} is {:?}", &text[*from as usize..*to as usize]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Embedder::embed`] where the folder has no tokenizer that is known.
    pub fn tokenize(&self, text: &str) -> Result<Tokens, Error> {
        let tokenizer = self.model.tokenizer.as_ref().map_err(Error::clone)?;
        Ok(match self.model.lowercase {
            true => tokenizer.tokenize_lowercase(text),
            false => tokenizer.tokenize(text),
        })
    }

    /// The ids of a text, with its prompt and the tokens around it.
    ///
    /// # Errors
    ///
    /// The errors of [`Embedder::embed`] that are the text's.
    pub fn ids(&self, text: &str) -> Result<Vec<u32>, Error> {
        let model = &*self.model;
        let tokenizer = model.tokenizer.as_ref().map_err(Error::clone)?;
        let most = self.config().max_tokens;
        let mut ids = Vec::new();
        let mut encode = |text: &str| tokenizer.encode(text, most as usize, &mut ids);
        let encoded = if self.prompt.is_empty() && !model.lowercase {
            encode(text)
        } else {
            let text = [&self.prompt, text].concat();
            encode(&if model.lowercase {
                text.to_lowercase()
            } else {
                text
            })
        };
        if encoded.truncated && model.long_texts == LongTexts::Reject {
            return Err(Error::InvalidInput(format!(
                "embed: the text has more than the {most} tokens that the model takes; split it"
            )));
        }
        refuse_empty("embed", &ids)?;
        self.refuse_padding("embed", &ids)?;
        Ok(ids)
    }

    /// Refuses a padding that has no position, such as RoBERTa's.
    fn refuse_padding(&self, about: &str, ids: &[u32]) -> Result<(), Error> {
        match self.config().padding() {
            Some(padding) if ids.contains(&padding) => Err(Error::InvalidInput(format!(
                "{about}: id {padding} is the model's padding, which is no part of a text; leave it out"
            ))),
            _ => Ok(()),
        }
    }

    /// Embeds a text that any tokenizer made ids of, `[CLS]` and `[SEP]` included: a vector
    /// of [`Config::dimensions`] floats.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), framebatch::Error> {
    /// # use framebatch::{Blocking, Config, Embedder, EmbedderOptions};
    /// # let gpu = Blocking::open(Config::default())?;
    /// let embedder = Embedder::open(gpu.gpu(), "models/minilm", EmbedderOptions::default())?;
    /// let ids = embedder.ids("a text")?; // Or those of a tokenizer of your own.
    /// assert_eq!(embedder.embed_ids(&ids).wait()?, embedder.embed("a text").wait()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Out of the future comes [`Error::InvalidInput`] for no ids, for more than
    /// [`Config::max_tokens`], for one that the vocabulary has not and for RoBERTa's
    /// padding, besides what may befall any call.
    pub fn embed_ids(&self, ids: &[u32]) -> Embedding {
        Embedding(
            self.check("embed_ids", ids)
                .map(|()| self.enter(Text::of(ids))),
        )
    }

    /// Embeds a text, and leaves the vector on the device: a tensor of [`Config::dimensions`] floats,
    /// which is there at once. Its call is on its way when this returns, in the same batch as the
    /// others, and nothing comes back for it; calls that are made later read the tensor without
    /// waiting. An [index](crate::Index::add_tensor) takes it as it is. Equal texts are computed
    /// apart.
    ///
    /// Where the call fails, the tensor has no words, and what reads it fails for the same reason.
    /// What is lost with its device stays lost; what reads it fails with [`Error::TensorLost`].
    ///
    /// ```no_run
    /// # fn main() -> Result<(), framebatch::Error> {
    /// # use framebatch::{Blocking, Config, Embedder, EmbedderOptions};
    /// # let gpu = Blocking::open(Config::default())?;
    /// let embedder = Embedder::open(gpu.gpu(), "models/minilm", EmbedderOptions::default())?;
    /// let (a, b) = (embedder.compute("a cat")?, embedder.compute("a kitten")?);
    /// let mut batch = gpu.batch();
    /// let (a, b) = (batch.tensor(&a)?, batch.tensor(&b)?);
    /// let similarity = batch.dot(a, b)?;
    /// batch.execute()?;
    /// println!("{:?}", batch.read(similarity)?); // One float came back.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Embedder::embed`] that are the text's, [`Error::OutOfMemory`],
    /// [`Error::QueueFull`] and [`Error::Disposed`]; and [`Error::Unsupported`] where the embedder
    /// has several sessions, of which [`Embedder::through`] chooses one.
    pub fn compute(&self, text: &str) -> Result<Tensor, Error> {
        self.store(&self.ids(text)?)
    }

    /// The same of a text that any tokenizer made ids of, as [`Embedder::embed_ids`] takes them.
    ///
    /// # Errors
    ///
    /// The errors of [`Embedder::compute`], and those of [`Embedder::embed_ids`] that are the ids'.
    pub fn compute_ids(&self, ids: &[u32]) -> Result<Tensor, Error> {
        self.check("compute_ids", ids)?;
        self.store(ids)
    }

    fn check(&self, about: &str, ids: &[u32]) -> Result<(), Error> {
        let Config {
            vocab, max_tokens, ..
        } = *self.config();
        let refuse = |problem: String| Error::InvalidInput([about, ": ", &problem].concat());
        if ids.is_empty() {
            return Err(refuse("there are no ids; give at least one".into()));
        }
        if ids.len() > max_tokens as usize {
            return Err(refuse(format!(
                "{} ids are more than the {max_tokens} that the model takes; cut them",
                ids.len()
            )));
        }
        match ids.iter().find(|id| **id >= vocab) {
            Some(id) => Err(refuse(format!(
                "id {id} is not below {vocab}, the size of the vocabulary"
            ))),
            None => self.refuse_padding(about, ids),
        }
    }
}

impl Debug for Embedder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Embedder").field(self.config()).finish()
    }
}

/// Refuses a text of which a tokenizer that puts nothing around it makes no token.
fn refuse_empty(about: &str, ids: &[u32]) -> Result<(), Error> {
    match ids.is_empty() {
        true => Err(Error::InvalidInput(format!(
            "{about}: the text has no tokens; leave it out"
        ))),
        false => Ok(()),
    }
}
