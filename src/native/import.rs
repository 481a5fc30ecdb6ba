//! Buffers that a program made on the session's device, as tensors.
//!
//! Imported buffers are read in place. Nothing here copies or destroys one.

use std::sync::{Arc, Weak};

use super::blocking::Blocking;
use super::builder::{Batch, Value};
use super::gpu::Gpu;
use super::platform;
use super::residents::{Residents, Source};
use super::shared::{Purpose, Shared};
use super::tensor::{Resident, Tensor};
use crate::error::Error;
use crate::graph::shape::Shape;

/// The tensors that buffers were imported as, so that one buffer is one tensor:
/// batches that read it are computed together.
#[derive(Debug, Default)]
pub(super) struct Imports {
    known: Vec<Import>,
}

/// A buffer that was imported. It is dropped outside of the lock, because it may be the last handle
/// of a large buffer.
#[derive(Debug)]
pub(super) struct Import {
    buffer: wgpu::Buffer,
    shape: Shape,
    number: u32,
    tensor: Weak<Resident>,
}

impl Imports {
    /// The tensor that was imported from this buffer with this shape, if `is_good` accepts the
    /// tensor's number.
    ///
    /// Invariant: only the tensor that is returned is upgraded. Another one might become the last
    /// clone, and its drop would wait for the lock that the caller holds.
    fn find(
        &mut self,
        buffer: &wgpu::Buffer,
        shape: Shape,
        is_good: impl Fn(u32) -> bool,
    ) -> Option<Arc<Resident>> {
        self.known
            .retain(|import| import.tensor.strong_count() > 0 && is_good(import.number));
        let mut known = self.known.iter();
        let same = known.find(|known| known.buffer == *buffer && known.shape == shape);
        same.and_then(|same| same.tensor.upgrade())
    }
}

impl Residents {
    /// Forgets a tensor whose last clone is gone; its import, if it was imported.
    pub(super) fn forget_import(&mut self, number: u32) -> Vec<Import> {
        let known = &mut self.imports.known;
        known
            .extract_if(.., |import| import.number == number)
            .collect()
    }

    /// The tensor that a buffer was imported as, if it is still there.
    fn import(&mut self, buffer: &wgpu::Buffer, shape: Shape) -> Option<Arc<Resident>> {
        let Residents {
            imports, sources, ..
        } = self;
        let is_lost = |number: u32| matches!(sources.get(&number), Some(Source::ImportLost));
        imports.find(buffer, shape, |number| !is_lost(number))
    }
}

impl Gpu {
    /// Makes a buffer of [`wgpu_device`](Gpu::wgpu_device)'s device a tensor of
    /// this shape, without copying it: batches read what lies in it when they
    /// are computed, whoever wrote it. It holds 32-bit floats, row-major from
    /// its start, and is never written to or destroyed here. A buffer that a
    /// wgpu instance of the program's own made is not recognized as such, and
    /// must not be given.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::sync::Arc;
    /// use framebatch::{Config, EngineChoice, Gpu};
    ///
    /// let gpu = Gpu::open(Config { engine: EngineChoice::Gpu, ..Config::default() }).await?;
    /// let device = gpu.wgpu_device().expect("a GPU");
    /// let buffer = Arc::new(device.create_buffer(&wgpu::BufferDescriptor {
    ///     label: None,
    ///     size: 16, // A multiple of 16 bytes.
    ///     usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
    ///     mapped_at_creation: false,
    /// }));
    /// let queue = gpu.wgpu_queue().expect("a GPU");
    /// queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&[10.0_f32, 20.0, 30.0]));
    ///
    /// let mut batch = gpu.batch();
    /// let weights = batch.import_buffer(Arc::clone(&buffer), 3)?;
    /// let x = batch.upload(&[1.0, 2.0, 3.0]);
    /// let y = batch.mul(x, weights)?;
    /// batch.execute().await?;
    /// assert_eq!(batch.read(y).await?, [10.0, 40.0, 90.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] without the usages STORAGE and COPY_SRC, for a
    /// buffer shorter than the elements' bytes rounded up to 16, for one of
    /// another device or destroyed, on the CPU, and for more than 8
    /// dimensions or 2³⁰ elements; [`Error::TooLarge`] for one that cannot be
    /// bound whole; [`Error::DeviceLost`] where the device is gone;
    /// [`Error::Disposed`]. What reads it after the loss of its device fails
    /// with [`Error::DeviceLost`].
    pub fn import_buffer(&self, buffer: Arc<wgpu::Buffer>, dims: &[u32]) -> Result<Tensor, Error> {
        let shape = Shape::new(dims)?;
        let shared = Arc::clone(self.shared());
        self.shared()
            .on_gpu_driver_thread(move |_| import(&shared, &buffer, shape))
    }
}

/// Makes a buffer a tensor, or finds the tensor that it was imported as.
fn import(shared: &Arc<Shared>, buffer: &wgpu::Buffer, shape: Shape) -> Result<Tensor, Error> {
    let mut state = shared.open()?;
    if let Some(known) = state.residents.import(buffer, shape) {
        drop(state); // A tensor that is dropped at once takes the lock.
        return Ok(Tensor::of(known));
    }
    if state.driver.session.is_lost() {
        return Err(Error::DeviceLost(
            "import a buffer of the next one, which `wgpu_device` gives".into(),
        ));
    }
    let number = state.driver.session.hold();
    let place = |device: &mut _| platform::import(device, number, buffer, shape.count());
    // A session that explains calls has no tensor on a device.
    if shared.purpose != Purpose::Explain
        && let Err(error) = state.driver.session.place_with(number, None, place)
    {
        state.driver.session.release(number);
        return Err(error);
    }
    state.residents.sources.insert(number, Source::Imported);
    let tensor = Tensor::new(shared, number, shape, None);
    state.residents.imports.known.push(Import {
        buffer: buffer.clone(),
        shape,
        number,
        tensor: Arc::downgrade(tensor.resident()),
    });
    Ok(tensor)
}

impl Blocking {
    /// [`Gpu::import_buffer`].
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::import_buffer`].
    pub fn import_buffer(&self, buffer: Arc<wgpu::Buffer>, dims: &[u32]) -> Result<Tensor, Error> {
        self.gpu().import_buffer(buffer, dims)
    }
}

impl<G> Batch<'_, G> {
    /// A vector of so many floats at the start of a buffer that was made on the
    /// session's device, such as weights: it is not copied and survives the
    /// batch. [`Gpu::import_buffer`] says more, and gives it any shape.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::import_buffer`], and [`Error::InvalidInput`] after
    /// [`execute`](Batch::execute).
    pub fn import_buffer(&mut self, buffer: Arc<wgpu::Buffer>, len: u32) -> Result<Value, Error> {
        let tensor = self.gpu().import_buffer(buffer, &[len])?;
        self.tensor(&tensor)
    }
}
