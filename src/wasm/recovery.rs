//! Devices in the place of a lost one: asked for and tried out, then given to the driver,
//! which says when.

use std::pin::pin;
use std::rc::Rc;

use super::config::open_device;
use super::inner::Inner;
use super::report;
use super::timer::{sleep, start, within};
use crate::device::{AnyDevice, Device};
use crate::driver::Opened;
use crate::error::Error;
use crate::session::try_out;

/// Milliseconds before each request for an adapter. The first requests after a
/// loss may find none: the browser is still cleaning up.
pub(super) const PAUSES: [f64; 6] = [0.0, 50.0, 100.0, 200.0, 400.0, 800.0];

impl Inner {
    /// Waits, in the background, for the loss of the device that is in use now.
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

    /// Gives the driver what was found.
    fn take(self: &Rc<Self>, found: Option<AnyDevice>) {
        let Opened { unneeded, news } = self.driver.borrow_mut().opened(found, report::now());
        drop(unneeded);
        if let Some(news) = news {
            // When this returns, the face has filled the tensors that it could.
            self.tell(news);
            let lost = self.driver.borrow_mut().filled();
            let why = "a tensor's data went with it; make the tensor again, or keep its source";
            self.refuse(&lost, &Error::DeviceLost(why.into()));
        }
    }
}
