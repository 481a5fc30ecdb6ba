//! Indexes of vectors, and searches of them.
//!
//! How vectors lie on the device is `ops::search`'s matter. A search first brings what changed in
//! the index to the device.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};

use super::call::Call;
use super::gpu::Gpu;
use super::indexes::{Held, Use};
use super::page_writes::Asked;
use super::platform::{Mutex, MutexGuard, block_on};
use super::request::{Chained, Request, Structure};
use super::shared::Shared;
use super::state_lock::{Guard, free};
use crate::error::Error;
use crate::graph::searching::{Mask, NOBODY};
use crate::ops::search::{IndexConfig, Metric, PageRows, Vectors, check_count};

/// Vectors on the device that queries are compared with, all of them. It lies
/// there until the last clone is dropped, and the last search that is waited for.
/// Made by [`Gpu::index`].
#[derive(Clone, Debug)]
pub struct Index {
    pub(super) entry: Arc<Entry>,
    pub(super) gpu: Gpu,
}

/// An index of a session.
#[derive(Debug)]
pub(super) struct Entry {
    shared: Arc<Shared>,
    held: Arc<Mutex<Held>>,
}

/// The vectors that a search may give.
#[derive(Clone, Copy)]
pub enum Filter<'a> {
    /// All of them.
    All,
    /// The vectors of these ids; ids of no vector are left out.
    Ids(&'a [u32]),
    /// A bit for each id, the lowest first; ids behind the last are not allowed.
    Mask(&'a [u32]),
    /// The vectors whose id the function accepts. It is called once for every vector that the
    /// index has when the search is made, and may use the index and the session.
    Where(&'a dyn Fn(u32) -> bool),
}

/// A filter without a function: the ids that the function accepted are known.
enum Allowed<'a> {
    All,
    Ids(Cow<'a, [u32]>),
    Mask(&'a [u32]),
}

/// A result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The vector's id.
    pub id: u32,
    /// How alike it is, as [`Metric`] says.
    pub score: f32,
}

impl Index {
    /// How many vectors there are.
    pub fn len(&self) -> usize {
        self.entry.lock().vectors.count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds vectors laid end to end; their ids, which rise from the first and are
    /// never given again.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, IndexConfig};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let index = gpu.index(&[], IndexConfig::new(2))?;
    /// assert_eq!(index.add(&[1.0, 0.0, 0.0, 1.0])?, [0, 1]);
    /// index.remove(&[0])?;
    /// assert_eq!(index.len(), 1);
    /// assert_eq!(index.add(&[0.6, 0.8])?, [2]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for another width, and for what is no number of a
    /// magnitude up to 10¹⁷ (in f16, but by cosine, 65,504). Then none is added.
    pub fn add(&self, vectors: &[f32]) -> Result<Vec<u32>, Error> {
        let mut held = self.entry.lock();
        let first = held.vectors.add(vectors)?;
        Ok((first..held.vectors.ids()).collect())
    }

    /// Removes the vectors with these ids.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, IndexConfig};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let index = gpu.index(&[1.0, 0.0, 0.0, 1.0], IndexConfig::new(2))?;
    /// index.remove(&[0])?;
    /// assert!(index.remove(&[0]).is_err());
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for an id of no vector; then none is removed. For vectors of
    /// [`Index::add_tensor`] also [`Error::QueueFull`] and [`Error::Disposed`].
    pub fn remove(&self, ids: &[u32]) -> Result<(), Error> {
        let mut held = self.entry.lock();
        let device = held.vectors.device();
        if !ids.iter().any(|id| device.has(*id)) {
            return held.vectors.remove(ids);
        }
        drop(held);
        let (mut state, mut held) = self.entry.ready(Use::Removal)?;
        held.vectors.check_ids(ids)?;
        let calls = held.vectors.device().removals(ids.iter().copied());
        let is_there = |call: &PageRows| held.device_pages[call.page].is_there;
        let calls: Vec<PageRows> = calls.into_iter().filter(is_there).collect();
        let shared = &self.entry.shared;
        let asked = Asked {
            terms: self.gpu.terms(),
            now: shared.clock.now(),
        };
        held.write(&mut state, &calls, None, asked)?;
        shared
            .arrivals
            .fetch_add(calls.len() as u64, Ordering::Relaxed);
        held.vectors.remove(ids)?;
        for id in ids {
            held.lost.remove(id);
        }
        drop(held);
        shared.wake_worker(state);
        Ok(())
    }

    /// The `count` vectors that are most like each query, best first and of equals
    /// the lower id: a list for each of the queries, which lie end to end. It looks
    /// at the index as it is when this is called; what is added or removed between
    /// that and the flush may count or not. A list is shorter where the filter
    /// allows fewer, or such vectors were removed.
    ///
    /// Searches of one index that are sent together are one pass over it for every
    /// eight queries, of more than 32 results for every two. A score is off by at
    /// most `dim` · 2⁻²⁴ of the sum of absolute products (of squares, by distance),
    /// besides what packing costs. A filter takes a bit for each id that was ever
    /// given, or four bytes for each vector where that is less, which go to the device
    /// with the call.
    ///
    /// The vectors that were added since go to the device with the search, which fails
    /// with [`Error::OutOfMemory`] where the memory budget or the GPU has no room for
    /// them.
    ///
    /// # Errors
    ///
    /// Out of the search comes [`Error::InvalidInput`] for queries of another width or with
    /// what is no number, and for a `count` of 0, above 256 or above the number of vectors;
    /// and what may befall any call, as of [`Gpu::lerp`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, Filter, IndexConfig};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let index = gpu.index(&[1.0, 0.0, 0.0, 1.0, 0.8, 0.6], IndexConfig::new(2))?;
    /// let found = index.search(&[2.0, 0.0], 1, Filter::Where(&|id| id > 0)).wait()?;
    /// assert_eq!(found[0][0].id, 2); // The list of the first query.
    /// assert!((found[0][0].score - 0.8).abs() < 1e-6);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn search(&self, queries: &[f32], count: usize, filter: Filter<'_>) -> Search {
        let call = self.try_search(queries, count, filter);
        Search {
            call: call.unwrap_or_else(|error| Call::known(Err(error))),
            entry: Some(Arc::clone(&self.entry)),
            count,
            metric: self.entry.lock().vectors.config().metric,
        }
    }

    /// The whole index as bytes for [`Gpu::load_index`]: 32-bit words in little-endian
    /// order. `fbix`, the version 1, the metric (cosine, dot, L2), the packing (none,
    /// f16, bf16, int8), floats of a vector, how many there are, the next id; the ids,
    /// rising; then for each vector the scale of int8 as a float, and its elements as
    /// they are packed, filled up with zeros to 16 bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OnDevice`] while vectors of [`Index::add_tensor`] are on the device alone.
    pub fn save(&self) -> Result<Vec<u8>, Error> {
        let held = self.entry.lock();
        match held.vectors.device().count() {
            0 => Ok(held.vectors.save()),
            count => Err(Error::OnDevice(format!(
                "index.save: {count} vectors are on the device alone; await `download` first"
            ))),
        }
    }

    fn try_search(
        &self,
        queries: &[f32],
        count: usize,
        filter: Filter<'_>,
    ) -> Result<Call<f32>, Error> {
        let allowed = self.allowed(filter);
        let (state, held) = self.entry.ready(Use::Search)?;
        held.check_whole("search")?;
        check_count(count, held.vectors.count())?;
        let queries = held.vectors.config().queries(queries)?;
        let mask = held.mask(allowed);
        let form = match mask.is_empty() {
            true => Mask::default(),
            false => held.vectors.form_of_masks(),
        };
        let words = |count: usize| u32::try_from(count).unwrap_or(NOBODY);
        let searching = held.vectors.searching(words(count), form);
        let tensors = held.searched(searching.pages());
        drop(held);
        let request = Request {
            structure: Structure::Searching(searching),
            rows: queries.len() / searching.query() as usize,
            scalar: 0,
            operands: [
                bytemuck::cast_slice(&queries),
                bytemuck::cast_slice(&mask),
                &[],
                &[],
                &[],
            ],
            chained: Chained {
                tensors,
                ..Chained::default()
            },
        };
        let shared = &self.entry.shared;
        // Others may free a page as soon as the state is unlocked.
        Ok(shared.submit_floats_in(state, &request, self.gpu.terms()))
    }

    /// Resolves a filter's function, which is called with nothing locked, because it may use the
    /// index and the session.
    fn allowed<'a>(&self, filter: Filter<'a>) -> Allowed<'a> {
        match filter {
            Filter::All => Allowed::All,
            Filter::Ids(ids) => Allowed::Ids(ids.into()),
            Filter::Mask(mask) => Allowed::Mask(mask),
            Filter::Where(is_allowed) => {
                let mut ids: Vec<u32> = self.entry.lock().vectors.all().collect();
                ids.retain(|id| is_allowed(*id));
                Allowed::Ids(ids.into())
            }
        }
    }
}

impl Entry {
    pub(super) fn lock(&self) -> MutexGuard<'_, Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.note_failures();
        held
    }

    /// The session, if it is not closed, and the index, both locked.
    fn open(&self) -> Result<(Guard<'_>, MutexGuard<'_, Held>), Error> {
        loop {
            let state = self.shared.open()?;
            if let Some(mut held) = free(self.held.try_lock()) {
                held.note_failures();
                return Ok((state, held));
            }
            drop(state);
            let held = self.lock();
            if let Some(state) = self.shared.try_open()? {
                return Ok((state, held));
            }
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The session and the index, both locked, once the index is ready to be used so.
    pub(super) fn ready(
        self: &Arc<Self>,
        of: Use,
    ) -> Result<(Guard<'_>, MutexGuard<'_, Held>), Error> {
        loop {
            let (state, held) = self.open()?;
            if held.is_ready(&state.driver.session, of) {
                return Ok((state, held));
            }
            drop((state, held));
            let entry = Arc::clone(self);
            self.shared.on_gpu_driver_thread(move |shared| {
                let (mut state, mut held) = entry.open()?;
                held.prepare(&mut state, of, shared.clock.now())
            })?;
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let held = &self.held;
        let mut state = self.shared.lock();
        state.indexes.0.retain(|other| !Arc::ptr_eq(other, held));
        drop(state);
        // The list of indexes does not have this one any more.
        let pages = self.lock().searched(u32::MAX);
        let mut state = self.shared.lock();
        for page in pages {
            state.driver.session.release(page);
        }
        self.shared.wake_worker(state);
    }
}

impl Held {
    fn mask(&self, allowed: Allowed<'_>) -> Vec<u32> {
        let vectors = &self.vectors;
        match allowed {
            Allowed::All => Vec::new(),
            Allowed::Ids(ids) => vectors.mask(ids.iter().copied()),
            Allowed::Mask(mask) => vectors.mask_of_bits(mask),
        }
    }
}

impl Gpu {
    /// An index of vectors that lie end to end, or of none yet. They are kept here as
    /// well, so that the index outlives a loss of the device.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Filter, Gpu, IndexConfig};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let index = gpu.index(&[1.0, 0.0, 0.0, 1.0, 0.8, 0.6], IndexConfig::new(2))?;
    /// let found = index.search(&[2.0, 0.0], 2, Filter::All).await?;
    /// assert_eq!(found[0].iter().map(|hit| hit.id).collect::<Vec<_>>(), [0, 2]);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a width that is not 1 to 4096, and those of
    /// [`Index::add`]; [`Error::Disposed`].
    pub fn index(&self, vectors: &[f32], config: IndexConfig) -> Result<Index, Error> {
        let mut index = Vectors::new(config)?;
        index.add(vectors)?;
        self.make_index(index)
    }

    /// The index that [`Index::save`] gave these bytes of, natively or in a browser.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, IndexConfig};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let index = gpu.index(&[1.0, 0.0], IndexConfig::new(2))?;
    /// assert_eq!(gpu.load_index(&index.save()?)?.len(), 1);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] saying what is wrong with the bytes;
    /// [`Error::Disposed`].
    pub fn load_index(&self, bytes: &[u8]) -> Result<Index, Error> {
        self.make_index(Vectors::load(bytes)?)
    }

    fn make_index(&self, vectors: Vectors) -> Result<Index, Error> {
        let shared = self.shared();
        let held = Arc::new(Mutex::new(Held::new(vectors)));
        shared.open()?.indexes.0.push(Arc::clone(&held));
        let shared = Arc::clone(shared);
        Ok(Index {
            entry: Arc::new(Entry { shared, held }),
            gpu: self.clone(),
        })
    }
}

/// A search under way. It resolves to the results of each query.
#[derive(Debug)]
#[must_use = "dropping a search gives it up"]
pub struct Search {
    call: Call<f32>,
    /// Kept until the search is answered: after a loss the index is filled again from the entry.
    entry: Option<Arc<Entry>>,
    count: usize,
    metric: Metric,
}

impl Search {
    /// Blocks this thread until the results are there. Not for async code, where it
    /// would block the runtime: `await` the search instead.
    ///
    /// # Errors
    ///
    /// What went wrong with this search: [`Error::InvalidInput`] for queries of another
    /// width, more results than there are vectors or than 256, and numbers that are
    /// none; those of every call.
    pub fn wait(self) -> Result<Vec<Vec<Hit>>, Error> {
        block_on(self)
    }

    fn hits(&self, floats: &[f32]) -> Vec<Vec<Hit>> {
        let rows = floats.chunks_exact(2 * self.count);
        let hits = rows.map(|row| {
            let (ids, scores) = row.split_at(self.count);
            let hits = ids.iter().zip(scores).map(|(id, score)| Hit {
                id: id.to_bits(),
                score: match self.metric {
                    Metric::Cosine | Metric::Dot => *score,
                    Metric::L2 => 0.0 - score, // No distance is -0.
                },
            });
            hits.take_while(|hit| hit.id != NOBODY).collect()
        });
        hits.collect()
    }
}

impl Future for Search {
    type Output = Result<Vec<Vec<Hit>>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.call).poll(context));
        self.entry = None;
        Poll::Ready(answer.map(|floats| self.hits(&floats)))
    }
}
