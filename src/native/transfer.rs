//! Calls that read a tensor's floats, and calls that write floats to one.
//!
//! Both are calls like any other: they join batches, and take effect in the order in which calls
//! are made. What a batch computes into tensors is the matter of `builder`.

use super::blocking::Blocking;
use super::call::Call;
use super::gpu::Gpu;
use super::request::{Chained, Coverage, Request, Structure, Written};
use super::tensor::Tensor;
use crate::error::Error;
use crate::graph::chain::{Chain, Home, Store, StoreExtent};
use crate::graph::shape::Shape;
use crate::tensor::DType;

impl Gpu {
    /// The floats of a tensor, row-major: what calls that were made before have left there.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let heights = gpu.tensor(&[1.0, 2.0, 3.0], &[3])?;
    /// assert_eq!(gpu.read(&heights).await?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Out of the call comes [`Error::InvalidInput`] for a tensor of another session and one that
    /// is not computed yet, [`Error::DeviceLost`] and [`Error::TensorLost`] for one whose floats
    /// went with its device, what went wrong with the call that was to compute the tensor, and what
    /// may befall any call, as of [`Gpu::lerp`].
    pub fn read(&self, tensor: &Tensor) -> Call<f32> {
        match self.try_read(tensor) {
            Ok(call) => call,
            Err(error) => Call::known(Err(error)),
        }
    }

    fn try_read(&self, tensor: &Tensor) -> Result<Call<f32>, Error> {
        let shared = self.shared();
        let number = shared.admit(tensor)?;
        let mut chain = Chain::default();
        let floats = chain.input(tensor.dims(), DType::F32, tensor.home())?;
        chain.output(floats)?;
        let count = tensor.dims().count() as usize;
        let request = Request {
            structure: Structure::Chain(chain),
            // The answer of a call without elements is known.
            rows: usize::from(count > 0),
            scalar: 0,
            operands: Default::default(),
            chained: Chained {
                tensors: vec![number],
                ..Chained::default()
            },
        };
        Ok(shared.submit_floats(request, self.terms(), count))
    }

    /// Writes floats to a tensor, from float number `offset` on, and leaves the others as they are;
    /// the call resolves to no floats. Calls on the tensor that are made before find what was there,
    /// and those that are made later what this call wrote.
    ///
    /// The tensor's [source](Tensor::without_source) is given up: when the device is lost, what
    /// reads the tensor fails with [`Error::TensorLost`], until all of it is written.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let heights = gpu.tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let written = gpu.write(&heights, 1, &[20.0, 30.0]);
    /// let read = gpu.read(&heights); // In the same batch.
    /// written.await?;
    /// assert_eq!(read.await?, [1.0, 20.0, 30.0, 4.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Out of the call comes [`Error::InvalidInput`] for floats that the tensor does not have room
    /// for from `offset` on, and for a tensor of another session, in fewer bits, imported, or not
    /// computed yet; [`Error::DeviceLost`] for a part of one whose data went with its
    /// device; and what may befall any call, as of [`Gpu::lerp`].
    pub fn write(&self, tensor: &Tensor, offset: u32, floats: &[f32]) -> Call<f32> {
        match self.try_write(tensor, offset, floats) {
            Ok(call) => call,
            Err(error) => Call::known(Err(error)),
        }
    }

    fn try_write(&self, tensor: &Tensor, offset: u32, floats: &[f32]) -> Result<Call<f32>, Error> {
        let shared = self.shared();
        let shape = tensor.dims();
        let end = u64::from(offset) + floats.len() as u64;
        if end > u64::from(shape.count()) {
            return Err(Error::InvalidInput(format!(
                "write: {} floats from {offset} on do not fit the tensor's {}; give fewer, or a smaller offset",
                floats.len(),
                shape.count()
            )));
        }
        let number = shared.admit_target("write", tensor)?;
        let count = u32::try_from(floats.len()).expect("no more than the tensor has");
        let is_whole = count == shape.count();
        let (shape, extent, coverage) = match is_whole {
            true => (shape, StoreExtent::Whole, Coverage::Replaced),
            false => (Shape::new(&[count])?, StoreExtent::Part, Coverage::Updated),
        };
        let mut chain = Chain::default();
        let source = chain.input(shape, DType::F32, Home::Call)?;
        let target = chain.input(tensor.dims(), DType::F32, Home::Resident)?;
        if count > 0 {
            chain.store(source, Store { target, extent })?;
        }
        let written = vec![Written {
            number,
            words: tensor.dims().count(),
            coverage,
        }];
        shared.renew(&written)?;
        let request = Request {
            structure: Structure::Chain(chain),
            // The answer of a call without elements is known.
            rows: usize::from(count > 0),
            scalar: 0,
            operands: Default::default(),
            chained: Chained {
                operands: vec![bytemuck::cast_slice(floats)],
                tensors: vec![number],
                written,
                offset: Some(offset),
            },
        };
        Ok(shared.submit_floats(request, self.terms(), 0))
    }
}

impl Blocking {
    /// [`Gpu::read`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn read(&self, tensor: &Tensor) -> Result<Vec<f32>, Error> {
        self.with_room().read(tensor).wait()
    }

    /// [`Gpu::write`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn write(&self, tensor: &Tensor, offset: u32, floats: &[f32]) -> Result<(), Error> {
        let written = self.with_room().write(tensor, offset, floats);
        written.wait().map(drop)
    }
}
