//! The handle for plain threads: methods that block until the answer is there.

use std::time::Duration;

use super::builder::Batch;
use super::config::{Config, EngineChoice};
use super::gpu::Gpu;
use super::index::Index;
use super::parameter::Parameter;
use super::platform::block_on;
use super::storage::{Storage, TensorData};
use super::tensor::Tensor;
use crate::batch::Priority;
use crate::device::DeviceInfo;
use crate::embed::Activations;
use crate::error::Error;
use crate::graph::Mode;
use crate::ops::search::IndexConfig;
use crate::ops::{Field, State};
use crate::session::{Stats, Tuning};

/// A [`Gpu`] whose calls block the thread until their answer is there.
///
/// Calls of many threads share batches; one thread alone has one call a batch.
/// A full queue whose policy is to wait blocks the call before it is copied.
///
/// Each method of [`Gpu`] that returns something to await has a twin here. Methods that return at
/// once are at [`gpu`](Blocking::gpu), such as the wgpu device and the cost model. Calls of a
/// [`Clip`](super::Clip), an [`Index`] and an [`Embedder`](super::Embedder) block by their `wait`.
///
/// ```
/// use framebatch::{Blocking, Config};
///
/// let gpu = Blocking::open(Config::default())?;
/// assert_eq!(gpu.lerp(&[0.0, 1.0], &[1.0, 3.0], 0.25)?, [0.25, 1.5]);
/// # Ok::<(), framebatch::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Blocking {
    gpu: Gpu,
}

impl Blocking {
    /// [`Gpu::open`].
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::open`].
    pub fn open(config: Config) -> Result<Blocking, Error> {
        block_on(Gpu::open(config)).map(Blocking::new)
    }

    pub(super) fn new(gpu: Gpu) -> Blocking {
        Blocking { gpu }
    }

    /// The same session with methods that return at once.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// [`Gpu::keyed`].
    #[must_use]
    pub fn keyed(&self, key: u32) -> Blocking {
        Blocking::new(self.gpu.keyed(key))
    }

    /// [`Gpu::on`].
    #[must_use]
    pub fn on(&self, engine: EngineChoice) -> Blocking {
        Blocking::new(self.gpu.on(engine))
    }

    /// [`Gpu::with_deadline`].
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Blocking {
        Blocking::new(self.gpu.with_deadline(deadline))
    }

    /// [`Gpu::with_priority`].
    #[must_use]
    pub fn with_priority(&self, priority: Priority) -> Blocking {
        Blocking::new(self.gpu.with_priority(priority))
    }

    /// [`Gpu::batch`], with methods that block.
    pub fn batch<'a>(&self) -> Batch<'a, Blocking> {
        Batch::new(self.gpu.clone())
    }

    /// [`Gpu::tensor`].
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::tensor`].
    pub fn tensor(&self, data: &[f32], dims: &[u32]) -> Result<Tensor, Error> {
        self.gpu.tensor(data, dims)
    }

    /// [`Gpu::tensor_as`].
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::tensor_as`].
    pub fn tensor_as<'a>(
        &self,
        data: impl Into<TensorData<'a>>,
        dims: &[u32],
        storage: Storage,
    ) -> Result<Tensor, Error> {
        self.gpu.tensor_as(data, dims, storage)
    }

    /// [`Gpu::index`]; [`Search::wait`](super::index::Search::wait) blocks until a
    /// search is answered.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::index`].
    pub fn index(&self, vectors: &[f32], config: IndexConfig) -> Result<Index, Error> {
        self.gpu.index(vectors, config)
    }

    /// [`Gpu::load_index`].
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::load_index`].
    pub fn load_index(&self, bytes: &[u8]) -> Result<Index, Error> {
        self.gpu.load_index(bytes)
    }

    /// [`Gpu::lerp`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn lerp<'a>(
        &self,
        a: &[f32],
        b: &[f32],
        t: impl Into<Parameter<'a>>,
    ) -> Result<Vec<f32>, Error> {
        self.with_room().lerp(a, b, t).wait()
    }

    /// [`Gpu::lerp_items`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn lerp_items<'a>(
        &self,
        a: &[f32],
        b: &[f32],
        t: impl Into<Parameter<'a>>,
        width: u32,
    ) -> Result<Vec<f32>, Error> {
        self.with_room().lerp_items(a, b, t, width).wait()
    }

    /// [`Gpu::slerp`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn slerp<'a>(
        &self,
        a: &[f32],
        b: &[f32],
        t: impl Into<Parameter<'a>>,
    ) -> Result<Vec<f32>, Error> {
        self.with_room().slerp(a, b, t).wait()
    }

    /// [`Gpu::nlerp`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn nlerp<'a>(
        &self,
        a: &[f32],
        b: &[f32],
        t: impl Into<Parameter<'a>>,
    ) -> Result<Vec<f32>, Error> {
        self.with_room().nlerp(a, b, t).wait()
    }

    /// [`Gpu::bezier`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn bezier<'a>(
        &self,
        points: [&[f32]; 4],
        t: impl Into<Parameter<'a>>,
    ) -> Result<Vec<f32>, Error> {
        self.with_room().bezier(points, t).wait()
    }

    /// [`Gpu::bezier_items`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn bezier_items<'a>(
        &self,
        points: [&[f32]; 4],
        t: impl Into<Parameter<'a>>,
        width: u32,
    ) -> Result<Vec<f32>, Error> {
        self.with_room().bezier_items(points, t, width).wait()
    }

    /// [`Gpu::compute_gradients`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn compute_gradients(&self, states: &[State]) -> Result<Vec<f32>, Error> {
        self.with_room().compute_gradients(states).wait()
    }

    /// [`Gpu::compute_field_gradients`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn compute_field_gradients(
        &self,
        states: &[State],
        field: &Field,
    ) -> Result<Vec<f32>, Error> {
        self.with_room()
            .compute_field_gradients(states, field)
            .wait()
    }

    /// [`Gpu::interpolate`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn interpolate<'a>(
        &self,
        a: &[State],
        b: &[State],
        t: impl Into<Parameter<'a>>,
        mode: Mode,
    ) -> Result<Vec<State>, Error> {
        self.with_room().interpolate(a, b, t, mode).wait()
    }

    /// [`Gpu::sequence`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn sequence(
        &self,
        a: &[State],
        b: &[State],
        steps: u32,
        mode: Mode,
    ) -> Result<Vec<State>, Error> {
        self.with_room().sequence(a, b, steps, mode).wait()
    }

    /// [`Gpu::interpolate_bezier`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn interpolate_bezier<'a>(
        &self,
        points: [&[State]; 4],
        t: impl Into<Parameter<'a>>,
    ) -> Result<Vec<State>, Error> {
        self.with_room().interpolate_bezier(points, t).wait()
    }

    /// [`Gpu::distance`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn distance(&self, a: &[State], b: &[State]) -> Result<Vec<f32>, Error> {
        self.with_room().distance(a, b).wait()
    }

    /// [`Gpu::geodesic_distance`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn geodesic_distance(&self, a: &[State], b: &[State]) -> Result<Vec<f32>, Error> {
        self.with_room().geodesic_distance(a, b).wait()
    }

    /// [`Gpu::descend`].
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn descend<'a>(
        &self,
        states: &[State],
        rate: impl Into<Parameter<'a>>,
    ) -> Result<Vec<State>, Error> {
        self.with_room().descend(states, rate).wait()
    }

    /// [`Gpu::recycle`].
    pub fn recycle(&self, result: Vec<f32>) {
        self.gpu.recycle(result);
    }

    /// [`Gpu::flush`].
    pub fn flush(&self) {
        self.gpu.flush();
    }

    /// [`Gpu::ready`], blocking.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::ready`].
    pub fn ready(&self) -> Result<(), Error> {
        block_on(self.gpu.ready())
    }

    /// [`Gpu::desired_size`].
    pub fn desired_size(&self) -> i64 {
        self.gpu.desired_size()
    }

    /// [`Gpu::tuning`].
    pub fn tuning(&self) -> Tuning {
        self.gpu.tuning()
    }

    /// [`Gpu::optimal_batch_size`].
    pub fn optimal_batch_size(&self, model_bytes: u64, bytes_per_item: u64) -> u64 {
        self.gpu.optimal_batch_size(model_bytes, bytes_per_item)
    }

    /// [`Gpu::optimal_text_batch_size`].
    pub fn optimal_text_batch_size(&self, model_bytes: u64, text: &Activations) -> u64 {
        self.gpu.optimal_text_batch_size(model_bytes, text)
    }

    /// [`Gpu::explain`].
    pub fn explain(&self, calls: impl FnOnce(&Gpu)) -> String {
        self.gpu.explain(calls)
    }

    /// [`Gpu::warmup`], blocking.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::warmup`].
    pub fn warmup(&self, calls: impl FnOnce(&Gpu)) -> Result<(), Error> {
        block_on(self.gpu.warmup(calls))
    }

    /// [`Gpu::stats`].
    pub fn stats(&self) -> Stats {
        self.gpu.stats()
    }

    /// [`Gpu::info`].
    pub fn info(&self) -> DeviceInfo {
        self.gpu.info()
    }

    /// [`Gpu::dispose`].
    pub fn dispose(&self) {
        self.gpu.dispose();
    }

    pub(super) fn with_room(&self) -> &Gpu {
        self.gpu.shared().wait_for_room();
        &self.gpu
    }
}
