//! Runs of many items: what became of each item, and how many succeeded.
//!
//! The program's closure makes the calls of an item. What is called together is sent together,
//! as always. A run needs no particular runtime.

use std::fmt::{self, Debug, Formatter};
use std::iter::Fuse;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;

use super::blocking::Blocking;
use super::gpu::Gpu;
use super::platform::{block_on, now_ms};

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T, E> {
    /// It succeeded, with this result.
    Done(T),
    /// It failed.
    Failed(E),
    /// It did not begin, or was given up.
    Skipped,
}

/// The outcome of a run: [`Gpu::run_all`].
#[derive(Clone, Debug)]
pub struct RunOutcome<T, E> {
    /// What became of each item, in the order of the items.
    pub results: Vec<Outcome<T, E>>,
    /// How many succeeded.
    pub succeeded: usize,
    /// How many failed.
    pub failed: usize,
    /// How many were skipped.
    pub skipped: usize,
    /// From the first poll of the run to its end.
    pub elapsed: Duration,
    /// Batches that the session sent meanwhile, other callers' included.
    pub batches: u64,
}

/// An item that has begun: its place, and what it gives.
struct Begun<R> {
    place: usize,
    result: Pin<Box<R>>,
}

impl<R: Future> Future for Begun<R> {
    type Output = (usize, R::Output);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.result.as_mut().poll(context));
        Poll::Ready((self.place, result))
    }
}

/// Hears of an item, by its place, as it settles.
type Observer<'a, T, E> = Box<dyn FnMut(usize, &Result<T, E>) + Send + 'a>;

/// A run of many items: a future of a [`RunOutcome`]. Made by [`Gpu::run_all`]; dropped, it
/// gives up the items that have begun.
#[must_use = "a run does nothing unless it is polled"]
pub struct RunAll<'a, I: Iterator, F, R, T, E> {
    gpu: &'a Gpu,
    items: Fuse<I>,
    /// Whether no further item begins: all have begun, or the run has stopped.
    is_ended: bool,
    work: F,
    begun: FuturesUnordered<Begun<R>>,
    /// What became of each item so far; of those behind nothing is known yet.
    results: Vec<Outcome<T, E>>,
    succeeded: usize,
    failed: usize,
    /// When the run began, in milliseconds, and how many batches the session had sent.
    start: Option<(f64, u64)>,
    most: usize,
    stops_on_error: bool,
    stop: Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>,
    observer: Option<Observer<'a, T, E>>,
}

impl Gpu {
    /// Runs `work` for each item, and says what became of each. `work` makes the call, or the
    /// calls, of one item; an item that fails touches no other. All items begin at once and go
    /// out together, unless [`RunAll::max_concurrent`] says otherwise.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Gpu, Outcome};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let ends = [vec![2.0], vec![4.0, 4.0], vec![6.0]];
    /// let run = gpu.run_all(&ends, |gpu, end| gpu.lerp(&[0.0], end, 0.5));
    /// let outcome = run.max_concurrent(2).await;
    /// assert_eq!((outcome.succeeded, outcome.failed, outcome.skipped), (2, 1, 0));
    /// assert_eq!(outcome.results[2], Outcome::Done(vec![3.0]));
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn run_all<'a, I, F, R, T, E>(
        &'a self,
        items: I,
        work: F,
    ) -> RunAll<'a, I::IntoIter, F, R, T, E>
    where
        I: IntoIterator,
        F: FnMut(&Gpu, I::Item) -> R,
        R: Future<Output = Result<T, E>>,
    {
        RunAll {
            gpu: self,
            items: items.into_iter().fuse(),
            is_ended: false,
            work,
            begun: FuturesUnordered::new(),
            results: Vec::new(),
            succeeded: 0,
            failed: 0,
            start: None,
            most: usize::MAX,
            stops_on_error: false,
            stop: None,
            observer: None,
        }
    }
}

impl<'a, I, F, R, T, E> RunAll<'a, I, F, R, T, E>
where
    I: Iterator,
    F: FnMut(&Gpu, I::Item) -> R,
    R: Future<Output = Result<T, E>>,
{
    /// Sets how many items may have begun and not settled, at most; at least one. No limit by
    /// default.
    pub fn max_concurrent(mut self, items: usize) -> Self {
        self.most = items.max(1);
        self
    }

    /// Stops the run at the first error: no item begins any more, and those that have begun are
    /// given up.
    pub fn stop_on_first_error(mut self) -> Self {
        self.stops_on_error = true;
        self
    }

    /// Stops the run when this future is ready, such as that of a token of cancellation: no item
    /// begins any more, and those that have begun are given up.
    pub fn stop_when(mut self, stop: impl Future<Output = ()> + Send + 'a) -> Self {
        self.stop = Some(Box::pin(stop));
        self
    }

    /// Calls `observer` with the place and the result of each item that settles, in the order in
    /// which they do.
    pub fn on_settled(mut self, observer: impl FnMut(usize, &Result<T, E>) + Send + 'a) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Blocks this thread until the run ends. Not for async code: `await` the run instead.
    pub fn wait(self) -> RunOutcome<T, E> {
        block_on(self)
    }

    /// Begins items while there is room.
    fn begin_more(&mut self) {
        while !self.is_ended && self.begun.len() < self.most {
            let Some(item) = self.items.next() else {
                self.is_ended = true;
                return;
            };
            let place = self.results.len();
            self.results.push(Outcome::Skipped);
            let result = Box::pin((self.work)(self.gpu, item));
            self.begun.push(Begun { place, result });
        }
    }

    fn record(&mut self, place: usize, result: Result<T, E>) {
        if let Some(observer) = &mut self.observer {
            observer(place, &result);
        }
        self.results[place] = match result {
            Ok(value) => {
                self.succeeded += 1;
                Outcome::Done(value)
            }
            Err(error) => {
                self.failed += 1;
                if self.stops_on_error {
                    self.skip_others();
                }
                Outcome::Failed(error)
            }
        };
    }

    /// Gives up what has begun, and begins nothing any more.
    fn skip_others(&mut self) {
        self.is_ended = true;
        self.begun.clear();
        self.results
            .extend(self.items.by_ref().map(|_| Outcome::Skipped));
    }

    fn outcome(&mut self, start: f64, batches: u64) -> RunOutcome<T, E> {
        let results = std::mem::take(&mut self.results);
        RunOutcome {
            succeeded: self.succeeded,
            failed: self.failed,
            skipped: results.len() - self.succeeded - self.failed,
            results,
            elapsed: Duration::from_secs_f64((now_ms() - start).max(0.0) / 1e3),
            batches: self.gpu.stats().batches - batches,
        }
    }
}

// Everything that is pinned has a box of its own.
impl<I: Iterator, F, R, T, E> Unpin for RunAll<'_, I, F, R, T, E> {}

impl<I, F, R, T, E> Future for RunAll<'_, I, F, R, T, E>
where
    I: Iterator,
    F: FnMut(&Gpu, I::Item) -> R,
    R: Future<Output = Result<T, E>>,
{
    type Output = RunOutcome<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let gpu = self.gpu;
        let begin = || (now_ms(), gpu.stats().batches);
        let (start, batches) = *self.start.get_or_insert_with(begin);
        let stop = self.stop.as_mut();
        let is_stopped = stop.is_some_and(|stop| stop.as_mut().poll(context).is_ready());
        self.is_ended |= is_stopped;
        loop {
            self.begin_more();
            match Pin::new(&mut self.begun).poll_next(context) {
                Poll::Ready(Some((place, result))) => self.record(place, result),
                Poll::Ready(None) if self.is_ended => break,
                Poll::Ready(None) => {}
                // What has settled has settled, also where the run stops in the same moment.
                Poll::Pending if is_stopped => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        self.skip_others();
        Poll::Ready(self.outcome(start, batches))
    }
}

impl<I: Iterator, F, R, T, E> Debug for RunAll<'_, I, F, R, T, E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunAll")
            .field("begun", &self.begun.len())
            .field("succeeded", &self.succeeded)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Blocking {
    /// [`Gpu::run_all`], whose [`wait`](RunAll::wait) blocks until the run ends. `work` makes
    /// calls of the handle that it is given, and does not wait for them.
    ///
    /// ```
    /// use framebatch::{Blocking, Config};
    ///
    /// let gpu = Blocking::open(Config::default())?;
    /// let ends = [1.0_f32, 2.0, 3.0];
    /// let outcome = gpu.run_all(ends, |gpu, end| gpu.lerp(&[0.0], &[end], 0.5)).wait();
    /// assert_eq!(outcome.succeeded, 3);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn run_all<'a, I, F, R, T, E>(
        &'a self,
        items: I,
        work: F,
    ) -> RunAll<'a, I::IntoIter, F, R, T, E>
    where
        I: IntoIterator,
        F: FnMut(&Gpu, I::Item) -> R,
        R: Future<Output = Result<T, E>>,
    {
        self.gpu().run_all(items, work)
    }
}
