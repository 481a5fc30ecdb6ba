//! A corpus: texts go in, and their vectors come out in the same order, with a bounded number of
//! tokens in flight.
//!
//! The bound follows from how long tokens take, so that a text of another caller does not wait for
//! long. Texts become ids on all cores.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use futures_core::Stream;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::{Embedder, Embedding};
use crate::device::cores;
use crate::error::Error;
use crate::native::platform::{block_on, now_ms};
use crate::native::room::Room;

/// The budget of tokens in flight to each device: at first, at least and at most.
const FIRST: usize = 2048;
const LEAST: usize = 256;
const MOST: usize = 32_768;

/// Milliseconds that the tokens in flight may take: two passes, one of which is computed.
const LONG: f64 = 100.0;

/// About how many bytes a token has, by which texts are taken before they are split.
const BYTES: usize = 4;

/// Texts below which one core makes all ids.
const FEW: usize = 16;

/// The vectors of [`Embedder::embed_many`], in order.
///
/// Nothing is taken from the texts before it is first polled. Dropped, it gives up
/// what is on its way.
#[must_use = "nothing is embedded unless it is polled"]
pub struct Embeddings<I> {
    embedder: Embedder,
    /// Room in the queues of its sessions.
    rooms: Vec<Room>,
    texts: Option<I>,
    waiting: VecDeque<Waiting>,
    /// Tokens of the texts in flight.
    tokens: usize,
    /// Tokens that may be in flight to each device.
    budget: usize,
    /// Tokens that have come back since the budget was set.
    back: usize,
    /// Texts that devices had handed over when a text came back last.
    handed_over: u64,
}

struct Waiting {
    embedding: Embedding,
    /// The answer, while it waits for its turn.
    answer: Option<Result<Vec<f32>, Error>>,
    tokens: usize,
    since: f64,
}

impl Embedder {
    /// Embeds texts one after another, for more of them than there is memory for: a vector
    /// each, in the order of the texts. [`Embedder::stats`] has an example.
    ///
    /// An error is one of the results; those before it and behind it stand.
    ///
    /// The tokens that are on their way come back within a tenth of a second, so
    /// that a text of [`Embedder::embed`] need not wait for long, whatever the
    /// devices; they are sent whatever the session's policy. Many texts are taken at
    /// once, and split into tokens on all cores.
    pub fn embed_many<I>(&self, texts: I) -> Embeddings<I::IntoIter>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Embeddings {
            embedder: self.clone(),
            rooms: self.sessions().map(|gpu| Room::of(gpu.shared())).collect(),
            texts: Some(texts.into_iter()),
            waiting: VecDeque::new(),
            tokens: 0,
            budget: FIRST,
            back: 0,
            handed_over: self.handed_over(),
        }
    }
}

/// Calls that the sessions' queues take; those that are full tell when they have room.
fn room(rooms: &mut [Room], context: &Context<'_>) -> usize {
    let rooms = rooms.iter_mut().map(|room| match room.poll(context) {
        Poll::Ready(Ok(())) => room.shared().lock().driver.session.desired_size(),
        Poll::Ready(Err(_)) => 1, // The calls of a closed session say what is wrong.
        Poll::Pending => 0,
    });
    usize::try_from(rooms.sum::<i64>()).unwrap_or(0)
}

impl Embedder {
    /// Texts that went to another device so far.
    fn handed_over(&self) -> u64 {
        let loads = self.model.loads.iter();
        let counts = loads.map(|load| load.handed_over.load(Ordering::Relaxed));
        counts.sum()
    }

    /// The ids of each text.
    fn ids_of(&self, texts: &[impl AsRef<str>]) -> Vec<Result<Vec<u32>, Error>> {
        let texts = texts.iter().map(AsRef::as_ref);
        let Some(pool) = cores().filter(|_| texts.len() >= FEW) else {
            return texts.map(|text| self.ids(text)).collect();
        };
        // No calls are made on the cores: a session may compute there with its lock held.
        let texts: Vec<&str> = texts.collect();
        let ids = texts.into_par_iter().map(|text| self.ids(text));
        pool.install(|| ids.collect())
    }
}

impl<I> Embeddings<I>
where
    I: Iterator,
    I::Item: AsRef<str>,
{
    /// The same as an iterator that blocks until the next vector is there.
    pub fn wait(mut self) -> impl Iterator<Item = Result<Vec<f32>, Error>>
    where
        I: Unpin,
    {
        std::iter::from_fn(move || {
            block_on(poll_fn(|context| Pin::new(&mut self).poll_next(context)))
        })
    }

    /// The most tokens in flight, to all devices.
    fn most(&self) -> usize {
        self.budget * self.embedder.sessions().count()
    }

    /// Takes texts while less than half of the most tokens are in flight.
    fn advance(&mut self, context: &Context<'_>) {
        let most = self.most();
        if !self.waiting.is_empty() && self.tokens > most / 2 {
            return;
        }
        let texts = self.take(most - self.tokens.min(most), context);
        if texts.is_empty() {
            return;
        }
        let since = now_ms();
        for ids in self.embedder.ids_of(&texts) {
            let (tokens, embedding) = self.embedder.begin(ids);
            self.tokens += tokens;
            self.waiting.push_back(Waiting {
                embedding,
                answer: None,
                tokens,
                since,
            });
        }
        for gpu in self.embedder.sessions() {
            gpu.shared().flush_queued();
        }
    }

    /// Texts of about `tokens` tokens, at least one if none is in flight, and no more than the
    /// queues take.
    fn take(&mut self, tokens: usize, context: &Context<'_>) -> Vec<I::Item> {
        let Some(texts) = &mut self.texts else {
            return Vec::new();
        };
        let longest = self.embedder.config().max_tokens as usize;
        let room = room(&mut self.rooms, context);
        let room = room.max(usize::from(self.waiting.is_empty()));
        let (mut taken, mut sum) = (Vec::new(), 0);
        while taken.len() < room && sum < tokens.max(1) {
            let Some(text) = texts.next() else {
                self.texts = None;
                break;
            };
            let bytes = self.embedder.prompt.len() + text.as_ref().len();
            sum += (bytes / BYTES + 2).min(longest);
            taken.push(text);
        }
        taken
    }

    /// Texts ask another device once they are polled. Where one was handed over, those
    /// behind it may have been as well: all of them go on now, in one batch and not each
    /// when its turn comes. They may hear of it a moment later, and are polled until a
    /// text comes back.
    fn follow(&mut self, context: &mut Context<'_>) {
        if self.handed_over != self.embedder.handed_over() {
            for waiting in &mut self.waiting {
                let mut rooms = self.rooms.iter_mut();
                if !rooms.all(|room| room.poll(context).is_ready()) {
                    return; // Full queues may refuse texts; they wake the task when there is room.
                }
                waiting.go_on(context);
            }
        }
    }

    /// Adapts the budget to a text of `tokens` tokens that took `ms` milliseconds.
    fn adapt(&mut self, tokens: usize, ms: f64) {
        self.tokens -= tokens;
        self.back += tokens;
        if self.back < self.most() {
            return;
        }
        self.back = 0;
        if ms > LONG {
            self.budget = (self.budget / 2).max(LEAST);
        } else if ms < LONG / 2.0 {
            self.budget = (self.budget * 2).min(MOST);
        }
    }
}

impl<I> Stream for Embeddings<I>
where
    I: Iterator + Unpin,
    I::Item: AsRef<str>,
{
    type Item = Result<Vec<f32>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.advance(context);
        let Some(first) = self.waiting.front_mut() else {
            return Poll::Ready(None);
        };
        first.go_on(context);
        let Some(result) = first.answer.take() else {
            self.follow(context);
            return Poll::Pending;
        };
        let (tokens, ms) = (first.tokens, now_ms() - first.since);
        self.waiting.pop_front();
        self.handed_over = self.embedder.handed_over();
        self.adapt(tokens, ms);
        Poll::Ready(Some(result))
    }
}

impl Waiting {
    fn go_on(&mut self, context: &mut Context<'_>) {
        if self.answer.is_none()
            && let Poll::Ready(answer) = Pin::new(&mut self.embedding).poll(context)
        {
            self.answer = Some(answer);
        }
    }
}
