//! A listener's hold on a session: it hears of batches, or of what becomes of the device, as
//! long as its `Watch` is kept.
//!
//! Listeners are called outside of the session's lock: of a batch by the worker, after the
//! batch's calls were answered. What a batch was, the session says.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use super::blocking::Blocking;
use super::device_event::DeviceEvent;
use super::gpu::Gpu;
use super::listeners::{Listeners, Numbered};
use super::platform;
use super::shared::Shared;
use super::state::State;
use crate::session::Facts;

/// Hears of events until it is dropped; see [`Gpu::on_batch`] and [`Gpu::on_device`].
#[derive(Debug)]
#[must_use = "dropping it ends it"]
pub struct Watch {
    shared: Weak<Shared>,
    number: u64,
    kind: Kind,
}

/// What a listener hears of.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Batches,
    Devices,
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
        self.watch(number, Kind::Batches)
    }

    /// Calls `listener` with what becomes of the device, until what this returns is dropped. It
    /// runs on a thread of the session: keep it short. It must not wait for calls of this
    /// session. One that panics hears no more.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::sync::mpsc;
    /// use framebatch::{Config, DeviceEvent, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let (sender, events) = mpsc::channel();
    /// let watch = gpu.on_device(move |event| sender.send(*event).unwrap_or_default());
    /// gpu.lerp(&[0.0], &[1.0], 0.5).await?;
    /// assert!(!events.try_iter().any(|event| event == DeviceEvent::Lost));
    /// drop(watch);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn on_device(&self, listener: impl FnMut(&DeviceEvent) + Send + 'static) -> Watch {
        let mut state = self.shared().lock();
        let number = state.device_listeners.add(Box::new(listener));
        drop(state);
        self.watch(number, Kind::Devices)
    }

    fn watch(&self, number: u64, kind: Kind) -> Watch {
        Watch {
            shared: Arc::downgrade(self.shared()),
            number,
            kind,
        }
    }
}

impl Blocking {
    /// [`Gpu::on_batch`].
    pub fn on_batch(&self, listener: impl FnMut(&Facts) + Send + 'static) -> Watch {
        self.gpu().on_batch(listener)
    }

    /// [`Gpu::on_device`].
    pub fn on_device(&self, listener: impl FnMut(&DeviceEvent) + Send + 'static) -> Watch {
        self.gpu().on_device(listener)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let mut state = shared.lock();
        // Dropped outside the lock: a listener may hold anything.
        match self.kind {
            Kind::Batches => {
                let ended = state.listeners.remove(self.number);
                if state.listeners.is_empty() {
                    state.driver.session.measure_batches(None);
                }
                drop(state);
                drop(ended);
            }
            Kind::Devices => {
                let ended = state.device_listeners.remove(self.number);
                drop(state);
                drop(ended);
            }
        }
    }
}

/// Tells everyone who listens what a batch was.
pub(super) fn tell_batch(shared: &Shared, facts: &Facts) {
    tell(shared, *facts, |state| &mut state.listeners);
    let mut state = shared.lock();
    if state.listeners.is_empty() {
        state.driver.session.measure_batches(None);
    }
}

/// Tells everyone who listens what became of the device.
pub(super) fn tell_device(shared: &Shared, event: DeviceEvent) {
    tell(shared, event, |state| &mut state.device_listeners);
}

/// Calls the listeners for events of the device that were noted with the lock.
pub(super) fn call_device_listeners(shared: &Shared) {
    call(shared, |state| &mut state.device_listeners);
}

fn tell<E>(shared: &Shared, event: E, listeners: fn(&mut State) -> &mut Listeners<E>) {
    let calls = listeners(&mut shared.lock()).note(event);
    if calls {
        call(shared, listeners);
    }
}

fn call<E>(shared: &Shared, listeners: fn(&mut State) -> &mut Listeners<E>) {
    loop {
        let next = listeners(&mut shared.lock()).next();
        let Some((event, mut called)) = next else {
            return;
        };
        let mut panicked = Vec::new();
        for Numbered { number, listener } in &mut called {
            // A listener's panic is no reason for calls to fail.
            if catch_unwind(AssertUnwindSafe(|| listener(&event))).is_err() {
                panicked.push(*number);
            }
        }
        let mut state = shared.lock();
        let listeners = listeners(&mut state);
        for number in panicked {
            listeners.remove(number);
        }
        // A listener may have ended others, or itself.
        let ended = listeners.give_back(called);
        drop(state);
        drop(ended); // Outside the lock: a listener may hold anything.
    }
}
