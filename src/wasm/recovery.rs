//! What happens when a device is lost: another one is asked for, with growing
//! pauses; after too many losses in a row the processor takes over.
//!
//! Batches on their way are the session's matter; it sends them again.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;

use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use super::config::open_device;
use super::inner::Inner;
use super::report;
use crate::device::{AnyDevice, Cpu, Generation};
use crate::error::Error;
use crate::session::LOSSES;

/// Milliseconds before each request for an adapter. The first requests after a
/// loss may find none: the browser is still cleaning up.
const PAUSES: [f64; 6] = [0.0, 50.0, 100.0, 200.0, 400.0, 800.0];

/// Milliseconds between two looks at the batches in flight.
const LOOK: f64 = 1000.0;

/// How a session stands with its device.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// Invariant: one recovery at a time.
    running: Cell<bool>,
    /// Losses since the last batch that a device answered.
    losses: Cell<u32>,
    /// Whether the batches in flight are being looked at.
    looking: Cell<bool>,
    /// The session is over; a device that goes away now was sent away.
    pub(super) disposed: Cell<bool>,
}

impl Recovery {
    /// The device has answered a batch, so it works.
    pub(super) fn works(&self) {
        self.losses.set(0);
    }
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &js_sys::Function, ms: f64);
}

impl Inner {
    /// Waits, in the background, for the loss of the device that is in use now.
    pub(super) fn watch(self: &Rc<Self>) {
        let session = self.session.borrow();
        let AnyDevice::Gpu(gpu) = session.device() else {
            return;
        };
        let (lost, generation) = (gpu.lost(), session.generation());
        let inner = Rc::clone(self);
        start(async move {
            lost.await;
            inner.lose(generation);
        });
    }

    /// The device of this generation is gone.
    pub(super) fn lose(self: &Rc<Self>, generation: Generation) {
        self.session.borrow_mut().lose(generation);
        self.recover();
    }

    /// Finds another device if the session has lost its own.
    pub(super) fn recover(self: &Rc<Self>) {
        let needed = !self.recovery.disposed.get() && self.session.borrow().is_lost();
        if !needed || self.recovery.running.replace(true) {
            return;
        }
        self.recovery.losses.set(self.recovery.losses.get() + 1);
        self.notify(
            "lost",
            "the GPU device was lost; pending calls wait for the next one",
        );
        let inner = Rc::clone(self);
        start(async move {
            let device = inner.find_device().await;
            inner.recovery.running.set(false);
            inner.go_on_with(device);
        });
    }

    async fn find_device(&self) -> AnyDevice {
        if self.recovery.losses.get() < LOSSES && !self.session.borrow().is_exhausted() {
            for pause in PAUSES {
                sleep(pause).await;
                if self.recovery.disposed.get() {
                    break;
                }
                // Where the options would not have chosen a GPU at first, it is none now.
                let found = open_device(self.engine, &self.gpu_options).await;
                if let Ok(device @ AnyDevice::Gpu(_)) = found {
                    return device;
                }
            }
        }
        AnyDevice::Cpu(Cpu::default())
    }

    fn go_on_with(self: &Rc<Self>, mut device: AnyDevice) {
        if self.recovery.disposed.get() {
            crate::device::Device::destroy(&mut device);
            return;
        }
        let is_gpu = matches!(device, AnyDevice::Gpu(_));
        drop(self.session.borrow_mut().replace_device(device));
        if is_gpu {
            self.notify("restored", "a new GPU device is in use");
        } else {
            self.notify(
                "fallback",
                "no GPU device could be kept; calls run on the CPU now",
            );
        }
        // The face has filled the tensors that it could.
        let lost = self.session.borrow_mut().give_up_unreadable();
        let why = "a tensor's data went with it; make the tensor again, or keep its source";
        self.refuse(&lost, &Error::DeviceLost(why.into()));
        self.watch();
        self.pump();
    }

    /// Looks at the batches in flight from time to time, as long as there are
    /// any: a GPU that answers nothing is a lost one. Where none came since the last
    /// look, memory that is kept for the next is freed.
    pub(super) fn look_after_flights(self: &Rc<Self>) {
        if self.recovery.looking.replace(true) {
            return;
        }
        let inner = Rc::clone(self);
        start(async move {
            let mut before = 0;
            loop {
                sleep(LOOK.min(inner.stall_ms)).await;
                let (oldest, generation, sent) = {
                    let session = inner.session.borrow();
                    let oldest = session.oldest_in_flight();
                    (oldest, session.generation(), session.launches())
                };
                let is_quiet =
                    std::mem::replace(&mut before, sent) == sent || inner.recovery.disposed.get();
                let Some(oldest) = oldest else {
                    if is_quiet {
                        break;
                    }
                    continue;
                };
                if report::now().0 - oldest.0 > inner.stall_ms {
                    inner.lose(generation);
                }
            }
            inner.recovery.looking.set(false);
            inner.session.borrow_mut().trim();
        });
    }
}

/// Starts work in the background.
pub(super) fn start(work: impl Future<Output = ()> + 'static) {
    // Boxed, so that there is one of its kind: each costs the package bytes.
    let work: Pin<Box<dyn Future<Output = ()>>> = Box::pin(work);
    #[expect(clippy::disallowed_methods, reason = "this is the JavaScript face")]
    spawn_local(work);
}

pub(super) async fn sleep(ms: f64) {
    let timer = js_sys::Promise::new(&mut |resolve, _| set_timeout(&resolve, ms));
    // A timer's promise is never rejected.
    let _ = JsFuture::from(timer).await;
}
