//! Who hears of batches natively.
//!
//! The worker calls them, outside of the session's lock and after the calls of
//! the batch were answered. What a batch was, the session says.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use super::blocking::Blocking;
use super::gpu::Gpu;
use super::platform;
use super::shared::Shared;
use crate::session::Facts;

type Listener = Box<dyn FnMut(&Facts) + Send>;

/// The listeners of a session.
#[derive(Default)]
pub(super) struct Watchers {
    /// All but those that are being called.
    listeners: Vec<(u64, Listener)>,
    /// The numbers of those who still listen.
    listening: Vec<u64>,
    made: u64,
}

/// Hears of batches until it is dropped; see [`Gpu::on_batch`].
#[derive(Debug)]
#[must_use = "dropping it ends it"]
pub struct Watch {
    shared: Weak<Shared>,
    number: u64,
}

impl Gpu {
    /// Calls `listener` with what each batch was, as it comes back, until what
    /// this returns is dropped. It runs on the thread that sends, after the calls
    /// were answered: keep it short. It must not wait for calls of this session. One
    /// that panics hears no more. Batches are measured only while somebody listens,
    /// which costs each chunk 16 more bytes of reading.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::sync::mpsc;
    /// use framebatch::{Config, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let (sender, batches) = mpsc::channel();
    /// let watch = gpu.on_batch(move |facts| sender.send(*facts).unwrap_or_default());
    /// gpu.lerp(&[0.0], &[1.0], 0.5).await?;
    /// let facts = batches.recv().expect("one batch");
    /// assert_eq!((facts.calls, facts.pieces), (1, 1));
    /// drop(watch);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn on_batch(&self, listener: impl FnMut(&Facts) + Send + 'static) -> Watch {
        let shared = self.shared();
        let mut state = shared.lock();
        let watchers = &mut state.watchers;
        watchers.made += 1;
        let number = watchers.made;
        watchers.listening.push(number);
        watchers.listeners.push((number, Box::new(listener)));
        state.driver.session.measure_batches(Some(platform::now_ms));
        drop(state);
        Watch {
            shared: Arc::downgrade(shared),
            number,
        }
    }
}

impl Blocking {
    /// [`Gpu::on_batch`].
    pub fn on_batch(&self, listener: impl FnMut(&Facts) + Send + 'static) -> Watch {
        self.gpu().on_batch(listener)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let mut state = shared.lock();
        let watchers = &mut state.watchers;
        watchers.listening.retain(|number| *number != self.number);
        let gone = watchers.take(|number| number == self.number);
        if watchers.listening.is_empty() {
            state.driver.session.measure_batches(None);
        }
        drop(state);
        drop(gone); // Outside the lock: it may hold anything.
    }
}

impl Watchers {
    fn take(&mut self, which: impl Fn(u64) -> bool) -> Vec<(u64, Listener)> {
        let all = std::mem::take(&mut self.listeners);
        let (taken, left) = all.into_iter().partition(|(number, _)| which(*number));
        self.listeners = left;
        taken
    }
}

/// Tells everyone who listens what a batch was.
pub(super) fn tell(shared: &Shared, facts: &Facts) {
    let mut called = shared.lock().watchers.take(|_| true);
    let mut panicked = Vec::new();
    for (number, listener) in &mut called {
        // That is no reason for calls to fail.
        if catch_unwind(AssertUnwindSafe(|| listener(facts))).is_err() {
            panicked.push(*number);
        }
    }
    let mut state = shared.lock();
    let watchers = &mut state.watchers;
    let panicked = |number: &u64| panicked.contains(number);
    watchers.listening.retain(|number| !panicked(number));
    // One of them may have ended any of them.
    let (still, gone): (Vec<_>, Vec<_>) = called
        .into_iter()
        .partition(|(number, _)| watchers.listening.contains(number));
    watchers.listeners.splice(..0, still);
    if watchers.listening.is_empty() {
        state.driver.session.measure_batches(None);
    }
    drop(state);
    drop(gone);
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listening", self.listening.len())
    }
}
