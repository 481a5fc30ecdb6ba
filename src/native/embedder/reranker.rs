//! Scores of pairs of texts, by encoders with a head that gives one number.
//!
//! A pair is a call like a text's, and goes the same way: only its tokens have types.

use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::arithmetic::Arithmetic;
use super::embedding::{Embedding, Text};
use super::files::ModelFiles;
use super::load::EmbedderStats;
use super::model::{Model, Usage};
use super::{Embedder, LongTexts, refuse_empty};
use crate::embed::Config;
use crate::embed::folder::Task;
use crate::error::Error;
use crate::native::gpu::Gpu;
use crate::native::platform::block_on;
use crate::native::storage::Storage;

/// How a reranker is opened.
#[derive(Clone, Debug)]
pub struct RerankerOptions {
    /// The format in which the device keeps tables and matrices, as of
    /// [`EmbedderOptions`](super::EmbedderOptions).
    pub dtype: Storage,
    /// Whether matrices in fewer bits are tested, as of
    /// [`EmbedderOptions`](super::EmbedderOptions): by the vectors of the last layer. `true` unless
    /// set.
    pub verify: bool,
}

impl Default for RerankerOptions {
    fn default() -> Self {
        RerankerOptions {
            dtype: Storage::default(),
            verify: true,
        }
    }
}

/// A cross-encoder on a session's device, or on those of several sessions: it reads a query and a
/// document together, and gives one score for both.
///
/// Each pair is a call of its own, from any thread: the pairs that wait together are one forward
/// pass, whatever their lengths, without padding. A pair gives the same bits alone and among
/// others. Over several sessions pairs are dealt as texts of an [`Embedder`] are. Clones share the
/// model.
///
/// ```no_run
/// # fn main() -> Result<(), framebatch::Error> {
/// use framebatch::{Blocking, Config, Reranker, RerankerOptions};
///
/// let gpu = Blocking::open(Config::default())?;
/// let reranker = Reranker::open(gpu.gpu(), "models/reranker", RerankerOptions::default())?;
/// let documents = ["dogs bark", "cats sleep on mats", "fog"];
/// let best = reranker.rank("where do cats sleep?", &documents, 2).wait()?;
/// println!("{}: {}", documents[best[0].index], best[0].score);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Reranker(Embedder);

impl Reranker {
    /// Reads a model for the classification of sequences with one label from a Hugging Face folder
    /// as it is, or from its files in memory, and copies it to the device of one session, `&gpu`,
    /// or of each of up to 64, `&gpus`. It blocks while it reads.
    ///
    /// `config.json`, `model.safetensors` and a tokenizer must be there, as of [`Embedder::open`].
    /// Architectures are BERT, RoBERTa, XLM-RoBERTa, ModernBERT, GTE and Qwen3. As
    /// sentence-transformers' `CrossEncoder` does, pairs of more tokens than `model_max_length` are
    /// cut, the longer text first, and the score is the sigmoid of what the head gives, unless
    /// `config_sentence_transformers.json`, or else `config.json`, names another function.
    ///
    /// # Errors
    ///
    /// The errors of [`Embedder::open`], and that of a tokenizer that is missing or not known.
    pub fn open<'a>(
        gpus: &(impl AsRef<[Gpu]> + ?Sized),
        files: impl Into<ModelFiles<'a>>,
        options: RerankerOptions,
    ) -> Result<Reranker, Error> {
        let usage = Usage {
            dtype: options.dtype,
            arithmetic: Arithmetic::F32,
            long_texts: LongTexts::Truncate,
            verify: options.verify,
        };
        let (model, _) = Model::open(gpus.as_ref(), &files.into(), Task::Rerank, usage)?;
        if let Err(error) = &model.tokenizer {
            return Err(error.clone());
        }
        Ok(Reranker(Embedder {
            through: None,
            model: Arc::new(model),
            prompts: Arc::new([]),
            prompt: "".into(),
        }))
    }

    /// The same model with calls through another handle of its session, or of one of them, as
    /// [`Embedder::through`] has it.
    #[must_use]
    pub fn through(&self, gpu: &Gpu) -> Reranker {
        Reranker(self.0.through(gpu))
    }

    /// The sizes of the model.
    pub fn config(&self) -> &Config {
        self.0.config()
    }

    /// The format in which the device keeps the model's largest table, that of the words.
    pub fn dtype(&self) -> Storage {
        self.0.dtype()
    }

    /// How near the last layer's vectors come to those of the files' own bits, as of
    /// [`Embedder::fidelity`].
    pub fn fidelity(&self) -> Option<f32> {
        self.0.fidelity()
    }

    /// What each session's device did and has to do, where a pair counts as a text.
    pub fn stats(&self) -> Vec<EmbedderStats> {
        self.0.stats()
    }

    /// Scores pairs of texts: a float for each, in their order. The calls are on their way when
    /// this returns.
    ///
    /// ```no_run
    /// # fn score(reranker: &framebatch::Reranker) -> Result<(), framebatch::Error> {
    /// let scores = reranker.score(&[("where do cats sleep?", "cats sleep on mats")]).wait()?;
    /// println!("{}", scores[0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Out of the future comes the error of the first pair that fails: what may befall a text, as
    /// of [`Embedder::embed`]. No pair is too long.
    pub fn score<A: AsRef<str>, B: AsRef<str>>(&self, pairs: &[(A, B)]) -> Scores {
        let pairs = pairs.iter().map(|(a, b)| [a.as_ref(), b.as_ref()]);
        Scores::of(pairs.map(|pair| self.begin(pair)))
    }

    /// Ranks documents for a query: the `top` best of them, the best one first; of equal scores the
    /// earlier document. [`Reranker`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`Reranker::score`], out of the future.
    pub fn rank<D: AsRef<str>>(&self, query: &str, documents: &[D], top: usize) -> Ranking {
        let pairs = documents.iter().map(|document| [query, document.as_ref()]);
        let scores = Scores::of(pairs.map(|pair| self.begin(pair)));
        Ranking { scores, top }
    }

    fn begin(&self, pair: [&str; 2]) -> Embedding {
        Embedding(self.tokens(pair).map(|(ids, types)| {
            self.0.enter(Text {
                ids: &ids,
                types: &types,
            })
        }))
    }

    /// The ids of a pair, and their types where the model has types.
    fn tokens(&self, pair: [&str; 2]) -> Result<(Vec<u32>, Vec<u32>), Error> {
        let tokenizer = self.0.model.tokenizer.as_ref().map_err(Error::clone)?;
        let config = self.config();
        let (mut ids, mut types) = (Vec::new(), Vec::new());
        let most = config.max_tokens as usize;
        tokenizer.encode_pair((pair[0], pair[1]), most, &mut ids, &mut types);
        refuse_empty("score", &ids)?;
        self.0.refuse_padding("score", &ids)?;
        let types = types.into_iter().filter(|_| config.types > 1);
        Ok((ids, types.collect()))
    }
}

impl Debug for Reranker {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reranker").field(self.config()).finish()
    }
}

/// The scores of [`Reranker::score`]. Dropped before they are there, the pairs are given up.
#[derive(Debug)]
#[must_use = "dropping scores gives them up"]
pub struct Scores {
    pairs: Vec<Embedding>,
    /// The answers so far.
    scores: Vec<Option<f32>>,
}

impl Scores {
    fn of(pairs: impl Iterator<Item = Embedding>) -> Scores {
        let pairs: Vec<Embedding> = pairs.collect();
        let scores = vec![None; pairs.len()];
        Scores { pairs, scores }
    }

    /// Blocks this thread until the scores are there.
    ///
    /// # Errors
    ///
    /// What went wrong with the first pair that failed.
    pub fn wait(self) -> Result<Vec<f32>, Error> {
        block_on(self)
    }
}

impl Future for Scores {
    type Output = Result<Vec<f32>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Scores { pairs, scores } = &mut *self;
        for (pair, score) in pairs.iter_mut().zip(scores.iter_mut()) {
            if score.is_none()
                && let Poll::Ready(answer) = Pin::new(pair).poll(context)
            {
                match answer {
                    Ok(vector) => *score = vector.first().copied(),
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }
        match scores.iter().copied().collect::<Option<Vec<f32>>>() {
            Some(scores) => Poll::Ready(Ok(scores)),
            None => Poll::Pending,
        }
    }
}

/// A document's place in a ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The document's place among those that were given.
    pub index: usize,
    /// The score of the document.
    pub score: f32,
}

/// The documents of [`Reranker::rank`]. Dropped before it is there, the pairs are given up.
#[derive(Debug)]
#[must_use = "dropping a ranking gives it up"]
pub struct Ranking {
    scores: Scores,
    top: usize,
}

impl Ranking {
    /// Blocks this thread until the ranking is there.
    ///
    /// # Errors
    ///
    /// What went wrong with the first pair that failed.
    pub fn wait(self) -> Result<Vec<Ranked>, Error> {
        block_on(self)
    }
}

impl Future for Ranking {
    type Output = Result<Vec<Ranked>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let scores = ready!(Pin::new(&mut self.scores).poll(context))?;
        let ranked = scores.into_iter().enumerate();
        let ranked = ranked.map(|(index, score)| Ranked { index, score });
        let mut ranked: Vec<Ranked> = ranked.collect();
        // Sorting is stable: equal scores stay in the order of their documents.
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked.truncate(self.top);
        Poll::Ready(Ok(ranked))
    }
}
