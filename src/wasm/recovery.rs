//! What happens when a device is lost: another one is asked for, with growing pauses,
//! and where none comes the processor takes over until one does.
//!
//! When that is due is the session's matter, and so are batches on their way, which it
//! sends again.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use super::config::open_device;
use super::inner::Inner;
use super::report;
use crate::device::{AnyDevice, Cpu, Device, Generation};
use crate::error::Error;
use crate::session::{Remedy, try_out};

/// Milliseconds before each request for an adapter. The first requests after a
/// loss may find none: the browser is still cleaning up.
const PAUSES: [f64; 6] = [0.0, 50.0, 100.0, 200.0, 400.0, 800.0];

/// Milliseconds between two looks at the batches in flight.
const LOOK: f64 = 1000.0;

/// How a session stands with its device.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// Whether the batches in flight are being looked at.
    looking: Cell<bool>,
    /// The session is over; a device that goes away now was sent away.
    pub(super) disposed: Cell<bool>,
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

    /// Does what is due about the device.
    pub(super) fn recover(self: &Rc<Self>) {
        if self.recovery.disposed.get() {
            return;
        }
        let remedy = self.session.borrow_mut().remedy(report::now());
        let pauses = match remedy {
            None => return,
            Some(Remedy::Look) => &PAUSES[..1],
            Some(remedy) => {
                self.notify(
                    "lost",
                    "the GPU device was lost; pending calls wait for the next one",
                );
                if remedy == Remedy::FallBack {
                    return self.go_on_with(AnyDevice::Cpu(Cpu::default()));
                }
                &PAUSES[..]
            }
        };
        let inner = Rc::clone(self);
        start(async move {
            let found = inner.find_device(pauses).await;
            if inner.session.borrow().is_lost() {
                return inner.go_on_with(found.unwrap_or(AnyDevice::Cpu(Cpu::default())));
            }
            let mut session = inner.session.borrow_mut();
            match found {
                Some(mut gpu) if inner.recovery.disposed.get() => gpu.destroy(),
                Some(gpu) => session.welcome(gpu, report::now()),
                None => session.missed(report::now()),
            }
            drop(session);
            inner.pump();
            inner.look_later();
        });
    }

    /// A GPU that works, if there is one.
    async fn find_device(&self, pauses: &[f64]) -> Option<AnyDevice> {
        for pause in pauses {
            sleep(*pause).await;
            if self.recovery.disposed.get() {
                break;
            }
            // A browser, or a GPU, may leave a request without an answer.
            let found = within(self.stall_ms, pin!(self.open_gpu())).await;
            if let Some(found) = found.flatten() {
                return Some(found);
            }
        }
        None
    }

    async fn open_gpu(&self) -> Option<AnyDevice> {
        let found = open_device(self.engine, &self.gpu_options).await;
        // Where the options would not have chosen a GPU at first, it is none now.
        let mut device = found
            .ok()
            .filter(|device| matches!(device, AnyDevice::Gpu(_)))?;
        if try_out(&mut device).await.is_ok() {
            return Some(device);
        }
        device.destroy();
        None
    }

    fn go_on_with(self: &Rc<Self>, mut device: AnyDevice) {
        if self.recovery.disposed.get() {
            device.destroy();
            return;
        }
        let is_gpu = matches!(device, AnyDevice::Gpu(_));
        let now = report::now();
        drop(self.session.borrow_mut().replace_device(device, now));
        if is_gpu {
            self.notify("restored", "a new GPU device is in use");
        } else {
            self.notify(
                "fallback",
                "no GPU device could be kept; calls run on the CPU until there is one",
            );
        }
        // The face has filled the tensors that it could.
        let lost = self.session.borrow_mut().give_up_unreadable();
        let why = "a tensor's data went with it; make the tensor again, or keep its source";
        self.refuse(&lost, &Error::DeviceLost(why.into()));
        self.watch();
        self.pump();
        self.look_later();
    }

    /// Looks for a GPU when that is due, if it is.
    fn look_later(self: &Rc<Self>) {
        // A session that nobody has any more is not kept until then.
        let session = Rc::downgrade(self);
        start(async move {
            while let Some(inner) = session.upgrade() {
                let Some(moment) = inner.session.borrow().next_look() else {
                    return;
                };
                let left = moment.0 - report::now().0;
                if left <= 0.0 {
                    return inner.recover();
                }
                drop(inner);
                // Timers ring a fraction of a millisecond early.
                sleep(left.max(1.0)).await;
            }
        });
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

/// What comes of work, if it comes within so many milliseconds.
pub(super) async fn within<T>(ms: f64, mut work: impl Future<Output = T> + Unpin) -> Option<T> {
    let mut late = pin!(sleep(ms));
    let first = poll_fn(|context| match Pin::new(&mut work).poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => late.as_mut().poll(context).map(|()| None),
    });
    first.await
}

pub(super) async fn sleep(ms: f64) {
    let timer = js_sys::Promise::new(&mut |resolve, _| set_timeout(&resolve, ms));
    // A timer's promise is never rejected.
    let _ = JsFuture::from(timer).await;
}
