//! A listener's hold on a session: it hears of batches as long as its `Watch` is kept.
//!
//! The worker calls the listeners, outside of the session's lock and after the calls of the
//! batch were answered. What a batch was, the session says.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use super::blocking::Blocking;
use super::gpu::Gpu;
use super::listeners::Numbered;
use super::platform;
use super::shared::Shared;
use crate::session::Facts;

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
        let number = state.listeners.add(Box::new(listener));
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
        let ended = state.listeners.remove(self.number);
        if state.listeners.is_empty() {
            state.driver.session.measure_batches(None);
        }
        drop(state);
        drop(ended); // Outside the lock: a listener may hold anything.
    }
}

/// Tells everyone who listens what a batch was.
pub(super) fn tell(shared: &Shared, facts: &Facts) {
    let mut called = shared.lock().listeners.take();
    let mut panicked = Vec::new();
    for Numbered { number, listener } in &mut called {
        // A listener's panic is no reason for calls to fail.
        if catch_unwind(AssertUnwindSafe(|| listener(facts))).is_err() {
            panicked.push(*number);
        }
    }
    let mut state = shared.lock();
    for number in panicked {
        state.listeners.remove(number);
    }
    // A listener may have ended others, or itself.
    let ended = state.listeners.give_back(called);
    if state.listeners.is_empty() {
        state.driver.session.measure_batches(None);
    }
    drop(state);
    drop(ended);
}
