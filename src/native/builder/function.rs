//! Functions: operations that are recorded once, and computed again and again with other arrays.
//!
//! What each call carries and where it is kept is in `recorded_call`. A call is queued, merged and
//! answered like any other.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use super::function_call::{FunctionCall, FunctionResults};
use super::record::Upload;
use super::recorded_call::{Numbers, RecordedCall};
use super::selection::Selection;
use super::{Batch, Progress, ResultPlaces, Value, invalid};
use crate::error::Error;
use crate::graph::NodeId;
use crate::graph::chain::Home;
use crate::graph::shape::Shape;
use crate::native::blocking::Blocking;
use crate::native::call::Call;
use crate::native::gpu::Gpu;
use crate::native::tensor::Tensor;
use crate::tensor::DType;

/// Operations that were recorded once, for arrays of certain shapes; see [`Gpu::function`]. It is
/// a handle of its session, and clones are the same function.
///
/// `N` arrays are given to each call, and what comes back is what `R` says: a `Vec<f32>` for a
/// [`Value`], an array of these for an array of values.
#[derive(Clone, Debug)]
pub struct Function<const N: usize, R = Value> {
    gpu: Gpu,
    recorded: Arc<Recorded>,
    returned: PhantomData<fn() -> R>,
}

/// What all clones of a function share.
#[derive(Debug)]
struct Recorded {
    /// The session that recorded.
    home: Gpu,
    /// The shapes of what is given.
    shapes: Vec<Shape>,
    /// The call that gives the results, if there are any.
    read: Option<RecordedCall>,
    /// The call that stores, in a function that does.
    stored: Option<RecordedCall>,
    /// Where the results lie among the floats of `read`.
    results: Arc<[Range<usize>]>,
}

impl Gpu {
    /// Records operations once, to compute them again and again with other arrays: `record` is
    /// called with a batch and with a value for each of the shapes, and what it returns is what
    /// each [call](Function::call) gives. A call costs the thread that makes it about as much as
    /// a [`lerp`](Gpu::lerp): nothing is recorded or checked anew. Calls of equal functions, of
    /// other shapes too, and batches of the same operations are computed together.
    ///
    /// This is `gpu.fn` of the browser; `fn` is a word of Rust's.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use framebatch::{Config, Gpu};
    ///
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let weights = gpu.tensor(&[1.0, -1.0, 2.0, 0.0], &[2, 2])?;
    /// let layer = gpu.function([&[2], &[]], |batch, [x, gain]| {
    ///     let weights = batch.tensor(&weights)?;
    ///     let y = batch.matmul(weights, x)?;
    ///     let y = batch.relu(y)?;
    ///     batch.mul(y, gain)
    /// })?;
    /// let calls = [layer.call([&[3.0, 1.0], &[1.0]]), layer.call([&[1.0, 2.0], &[10.0]])];
    /// let [first, second] = calls; // One submission for both.
    /// assert_eq!(first.await?, [2.0, 6.0]);
    /// assert_eq!(second.await?, [0.0, 20.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// - The results are what `record` returns, and nothing else: [`Batch::keep`] changes nothing.
    /// - Numbers such as a factor of [`Batch::scale`] or a kernel's params are those of the
    ///   recording. One that differs from call to call is a value without dimensions, as `gain`.
    /// - Tensors are read as they are when a call is made, and [`Batch::compute_into`] stores each
    ///   call's value in a tensor. Such a call goes on though it is dropped.
    /// - What `record` uploads goes up with each call.
    ///
    /// # Errors
    ///
    /// The errors of `record`; [`Error::InvalidInput`] where it returns indexes, or neither
    /// returns nor stores anything.
    pub fn function<'a, const N: usize, R: FunctionResults>(
        &self,
        shapes: [&[u32]; N],
        record: impl FnOnce(&mut Batch<'a>, [Value; N]) -> Result<R, Error>,
    ) -> Result<Function<N, R>, Error> {
        let mut batch: Batch<'a> = self.batch();
        batch.progress = Progress::Traced;
        let mut given = Vec::with_capacity(N);
        for (at, dims) in shapes.into_iter().enumerate() {
            let shape = Shape::new(dims)?;
            let entry = batch.input("function", shape, DType::F32, Home::Call);
            batch.uploads.push(Upload::Given(at));
            given.push(batch.push(Ok(entry?)));
        }
        let shapes = shapes
            .map(Shape::new)
            .into_iter()
            .collect::<Result<_, _>>()?;
        let given = given.try_into().expect("a value for each shape");
        let returned = record(&mut batch, given)?;
        Ok(Function {
            gpu: self.clone(),
            recorded: Arc::new(Recorded::new(&batch, shapes, returned.values())?),
            returned: PhantomData,
        })
    }
}

impl Blocking {
    /// [`Gpu::function`]; [`FunctionCall::wait`] blocks until a call is answered.
    ///
    /// ```
    /// use framebatch::{Blocking, Config};
    ///
    /// let gpu = Blocking::open(Config::default())?;
    /// let places = gpu.tensor(&[0.0, 10.0], &[2])?;
    /// let step = gpu.function([&[2]], |batch, [speeds]| {
    ///     let x = batch.tensor(&places)?;
    ///     let moved = batch.add(x, speeds)?;
    ///     batch.compute_into(moved, &places)
    /// })?;
    /// for _ in 0..3 {
    ///     step.call([&[1.0, -2.0]]).wait()?;
    /// }
    /// assert_eq!(gpu.read(&places)?, [3.0, 4.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::function`].
    pub fn function<'a, const N: usize, R: FunctionResults>(
        &self,
        shapes: [&[u32]; N],
        record: impl FnOnce(&mut Batch<'a>, [Value; N]) -> Result<R, Error>,
    ) -> Result<Function<N, R>, Error> {
        self.gpu().function(shapes, record)
    }
}

impl Recorded {
    fn new(batch: &Batch<'_>, shapes: Vec<Shape>, returned: &[Value]) -> Result<Recorded, Error> {
        if returned.is_empty() && batch.stores.is_empty() {
            return Err(invalid(
                "function",
                "it computes nothing; return a value, or store one with `compute_into`",
            ));
        }
        let named = batch.tensors.iter().map(|named| &named.tensor);
        let stored = batch.stores.iter().map(|store| &store.tensor);
        let tensors: Vec<Tensor> = named.chain(stored).cloned().collect();
        let nodes = returned.iter();
        let nodes = nodes.map(|value| batch.floats_operand("function", *value));
        let nodes = nodes.collect::<Result<Vec<NodeId>, Error>>()?;
        // A value that is returned twice is computed and read once.
        let mut places = ResultPlaces::default();
        let mut outputs: Vec<(NodeId, Range<usize>)> = Vec::new();
        let mut results = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let known = outputs.iter().find(|(output, _)| output == node);
            let range = known.map(|(_, range)| range.clone()).unwrap_or_else(|| {
                let range = places.next(batch.chain.node(*node).shape);
                outputs.push((*node, range.clone()));
                range
            });
            results.push(range);
        }
        let read = match &*outputs {
            [] => None,
            outputs => {
                let mut read = Selection::of(batch, &nodes)?;
                for (node, _) in outputs {
                    let own = read.node(*node);
                    read.chain.output(own)?;
                }
                Some(RecordedCall::new(read, &tensors, places.end, Vec::new()))
            }
        };
        let stored = match batch.stores.is_empty() {
            true => None,
            false => {
                let (stored, written) = batch.lay_out_stores()?;
                Some(RecordedCall::new(stored, &tensors, 0, written))
            }
        };
        Ok(Recorded {
            home: batch.gpu.clone(),
            shapes,
            read,
            stored,
            results: results.into(),
        })
    }
}

impl<const N: usize, R: FunctionResults> Function<N, R> {
    /// The same function with calls through another handle of its session: one with a
    /// [`key`](Gpu::keyed), on one [engine](Gpu::on), of another
    /// [priority](Gpu::with_priority), or that of [`Gpu::explain`] and [`Gpu::warmup`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let double = gpu.function([&[3]], |batch, [x]| batch.scale(x, 2.0))?;
    /// gpu.warmup(|gpu| drop(double.through(gpu).call([&[0.0; 3]])))?;
    /// assert_eq!(double.call([&[1.0, 2.0, 3.0]]).wait()?, [2.0, 4.0, 6.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    #[must_use]
    pub fn through(&self, gpu: &Gpu) -> Function<N, R> {
        Function {
            gpu: gpu.clone(),
            recorded: Arc::clone(&self.recorded),
            returned: PhantomData,
        }
    }

    /// Computes the function of these arrays, row by row, of the shapes that it was recorded for.
    /// The call is on its way when this returns.
    ///
    /// Out of the call comes [`Error::InvalidInput`] for an array of another length, and what may
    /// befall any call.
    pub fn call(&self, given: [&[f32]; N]) -> FunctionCall<R> {
        let sent = self.send(&given);
        let (results, stored) = sent.unwrap_or_else(|error| (Call::known(Err(error)), None));
        FunctionCall::new(&self.recorded.results, results, stored)
    }

    /// Makes the call that reads, and the one that stores, with no other call between.
    fn send(&self, given: &[&[f32]; N]) -> Result<(Call<f32>, Option<Call<f32>>), Error> {
        self.check(given)?;
        let Recorded { read, stored, .. } = &*self.recorded;
        let (shared, terms) = (self.gpu.shared(), self.gpu.terms());
        let Some(stored) = stored else {
            let read = read.as_ref().expect("a function computes something");
            let request = read.request(given, self.numbers(read)?);
            return Ok((shared.submit_floats(request, terms, read.floats), None));
        };
        let numbers = self.numbers(stored)?;
        shared.renew(&numbers.written)?;
        let mut requests = Vec::with_capacity(2);
        if let Some(read) = read {
            requests.push((read.request(given, self.numbers(read)?), read.floats));
        }
        requests.push((stored.request(given, numbers), stored.floats));
        let mut calls = shared.submit_together(&requests, terms)?;
        let stored = calls.pop();
        let results = calls.pop().unwrap_or_else(|| Call::known(Ok(Vec::new())));
        Ok((results, stored))
    }

    fn check(&self, given: &[&[f32]; N]) -> Result<(), Error> {
        let shapes = self.recorded.shapes.iter().zip(given).enumerate();
        for (at, (shape, floats)) in shapes {
            if shape.count() as usize != floats.len() {
                return Err(Error::InvalidInput(format!(
                    "function: array {at} has {} floats, but shape {shape} has {}; give as many, \
                     or record another function for other shapes",
                    floats.len(),
                    shape.count()
                )));
            }
        }
        Ok(())
    }

    fn numbers(&self, call: &RecordedCall) -> Result<Numbers, Error> {
        match self.gpu.is_same(&self.recorded.home) {
            true => Ok(call.own_numbers()),
            false => call.numbers_in(self.gpu.shared()),
        }
    }
}
