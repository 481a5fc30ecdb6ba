//! Work larger than memory: chunks go in, their results come out in the same
//! order, a bounded number of them on their way.
//!
//! The program's closure makes the calls. A stream needs no particular runtime.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::blocking::Blocking;
use super::gpu::Gpu;
use super::platform::block_on;
use super::room::Room;

/// The least depth: one chunk is uploaded, one computed, one read back.
const LEAST: u64 = 3;

/// The greatest depth by default. Small chunks share batches, and more chunks gain nothing.
const MOST: u64 = 64;

/// Bytes of chunks and results that keep link and device at work: some chunks of a batch each
/// way.
const ENOUGH: u64 = 16 << 20;

/// The results of [`Gpu::stream`]: a [`Stream`] of what the futures of its
/// closure resolve to, in the order of their chunks.
///
/// Nothing is taken from the source before it is first polled. Dropped, it drops
/// what is on its way, which gives those calls up.
#[must_use = "a stream does nothing unless it is polled"]
pub struct Results<S: Stream, F, R: Future> {
    /// The sessions, at least one.
    gpus: Arc<[Gpu]>,
    /// `None` once the source has ended.
    source: Option<Pin<Box<S>>>,
    call: F,
    depth: Option<usize>,
    /// Bytes of operands and results of the newest chunk whose calls were seen.
    bytes_each: u64,
    /// Room in the queues of the sessions.
    rooms: Vec<Room>,
    chunks: VecDeque<Chunk<R>>,
}

enum Chunk<R: Future> {
    Running(Pin<Box<R>>),
    Done(R::Output),
}

impl Gpu {
    /// What `call` makes of each chunk of `source`, in order: for work that is
    /// more than memory holds. `call` makes the call, or the calls, of a chunk.
    ///
    /// At most [`Results::depth`] chunks are on their way, sent whatever the
    /// session's policy: one is uploaded while another is computed. The queue's
    /// capacity holds them back as well.
    /// An error is one of the results; those before it and behind it stand.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::pin::pin;
    /// use framebatch::{Config, Gpu, State};
    /// # use futures_core::Stream;
    /// # fn chunks() -> impl Stream<Item = Vec<State>> {
    /// #     struct Three(u8);
    /// #     impl Stream for Three {
    /// #         type Item = Vec<State>;
    /// #         fn poll_next(mut self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>)
    /// #             -> std::task::Poll<Option<Vec<State>>> {
    /// #             self.0 += 1;
    /// #             std::task::Poll::Ready((self.0 <= 3).then(|| vec![State::default(); 10]))
    /// #         }
    /// #     }
    /// #     Three(0)
    /// # }
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let gradients = gpu.stream(chunks(), |gpu, states| gpu.compute_gradients(&states));
    /// let mut gradients = pin!(gradients);
    /// let mut floats = 0;
    /// // `while let Some(chunk) = gradients.next().await` with a library of streams.
    /// while let Some(chunk) =
    ///     std::future::poll_fn(|context| gradients.as_mut().poll_next(context)).await
    /// {
    ///     floats += chunk?.len();
    /// }
    /// assert_eq!(floats, 3 * 10 * 32);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn stream<S, F, R>(&self, source: S, call: F) -> Results<S, F, R>
    where
        S: Stream,
        F: FnMut(&Gpu, S::Item) -> R,
        R: Future,
    {
        Results::new([self.clone()].into(), source, call)
    }
}

impl<S, F, R> Results<S, F, R>
where
    S: Stream,
    F: FnMut(&Gpu, S::Item) -> R,
    R: Future,
{
    pub(super) fn new(gpus: Arc<[Gpu]>, source: S, call: F) -> Self {
        Results {
            rooms: gpus.iter().map(|gpu| Room::of(gpu.shared())).collect(),
            gpus,
            source: Some(Box::pin(source)),
            call,
            depth: None,
            bytes_each: 0,
            chunks: VecDeque::new(),
        }
    }

    /// Sets how many chunks are taken from the source and not handed over as results yet, at
    /// most; at least one. By default as many as have 16 MiB of operands and
    /// results, from 3 to 64, and no more than fit the memory budget; so many for
    /// each session.
    pub fn depth(mut self, chunks: usize) -> Self {
        self.depth = Some(chunks.max(1));
        self
    }

    /// Takes chunks while there is room, and polls every chunk that is running.
    fn advance(&mut self, context: &mut Context<'_>) {
        for chunk in &mut self.chunks {
            chunk.go_on(context);
        }
        while self.has_room(context) {
            let Some(source) = &mut self.source else {
                break;
            };
            match source.as_mut().poll_next(context) {
                Poll::Ready(Some(chunk)) => self.begin(chunk, context),
                Poll::Ready(None) => self.source = None,
                Poll::Pending => break,
            }
        }
        for gpu in &*self.gpus {
            gpu.shared().flush_queued();
        }
    }

    fn begin(&mut self, chunk: S::Item, context: &mut Context<'_>) {
        let pending = |gpu: &Gpu| gpu.shared().lock().driver.session.pending_bytes();
        let lost = |gpu: &Gpu| !gpu.shared().is_sound();
        let least = self.gpus.iter().min_by_key(|gpu| (lost(gpu), pending(gpu)));
        let gpu = least.unwrap_or(&self.gpus[0]);
        let accepted = |gpu: &Gpu| gpu.shared().lock().driver.session.accepted_bytes();
        let before = accepted(gpu);
        let mut chunk = Chunk::Running(Box::pin((self.call)(gpu, chunk)));
        chunk.go_on(context);
        let own = accepted(gpu) - before;
        // Calls that other threads make meanwhile count as this chunk's, too.
        if own > 0 {
            self.bytes_each = own;
        }
        self.chunks.push_back(chunk);
    }

    /// Whether one more chunk may be taken; if not, `context` hears of room in
    /// the queue.
    fn has_room(&mut self, context: &Context<'_>) -> bool {
        let chunks = self.chunks.len();
        if chunks == 0 {
            return true;
        }
        let depth = self.depth.unwrap_or_else(|| self.usual_depth());
        // A closed session counts as having room: its calls return the error.
        let mut rooms = self.rooms.iter_mut();
        chunks < depth && rooms.any(|room| room.poll(context).is_ready())
    }

    fn usual_depth(&self) -> usize {
        let each = self.bytes_each;
        let wanted = ENOUGH.checked_div(each).unwrap_or(LEAST).clamp(LEAST, MOST);
        let depths = self.gpus.iter().map(|gpu| {
            let state = gpu.shared().lock();
            let fitting = state.driver.session.optimal_batch_size(0, each);
            usize::try_from(wanted.min(fitting)).unwrap_or(usize::MAX)
        });
        depths.sum()
    }
}

impl<R: Future> Chunk<R> {
    fn go_on(&mut self, context: &mut Context<'_>) {
        if let Chunk::Running(result) = self
            && let Poll::Ready(result) = result.as_mut().poll(context)
        {
            *self = Chunk::Done(result);
        }
    }
}

// Everything that is pinned has a box of its own.
impl<S: Stream, F, R: Future> Unpin for Results<S, F, R> {}

impl<S, F, R> Stream for Results<S, F, R>
where
    S: Stream,
    F: FnMut(&Gpu, S::Item) -> R,
    R: Future,
{
    type Item = R::Output;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<R::Output>> {
        self.advance(context);
        match self.chunks.pop_front() {
            Some(Chunk::Done(result)) => {
                // The next chunk is begun before the first one's result is taken.
                self.advance(context);
                Poll::Ready(Some(result))
            }
            Some(running) => {
                self.chunks.push_front(running);
                Poll::Pending
            }
            None if self.source.is_none() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// The stream of an iterator.
pub(super) struct Ready<I>(pub(super) I);

impl<I: Iterator> Stream for Ready<I> {
    type Item = I::Item;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.get_mut().0.next())
    }
}

// An iterator's items are not pinned.
impl<I> Unpin for Ready<I> {}

impl Blocking {
    /// [`Gpu::stream`] over an iterator, as an iterator: `next` blocks until the
    /// next result is there. `call` makes calls of the handle that it is given,
    /// and does not wait for them.
    ///
    /// ```
    /// use framebatch::{Blocking, Config, State};
    ///
    /// let gpu = Blocking::open(Config::default())?;
    /// let chunks = (0..3).map(|_| vec![State::default(); 10]);
    /// for gradients in gpu.stream(chunks, |gpu, states| gpu.compute_gradients(&states)) {
    ///     assert_eq!(gradients?.len(), 10 * 32);
    /// }
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn stream<I, F, R>(
        &self,
        source: I,
        call: F,
    ) -> impl Iterator<Item = R::Output> + use<I, F, R>
    where
        I: IntoIterator,
        F: FnMut(&Gpu, I::Item) -> R,
        R: Future,
    {
        waited(self.gpu().stream(Ready(source.into_iter()), call))
    }
}

/// The results as an iterator that blocks.
pub(super) fn waited<S, F, R>(mut results: Results<S, F, R>) -> impl Iterator<Item = R::Output>
where
    S: Stream,
    F: FnMut(&Gpu, S::Item) -> R,
    R: Future,
{
    std::iter::from_fn(move || {
        block_on(poll_fn(|context| Pin::new(&mut results).poll_next(context)))
    })
}
