//! Several sessions side by side, each on a device of its own.
//!
//! Sessions share only the texts and chunks that are dealt out among them: batches, tensors and
//! losses are each session's own.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use futures_core::Stream;

use super::config::{Config, EngineChoice};
use super::gpu::Gpu;
use super::platform::{self, block_on};
use super::stream::{Ready, Results, waited};
use crate::device::{self, Adapter, AdapterKind};
use crate::error::Error;
use crate::session::Stats;

/// Sessions, one a device, for work that several can share: an
/// [`Embedder`](super::Embedder) over all of them, or a stream of chunks.
///
/// ```
/// use framebatch::{Config, Gpus, State};
///
/// let gpus = Gpus::open_blocking(Config::default())?;
/// let chunks = (0..20).map(|_| vec![State::default(); 10]);
/// let gradients = gpus.stream_blocking(chunks, |gpu, states| gpu.compute_gradients(&states));
/// for chunk in gradients {
///     assert_eq!(chunk?.len(), 10 * 32); // In order, whichever device it was.
/// }
/// let calls: u64 = gpus.stats().iter().map(|stats| stats.calls).sum();
/// assert_eq!(calls, 20);
/// # Ok::<(), framebatch::Error>(())
/// ```
#[derive(Clone)]
pub struct Gpus {
    sessions: Arc<[Gpu]>,
}

impl Gpus {
    /// Opens a session on each GPU in hardware: the discrete ones if there are any,
    /// otherwise the others, by the first graphics API that has some. Where there are
    /// none it is one session, what [`Gpu::open`] opens.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::open`], of the first device that cannot be opened, and
    /// [`Error::InvalidInput`] for a [`Config::adapter`]: list the sessions yourself
    /// with [`Gpus::new`].
    pub async fn open(config: Config) -> Result<Gpus, Error> {
        if config.adapter.is_some() {
            return Err(Error::InvalidInput(
                "Gpus::open opens every GPU; open the adapter that you name with Gpu::open".into(),
            ));
        }
        let chosen = match config.engine {
            EngineChoice::Cpu => Vec::new(),
            EngineChoice::Auto | EngineChoice::Gpu => hardware(adapters().await),
        };
        if chosen.is_empty() {
            return Gpus::new([Gpu::open(config).await?]);
        }
        let mut sessions = Vec::with_capacity(chosen.len());
        for adapter in chosen {
            let adapter = Some(adapter);
            let config = config.clone();
            sessions.push(Gpu::open(Config { adapter, ..config }).await?);
        }
        Gpus::new(sessions)
    }

    /// [`Gpus::open`], blocking this thread.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpus::open`].
    pub fn open_blocking(config: Config) -> Result<Gpus, Error> {
        block_on(Gpus::open(config))
    }

    /// A group of these sessions, several of which may be on one device.
    ///
    /// ```
    /// use framebatch::{Blocking, Config, EngineChoice, Gpus};
    ///
    /// let config = Config { engine: EngineChoice::Cpu, ..Config::default() };
    /// let open = || Blocking::open(config.clone()).map(|gpu| gpu.gpu().clone());
    /// let gpus = Gpus::new([open()?, open()?])?;
    /// assert_eq!(gpus.stats().len(), 2);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for none.
    pub fn new(sessions: impl Into<Vec<Gpu>>) -> Result<Gpus, Error> {
        let sessions = sessions.into();
        if sessions.is_empty() {
            let problem = "Gpus: there is no session; give one at least";
            return Err(Error::InvalidInput(problem.into()));
        }
        let sessions = sessions.into();
        Ok(Gpus { sessions })
    }

    /// [`Gpu::stream`] over all of them: `call` gets the session that has the fewest
    /// bytes of operands and results to do, and makes the calls of the chunk there.
    /// Results come in the order of their chunks.
    ///
    /// A session whose device is lost gets chunks only while no other is sound; what
    /// it had it computes on its next device.
    pub fn stream<S, F, R>(&self, source: S, call: F) -> Results<S, F, R>
    where
        S: Stream,
        F: FnMut(&Gpu, S::Item) -> R,
        R: Future,
    {
        Results::new(Arc::clone(&self.sessions), source, call)
    }

    /// The same over an iterator, as an iterator: `next` blocks until the next result
    /// is there.
    pub fn stream_blocking<I, F, R>(
        &self,
        source: I,
        call: F,
    ) -> impl Iterator<Item = R::Output> + use<I, F, R>
    where
        I: IntoIterator,
        F: FnMut(&Gpu, I::Item) -> R,
        R: Future,
    {
        waited(self.stream(Ready(source.into_iter()), call))
    }

    /// [`Gpu::recycle`] for results of [`Gpus::stream`]: lends the memory of a result to the session
    /// that has been lent the least.
    ///
    /// ```
    /// use framebatch::{Config, Gpus, State};
    ///
    /// let gpus = Gpus::open_blocking(Config::default())?;
    /// let chunks = (0..20).map(|_| vec![State::default(); 1000]);
    /// for gradients in gpus.stream_blocking(chunks, |gpu, states| gpu.compute_gradients(&states)) {
    ///     gpus.recycle(gradients?);
    /// }
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn recycle(&self, result: Vec<f32>) {
        let lent = |gpu: &&Gpu| {
            let state = gpu.shared().lock();
            (state.closed.is_some(), state.spare.floats())
        };
        if let Some(gpu) = self.sessions.iter().min_by_key(lent) {
            gpu.recycle(result);
        }
    }

    /// Counts of each session since it was opened.
    pub fn stats(&self) -> Vec<Stats> {
        self.sessions.iter().map(Gpu::stats).collect()
    }

    /// [`Gpu::flush`] of each.
    pub fn flush(&self) {
        self.sessions.iter().for_each(Gpu::flush);
    }

    /// [`Gpu::dispose`] of each.
    pub fn dispose(&self) {
        self.sessions.iter().for_each(Gpu::dispose);
    }
}

impl AsRef<[Gpu]> for Gpus {
    fn as_ref(&self) -> &[Gpu] {
        &self.sessions
    }
}

impl Debug for Gpus {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sessions.iter()).finish()
    }
}

/// The adapters of this machine, those in software included, in the order of
/// the graphics APIs and GPU drivers. Empty where there are none.
///
/// ```
/// # pollster::block_on(async {
/// use framebatch::{Config, EngineChoice, Gpu, adapters};
///
/// let adapters = adapters().await;
/// for adapter in &adapters {
///     println!("{}: {} by {}", adapter.index, adapter.name, adapter.backend);
/// }
/// let last = adapters.last().cloned();
/// let name = last.as_ref().map(|adapter| adapter.name.clone());
/// let config = Config {
///     engine: EngineChoice::Gpu, // Even if it is one in software.
///     adapter: last,
///     ..Config::default()
/// };
/// let gpu = Gpu::open(config).await?;
/// assert_eq!(Some(gpu.info().adapter), name);
/// # Ok::<(), framebatch::Error>(())
/// # }).unwrap();
/// ```
pub async fn adapters() -> Vec<Adapter> {
    match platform::enter(device::adapters).await {
        Ok(adapters) => adapters,
        Err(_) => device::adapters(), // The system has no thread to give.
    }
}

/// The GPUs in hardware, each once.
fn hardware(adapters: Vec<Adapter>) -> Vec<Adapter> {
    let of = |kinds: &[AdapterKind]| {
        let ours = adapters.iter().filter(|one| kinds.contains(&one.kind));
        let ours: Vec<Adapter> = ours.cloned().collect();
        let backend = ours.first().map(|first| first.backend);
        let same = ours.into_iter().filter(|one| Some(one.backend) == backend);
        same.collect::<Vec<Adapter>>()
    };
    let discrete = of(&[AdapterKind::Discrete]);
    if !discrete.is_empty() {
        return discrete;
    }
    of(&[
        AdapterKind::Integrated,
        AdapterKind::Virtual,
        AdapterKind::Other,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_is_chosen_once_and_the_discrete_ones_alone() {
        use AdapterKind::{Discrete, Integrated, Software, Virtual};
        type Case<'a> = (&'a [(AdapterKind, &'static str)], &'a [usize]);
        let cases: [Case; 5] = [
            (&[], &[]),
            (&[(Software, "vulkan")], &[]),
            (
                &[
                    (Integrated, "vulkan"),
                    (Discrete, "vulkan"),
                    (Software, "vulkan"),
                    (Discrete, "vulkan"),
                ],
                &[1, 3],
            ),
            // Two APIs list the same two GPUs.
            (
                &[
                    (Discrete, "vulkan"),
                    (Discrete, "vulkan"),
                    (Discrete, "dx12"),
                    (Discrete, "dx12"),
                ],
                &[0, 1],
            ),
            (&[(Software, "vulkan"), (Virtual, "dx12")], &[1]),
        ];
        for (adapters, expected) in cases {
            let adapters = adapters.iter().enumerate();
            let adapters = adapters.map(|(index, (kind, backend))| Adapter {
                index,
                name: String::new(),
                driver: String::new(),
                backend,
                kind: *kind,
                bus: String::new(),
            });
            let chosen = hardware(adapters.collect()).into_iter();
            assert_eq!(chosen.map(|one| one.index).collect::<Vec<_>>(), expected);
        }
    }
}
