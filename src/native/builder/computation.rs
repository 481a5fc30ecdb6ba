//! Computations of one value that stays on the device, recorded and sent in one go.
//!
//! What several values share, and what is read as well, takes a [`Batch`].

use super::{Batch, Value};
use crate::error::Error;
use crate::native::blocking::Blocking;
use crate::native::call::Call;
use crate::native::gpu::Gpu;
use crate::native::tensor::Tensor;

impl Gpu {
    /// Computes a value that stays on the device as a tensor, and of which nothing is read back:
    /// [`Batch::compute`] of the value that `record` records, executed. The call is on its way when
    /// this returns, and calls that are made later read the tensor without waiting. What goes
    /// wrong with the call later is the error of whatever reads the tensor.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let squares = gpu.compute(|batch| {
    ///     let x = batch.upload(&[1.0, 2.0, 3.0]);
    ///     batch.mul(x, x)
    /// })?;
    /// assert_eq!(gpu.read(&squares).await?, [1.0, 4.0, 9.0]); // In the same batch.
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of `record`, of [`Batch::compute`], and [`Error::QueueFull`].
    pub fn compute<'a>(
        &self,
        record: impl FnOnce(&mut Batch<'a>) -> Result<Value, Error>,
    ) -> Result<Tensor, Error> {
        self.try_compute(record).map(|(tensor, _)| tensor)
    }

    fn try_compute<'a>(
        &self,
        record: impl FnOnce(&mut Batch<'a>) -> Result<Value, Error>,
    ) -> Result<(Tensor, Call<f32>), Error> {
        let mut batch = self.batch();
        let value = record(&mut batch)?;
        let tensor = batch.compute(value)?;
        let call = batch.submit_unread()?;
        Ok((tensor, call))
    }

    /// Computes a value into a tensor, which the value may be computed of: [`Batch::compute_into`]
    /// of the value that `record` records, executed. The call resolves to no floats when
    /// it was submitted, and goes on though it is dropped.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let state = gpu.tensor(&[1.0, 2.0], &[2])?;
    /// for _ in 0..3 {
    ///     gpu.compute_into(&state, |batch| {
    ///         let x = batch.tensor(&state)?;
    ///         batch.scale(x, 10.0)
    ///     })
    ///     .await?;
    /// }
    /// assert_eq!(gpu.read(&state).await?, [1000.0, 2000.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Out of the call come the errors of `record`, of [`Batch::compute_into`] and of
    /// [`Batch::<Gpu>::execute`](Batch::execute).
    pub fn compute_into<'a>(
        &self,
        tensor: &Tensor,
        record: impl FnOnce(&mut Batch<'a>) -> Result<Value, Error>,
    ) -> Call<f32> {
        let mut batch = self.batch();
        let sent = record(&mut batch).and_then(|value| {
            batch.compute_into(value, tensor)?;
            batch.submit_unread()
        });
        sent.unwrap_or_else(|error| Call::known(Err(error)))
    }
}

impl Blocking {
    /// [`Gpu::compute`], once it was submitted.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::compute`], and what went wrong with the call.
    pub fn compute<'a>(
        &self,
        record: impl FnOnce(&mut Batch<'a>) -> Result<Value, Error>,
    ) -> Result<Tensor, Error> {
        let (tensor, call) = self.with_room().try_compute(record)?;
        call.wait()?;
        Ok(tensor)
    }

    /// [`Gpu::compute_into`].
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::compute_into`].
    pub fn compute_into<'a>(
        &self,
        tensor: &Tensor,
        record: impl FnOnce(&mut Batch<'a>) -> Result<Value, Error>,
    ) -> Result<(), Error> {
        let stored = self.with_room().compute_into(tensor, record);
        stored.wait().map(drop)
    }
}
