//! Vectors that go from tensors straight into an index, and come back to the host when they are
//! downloaded.
//!
//! How pages are kept is the matter of `indexes`, and what they are written with that of
//! `page_writes`.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use super::call::Call;
use super::index::{Entry, Index};
use super::indexes::{Held, Use};
use super::page_writes::Asked;
use super::platform::{MutexGuard, block_on};
use super::request::{Chained, Request, Structure};
use super::state_lock::Guard;
use super::submission::Terms;
use super::tensor::Tensor;
use crate::error::Error;
use crate::graph::chain::{Chain, Home};
use crate::graph::searching::{BLOCK, block_words};
use crate::graph::shape::Shape;
use crate::ops::search::read_vector;
use crate::tensor::DType;

impl Index {
    /// Adds the rows of a tensor, or a tensor of one dimension as one vector, which never visit the
    /// host: they are scaled and packed on the device. Returns their ids at once, as
    /// [`Index::add`] does. Searches made from here on find them, in the same submission if need
    /// be; the tensor may be dropped or written then.
    ///
    /// A vector with an element that is no number, or is larger than [`Index::add`] takes, keeps
    /// its id and is never found. Scores of floats by product or distance are those of the same
    /// vectors added from the host, bit for bit. By cosine, lengths are summed in 32-bit floats:
    /// an element is off by at most (dim / 64 + 16) · 2⁻²⁴ of its magnitude more. Magnitudes below
    /// 2⁻¹¹⁹ may count as 0 as int8.
    ///
    /// After a lost device the vectors come back of tensors that are still held with their
    /// [source](Tensor::without_source), in 32-bit floats, and were not written since. All others
    /// are [lost](Index::lost), unless they were [downloaded](Index::download) before.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, Filter, IndexConfig};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let index = gpu.index(&[1.0, 0.0], IndexConfig::new(2))?;
    /// let more = gpu.compute(|batch| {
    ///     let x = batch.upload_shaped(&[0.0, 1.0, 3.0, 4.0], &[2, 2])?;
    ///     batch.scale(x, 2.0)
    /// })?;
    /// assert_eq!(index.add_tensor(&more)?, [1, 2]);
    /// let found = index.search(&[0.6, 0.8], 1, Filter::All).wait()?;
    /// assert_eq!(found[0][0].id, 2);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for another shape than `[dim]` and `[n, dim]`, and for a tensor of
    /// another session or without words; [`Error::OutOfMemory`] where there is no room for a page,
    /// [`Error::QueueFull`], [`Error::Disposed`]. Then no vector is added. What goes wrong with
    /// the call later leaves its vectors [lost](Index::lost).
    pub fn add_tensor(&self, tensor: &Tensor) -> Result<Vec<u32>, Error> {
        let count = self.check_source(tensor)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        if tensor.home() == Home::Resident {
            return self.insert(tensor, count);
        }
        let floats = self.gpu.compute(|batch| {
            let packed = batch.tensor(tensor)?;
            batch.scale(packed, 1.0)
        })?;
        self.insert(&floats, count)
    }

    /// The ids of vectors that are lost, rising: those that [`Index::add_tensor`] added and that
    /// went with their device, or whose call failed. While there are some, searches fail with
    /// [`Error::TensorLost`]; [remove](Index::remove) them, and add them again.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, IndexConfig};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let index = gpu.index(&[1.0, 0.0], IndexConfig::new(2))?;
    /// index.remove(&index.lost())?;
    /// assert!(index.lost().is_empty());
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn lost(&self) -> Vec<u32> {
        self.entry.lock().lost.iter().copied().collect()
    }

    /// Brings the vectors that [`Index::add_tensor`] added to the host, as they are packed, bit
    /// for bit. Behind that the index can be [saved](Index::save), and outlives every loss.
    /// Searches made meanwhile find each vector once. A vector with an element that is no number,
    /// which no search ever found, is removed. Nothing is done before the download is awaited.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, IndexConfig};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let index = gpu.index(&[], IndexConfig::new(2))?;
    /// index.add_tensor(&gpu.tensor(&[0.0, 1.0], &[2])?)?;
    /// assert!(index.save().is_err());
    /// index.download().wait()?;
    /// assert_eq!(gpu.load_index(&index.save()?)?.len(), 1);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Out of the download comes [`Error::TensorLost`] while vectors are lost, and what may befall
    /// any call. Vectors that were not brought back stay on the device.
    pub fn download(&self) -> Download {
        let (entry, terms) = (Arc::clone(&self.entry), self.gpu.terms());
        Download(Box::pin(async move { entry.download(terms).await }))
    }

    /// How many vectors a tensor has.
    fn check_source(&self, tensor: &Tensor) -> Result<u32, Error> {
        let dim = self.entry.lock().vectors.config().dim;
        match *tensor.shape() {
            [width] if width == dim => Ok(1),
            [rows, width] if width == dim => Ok(rows),
            _ => Err(Error::InvalidInput(format!(
                "index.add_tensor: the tensor has shape {}, but the index's vectors have {dim} floats; reshape it to [{dim}] or [n, {dim}]",
                tensor.dims()
            ))),
        }
    }

    /// Inserts the rows of a tensor of 32-bit floats.
    fn insert(&self, source: &Tensor, count: u32) -> Result<Vec<u32>, Error> {
        let shared = self.entry.shared();
        let number = shared.admit(source)?;
        let (mut state, mut held) = self.entry.ready(Use::Insertion(count))?;
        let (first, calls) = held.vectors.insert(count)?;
        let asked = Asked {
            terms: self.gpu.terms(),
            now: shared.clock.now(),
        };
        let tickets = match held.write(&mut state, &calls, Some(number), asked) {
            Ok(tickets) => tickets,
            Err(error) => {
                held.vectors.take_back(first);
                return Err(error);
            }
        };
        shared
            .arrivals
            .fetch_add(tickets.len() as u64, Ordering::Relaxed);
        let calls = tickets.into_iter().zip(calls);
        held.note_inserted(source.resident(), number, calls);
        drop(held);
        shared.wake_worker(state);
        Ok((first..first + count).collect())
    }
}

/// The vectors of a device page that are to be brought back.
struct Filled {
    /// The page's tensor.
    number: u32,
    /// The vectors, by their places in the page.
    ids: BTreeMap<u32, u32>,
    block_words: u32,
}

/// How often a download asks again for a page whose reading is refused.
const MOST_REFUSALS: u32 = 8;

impl Entry {
    /// Brings all vectors of device pages to the host, page by page.
    async fn download(self: Arc<Self>, terms: Terms) -> Result<(), Error> {
        let pages = self.filled_pages()?;
        let mut refusals = 0;
        for page in pages {
            loop {
                let Some(words) = self.ask_for(&page, terms)? else {
                    break; // Others have removed its vectors, or brought them back.
                };
                match words.await {
                    Ok(words) => break self.bring_back(page, bytemuck::cast_slice(&words)),
                    // A device went with a call in front that wrote the page. The next one has
                    // the page again, unless vectors are lost.
                    Err(Error::TensorLost(_)) if refusals < MOST_REFUSALS => refusals += 1,
                    Err(error) => return Err(error),
                }
            }
        }
        let (state, held) = self.ready(Use::Removal)?;
        let is_whole = held.check_whole("index.download");
        drop(held);
        self.shared().wake_worker(state);
        is_whole
    }

    /// Asks for the words of a device page, if it still is one.
    fn ask_for(self: &Arc<Self>, page: &Filled, terms: Terms) -> Result<Option<Call<f32>>, Error> {
        let (state, held) = self.whole()?;
        if !held.has_device_page(page.number) {
            return Ok(None);
        }
        drop(held);
        let words = self
            .shared()
            .submit_floats_in(state, &page.request()?, terms);
        Ok(Some(words))
    }

    /// The session and the index, both locked, where no vector is lost.
    fn whole(self: &Arc<Self>) -> Result<(Guard<'_>, MutexGuard<'_, Held>), Error> {
        let (state, held) = self.ready(Use::Insertion(0))?;
        held.check_whole("index.download")?;
        Ok((state, held))
    }

    /// The device pages with vectors.
    fn filled_pages(self: &Arc<Self>) -> Result<Vec<Filled>, Error> {
        let (_state, held) = self.whole()?;
        let block_words = block_words(held.vectors.config().quads());
        let pages = held
            .device_pages
            .iter()
            .enumerate()
            .map(|(at, page)| Filled {
                number: page.number,
                ids: held.vectors.device().ids_of_page(at),
                block_words,
            });
        Ok(pages.filter(|page| !page.ids.is_empty()).collect())
    }

    /// Moves the vectors of a page to the host, by the page's words. Vectors whose insertions have
    /// failed meanwhile stay lost.
    fn bring_back(&self, mut page: Filled, words: &[u32]) {
        let mut held = self.lock();
        page.ids.retain(|_, id| !held.lost.contains(id));
        // Searches that are made from here on find the vectors in host pages.
        let removals = held.vectors.device().removals(page.ids.values().copied());
        held.undone.extend(removals);
        held.has_moved = true;
        for (place, id) in page.ids {
            let words = words.chunks_exact(page.block_words as usize);
            let mut blocks = words.skip((place / BLOCK) as usize);
            let block = blocks.next().expect("the blocks of all vectors were read");
            let number = place % BLOCK;
            let is_found = block[(BLOCK + number) as usize] == id + 1;
            let vector = is_found.then(|| read_vector(block, number));
            held.vectors.bring_back(id, vector);
        }
    }
}

impl Filled {
    /// A call that reads the page up to the block of the last vector.
    fn request(&self) -> Result<Request<'static>, Error> {
        let blocks = self.ids.keys().max().map_or(0, |last| last / BLOCK + 1);
        let mut chain = Chain::default();
        let shape = Shape::new(&[blocks * self.block_words])?;
        let page = chain.input(shape, DType::U32, Home::Resident)?;
        chain.output(page)?;
        Ok(Request {
            structure: Structure::Chain(chain),
            rows: 1,
            scalar: 0,
            operands: Default::default(),
            chained: Chained {
                tensors: vec![self.number],
                ..Chained::default()
            },
        })
    }
}

/// A download under way, of [`Index::download`].
#[must_use = "nothing is done before a download is awaited"]
pub struct Download(Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>);

impl Download {
    /// Blocks this thread until all vectors are on the host. Not for async code, where it would
    /// block the runtime: `await` the download instead.
    ///
    /// # Errors
    ///
    /// The errors of [`Index::download`].
    pub fn wait(self) -> Result<(), Error> {
        block_on(self)
    }
}

impl Future for Download {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl std::fmt::Debug for Download {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Download")
    }
}
