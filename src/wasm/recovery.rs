//! Opens the device that replaces a lost one, and tries it out. When that is due, the driver
//! says.

use std::pin::pin;
use std::rc::Rc;

use super::config::open_device;
use super::inner::Inner;
use super::report;
use super::timer::{sleep, start, within};
use crate::device::{AnyDevice, Device};
use crate::driver::Takeover;
use crate::error::Error;
use crate::session::try_out;

/// Milliseconds before each request for an adapter. The first requests after a loss may find
/// none, because the browser is still cleaning up.
pub(super) const PAUSES: [f64; 6] = [0.0, 50.0, 100.0, 200.0, 400.0, 800.0];

impl Inner {
    /// Awaits the loss of the device in use, in the background.
    pub(super) fn watch(self: &Rc<Self>) {
        let session = self.session();
        let AnyDevice::Gpu(gpu) = session.device() else {
            return;
        };
        let (lost, generation) = (gpu.lost(), session.generation());
        let inner = Rc::clone(self);
        start(async move {
            lost.await;
            inner.driver.borrow_mut().lose(generation);
            inner.pump_unasked();
        });
    }

    /// Looks for a GPU in the background.
    pub(super) fn open(self: &Rc<Self>, pauses: &'static [f64]) {
        let inner = Rc::clone(self);
        start(async move {
            let found = inner.find_device(pauses).await;
            inner.take(found);
            inner.pump();
        });
    }

    /// A GPU that works, if there is one.
    async fn find_device(&self, pauses: &[f64]) -> Option<AnyDevice> {
        for pause in pauses {
            sleep(*pause).await;
            if self.driver.borrow().is_closed() {
                break;
            }
            // A browser may leave a request without an answer, and so may a GPU.
            let found = within(self.stall_ms, pin!(self.open_gpu())).await;
            if let Some(found) = found.flatten() {
                return Some(found);
            }
        }
        None
    }

    async fn open_gpu(&self) -> Option<AnyDevice> {
        let found = open_device(self.engine, &self.gpu_options).await;
        // With options that now choose the CPU, no GPU is found.
        let mut device = found
            .ok()
            .filter(|device| matches!(device, AnyDevice::Gpu(_)))?;
        if try_out(&mut device).await.is_ok() {
            return Some(device);
        }
        device.destroy();
        None
    }

    /// Gives the driver the GPU that was found, or none.
    fn take(self: &Rc<Self>, found: Option<AnyDevice>) {
        let Takeover { unneeded, news } =
            self.driver.borrow_mut().take_device(found, report::now());
        drop(unneeded);
        if let Some(news) = news {
            // When this returns, TypeScript has filled all tensors that it could, unless it asks
            // another thread for these.
            self.tell(news);
            if !self.is_waiting.take() {
                self.resume();
            }
        }
    }

    /// Goes on: TypeScript has filled all tensors that it could.
    pub(super) fn resume(&self) {
        let lost = self.driver.borrow_mut().resume();
        let why = "a tensor's data went with it; make the tensor again, or keep its source";
        self.refuse(&lost, &Error::DeviceLost(why.into()));
    }
}
