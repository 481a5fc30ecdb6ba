//! Handles of tensors that stay on the device.
//!
//! What a tensor is made of again when its device is lost is in `residents`, and who reads a
//! tensor the session counts. Nothing is computed here.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::gpu::Gpu;
use super::request::{Coverage, Written};
use super::residents::{Source, fill, hold};
use super::shared::{Purpose, Shared};
use super::state::State;
use super::storage::{Contents, Storage, TensorData};
use crate::error::Error;
use crate::graph::chain::Home;
use crate::graph::shape::Shape;
use crate::tensor::{Packing, WORD};

/// An array of floats that lies on the device, for any number of batches, until
/// its last clone is dropped.
///
/// When the device is lost, it is made again on the next one from a copy of its
/// data on the host; [`Tensor::without_source`] gives that copy up. Made by
/// [`Gpu::tensor`] and [`Gpu::import_buffer`].
#[derive(Clone)]
pub struct Tensor {
    resident: Arc<Resident>,
}

/// A tensor of a session, which is released with the last clone.
pub(super) struct Resident {
    shared: Arc<Shared>,
    number: u32,
    shape: Shape,
    packing: Option<Packing>,
}

impl Tensor {
    pub(super) fn new(
        shared: &Arc<Shared>,
        number: u32,
        shape: Shape,
        packing: Option<Packing>,
    ) -> Tensor {
        Tensor {
            resident: Arc::new(Resident {
                shared: Arc::clone(shared),
                number,
                shape,
                packing,
            }),
        }
    }

    pub(super) fn of(resident: Arc<Resident>) -> Tensor {
        Tensor { resident }
    }

    /// The dimensions, outermost first; none for a single number.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// assert_eq!(gpu.tensor(&[0.0; 6], &[2, 3])?.shape(), [2, 3]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn shape(&self) -> &[u32] {
        self.resident.shape.dims()
    }

    /// The same tensor without the copy on the host: half the memory, but its
    /// data is lost with the device, and what reads it then fails with
    /// [`Error::DeviceLost`].
    #[must_use]
    pub fn without_source(self) -> Tensor {
        let Resident { shared, number, .. } = &*self.resident;
        let mut state = shared.lock();
        let is_lost = state.driver.session.is_lost();
        let source = state.residents.sources.get_mut(number);
        let mut dropped = None;
        if let Some(Source::Overwritten { data, words }) = source
            && !is_lost
        {
            dropped = Some(std::mem::take(data));
            let next = Source::Written { words: *words };
            state.residents.sources.insert(*number, next);
        } else if let Some(Source::Kept(data)) = source {
            // The device is lost: the next one is still filled from the data, once.
            let data = std::mem::take(data);
            let next = if is_lost {
                Source::Once(data)
            } else {
                dropped = Some(data);
                Source::Given
            };
            state.residents.sources.insert(*number, next);
        }
        drop(state);
        drop(dropped); // Outside the lock: the data may be large.
        self
    }

    pub(super) fn dims(&self) -> Shape {
        self.resident.shape
    }

    pub(super) fn home(&self) -> Home {
        self.resident.packing.map_or(Home::Resident, Home::Packed)
    }

    /// The tensor's number in its session.
    pub(super) fn number(&self) -> u32 {
        self.resident.number
    }

    /// The tensor's session, and its number there.
    pub(super) fn place(&self) -> (&Arc<Shared>, u32) {
        (&self.resident.shared, self.resident.number)
    }

    /// Bytes of its elements on the device.
    pub(super) fn bytes(&self) -> u64 {
        let Resident { shape, packing, .. } = &*self.resident;
        let count = shape.count();
        let words = packing.map_or(count, |packing| packing.words(count));
        u64::from(words) * u64::from(WORD)
    }

    pub(super) fn resident(&self) -> &Arc<Resident> {
        &self.resident
    }
}

impl Debug for Tensor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({})", self.resident.shape)
    }
}

impl Debug for Resident {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Resident({})", self.number)
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.driver.session.release(self.number);
        let source = state.residents.sources.remove(&self.number);
        let import = state.residents.forget_import(self.number);
        self.shared.wake_worker(state);
        drop((source, import)); // Outside the lock: they may be large.
    }
}

impl Gpu {
    /// Copies an array of this shape, row-major, to the device, where it stays
    /// until the tensor's last clone is dropped; batches that name it carry
    /// nothing for it.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let bias = gpu.tensor(&[1.0, 2.0, 3.0], &[3])?;
    ///
    /// let mut batch = gpu.batch();
    /// let x = batch.upload_shaped(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3])?;
    /// let bias = batch.tensor(&bias)?;
    /// let y = batch.add(x, bias)?; // Broadcast, as in NumPy.
    /// batch.execute().await?;
    /// assert_eq!(batch.read(y).await?, [1.0, 3.0, 5.0, 4.0, 6.0, 8.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] where the data is not of that shape, and for
    /// more than 8 dimensions or 2³⁰ elements; [`Error::TooLarge`] where no
    /// buffer holds a few rows of it; [`Error::OutOfMemory`] where the memory budget
    /// or the GPU has no room for it; [`Error::Disposed`]. One that is more than a
    /// buffer is kept in parts, by rows along the first axis: what reads it row by row
    /// computes on it, and anything else fails with [`Error::TooLarge`].
    pub fn tensor(&self, data: &[f32], dims: &[u32]) -> Result<Tensor, Error> {
        self.tensor_as(data, dims, Storage::F32)
    }

    /// The same for data that the device is to keep in another format than
    /// 32-bit floats, or that is in one: floats are packed, 16-bit ones are kept as
    /// they are. What computes on the tensor reads 32-bit floats from it.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Gpu, Storage};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let weights = gpu.tensor_as(&[0.1, -0.25, 3.0], &[3], Storage::F16)?;
    ///
    /// let mut batch = gpu.batch();
    /// let weights = batch.tensor(&weights)?;
    /// let doubled = batch.scale(weights, 2.0)?;
    /// batch.execute().await?;
    /// // 0.1 is between two 16-bit floats; the other two are among them.
    /// assert_eq!(batch.read(doubled).await?, [0.199_951_17, -0.5, 6.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::tensor`], and [`Error::InvalidInput`] for 16-bit data with
    /// another storage than the two that it may be in, and for NaN and magnitudes
    /// from 65,009 on as [`Storage::Int8`] and from 4,095 on as [`Storage::Int4`].
    pub fn tensor_as<'a>(
        &self,
        data: impl Into<TensorData<'a>>,
        dims: &[u32],
        storage: Storage,
    ) -> Result<Tensor, Error> {
        let data = data.into();
        let shape = shaped("tensor", dims, data.len())?;
        let shared = self.shared();
        let info = shared.open()?.driver.session.info();
        let contents = data.contents(storage, &info)?;
        self.keep(shape, contents)
    }

    /// Copies data to the device, where it stays as a tensor of this shape.
    pub(super) fn keep(&self, shape: Shape, contents: Contents) -> Result<Tensor, Error> {
        let rows = shape.dims().first().copied().unwrap_or(1);
        let contents = Contents {
            row: shape.count().checked_div(rows).unwrap_or(0),
            ..contents
        };
        let shared = self.shared();
        let packing = contents.packing;
        let number = shared.on_gpu_driver_thread(|shared| shared.keep(contents))?;
        Ok(Tensor::new(shared, number, shape, packing))
    }
}

impl Shared {
    /// The number of a new tensor of this data.
    fn keep(&self, contents: Contents) -> Result<u32, Error> {
        let mut state = self.open()?;
        let number = hold(&mut state.driver.session, &contents);
        // While the device is lost, the tensor waits for the next one.
        if !state.driver.session.is_lost()
            && let Err(error) = fill(&mut state.driver.session, number, &contents)
        {
            state.driver.session.release(number);
            return Err(error);
        }
        let source = Source::Kept(contents);
        state.residents.sources.insert(number, source);
        Ok(number)
    }
}

impl Shared {
    /// A tensor of this shape without words, which a call is to compute of other tensors. It
    /// shares its buffer with none of these, so that the call can write to it directly.
    pub(super) fn make_room(
        self: &Arc<Self>,
        shape: Shape,
        operands: Vec<u32>,
    ) -> Result<Tensor, Error> {
        // A tensor without elements has a word, because a kernel binds it, and is computed already.
        let words = shape.count().max(1);
        let is_empty = shape.count() == 0;
        let number = self.on_gpu_driver_thread(move |shared| {
            let mut state = shared.open()?;
            let session = &mut state.driver.session;
            let number = session.hold_shared(words, &operands);
            if !session.is_lost()
                && let Err(error) = session.allocate(number, words)
            {
                session.release(number);
                return Err(error);
            }
            let source = match is_empty {
                true => Source::Kept(Contents::default()),
                false => Source::Unwritten { words },
            };
            state.residents.sources.insert(number, source);
            Ok(number)
        })?;
        Ok(Tensor::new(self, number, shape, None))
    }

    /// Makes room again for those of the tensors whose words were lost and which a call replaces.
    pub(super) fn renew(self: &Arc<Self>, written: &[Written]) -> Result<(), Error> {
        let is_gone = |state: &State, written: &Written| {
            let source = state.residents.sources.get(&written.number);
            written.coverage == Coverage::Replaced && matches!(source, Some(Source::Lost(_)))
        };
        let state = self.lock();
        let gone = written.iter().filter(|written| is_gone(&state, written));
        let gone: Vec<Written> = gone.copied().collect();
        drop(state);
        if gone.is_empty() {
            return Ok(());
        }
        self.on_gpu_driver_thread(move |shared| {
            let mut state = shared.open()?;
            for written in gone {
                if !is_gone(&state, &written) {
                    continue; // Somebody else was faster.
                }
                let Written { number, words, .. } = written;
                if !state.driver.session.is_lost() {
                    state.driver.session.allocate(number, words)?;
                }
                let source = Source::Unwritten { words };
                state.residents.sources.insert(number, source);
            }
            Ok(())
        })
    }

    /// The number in this session of a tensor that a call of this name is to write.
    pub(super) fn admit_target(&self, name: &str, tensor: &Tensor) -> Result<u32, Error> {
        let number = self.number_of(tensor)?;
        let refuse = |what: &str| {
            let fix = "is only read; give a tensor of `Gpu::tensor`, or a computed one";
            Error::InvalidInput(format!("{name}: {what} {fix}"))
        };
        if tensor.resident.packing.is_some() {
            return Err(refuse("a tensor in fewer bits"));
        }
        match self.lock().residents.sources.get(&number) {
            Some(Source::Imported | Source::ImportLost) => Err(refuse("an imported buffer")),
            _ => Ok(number),
        }
    }

    /// The number in this session of a tensor that a call reads.
    pub(super) fn admit(&self, tensor: &Tensor) -> Result<u32, Error> {
        let number = self.number_of(tensor)?;
        self.lock().residents.check(number)?;
        Ok(number)
    }

    /// The number of a tensor in this session.
    fn number_of(&self, tensor: &Tensor) -> Result<u32, Error> {
        let resident = &tensor.resident;
        let mut state = self.lock();
        if std::ptr::eq(&raw const *resident.shared, self) {
            return Ok(resident.number);
        }
        if self.purpose != Purpose::Explain {
            return Err(Error::InvalidInput(
                "tensor: it is of another session; make it with this one".into(),
            ));
        }
        let mut adopted = state.residents.adopted.iter();
        if let Some((_, number)) = adopted.find(|(known, _)| Arc::ptr_eq(known, resident)) {
            return Ok(*number);
        }
        let session = &mut state.driver.session;
        let number = match resident.packing {
            Some(_) => session.hold(),
            None => session.hold_shared(resident.shape.count(), &[]),
        };
        state.residents.adopted.push((Arc::clone(resident), number));
        Ok(number)
    }
}

/// The shape with these dimensions, if it has this many elements.
pub(super) fn shaped(name: &str, dims: &[u32], elements: usize) -> Result<Shape, Error> {
    let shape = Shape::new(dims)?;
    if shape.count() as usize == elements {
        return Ok(shape);
    }
    Err(Error::InvalidInput(format!(
        "{name}: the data has {elements} elements, but shape {shape} has {}; give as many",
        shape.count()
    )))
}
