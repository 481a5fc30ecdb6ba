//! Kernels that are compiled before a call needs them.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::call::Call;
use super::gpu::{Gpu, record};
use crate::error::Error;

/// Kernels being compiled. Dropping it ends nothing.
#[derive(Debug)]
pub struct Warmup(Call<f32>);

impl Gpu {
    /// Compiles the kernels of the calls that `calls` makes through the handle it
    /// is given. They are not sent, and asking for their values is an error. Other
    /// calls are not held up meanwhile.
    ///
    /// Resolves to [`Error::Shader`] for a kernel that does not compile on this
    /// device, and to [`Error::Disposed`].
    ///
    /// ```no_run
    /// # fn main() -> Result<(), framebatch::Error> {
    /// let gpu = framebatch::Blocking::open(Default::default())?;
    /// gpu.warmup(|gpu| drop(gpu.lerp(&[0.0], &[1.0], 0.5)))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn warmup(&self, calls: impl FnOnce(&Gpu)) -> Warmup {
        let kernels = record(calls).shared().lock().driver.session.end_kernels();
        Warmup(self.shared().warm_up(kernels))
    }
}

impl Future for Warmup {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_ok(drop)
    }
}
