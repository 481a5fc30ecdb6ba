//! The command builder: operations recorded one by one and sent as one call.
//!
//! A batch holds the recorded operations and, once it was executed, their results. Nothing is
//! computed or decided here: `graph::chain` says which shapes fit, and the call is queued, merged
//! and answered like any other.

mod attention;
mod computation;
mod elements;
mod function;
mod function_call;
mod kernels;
mod moves;
mod record;
mod recorded_call;
mod rows;
mod selection;
mod simulation;
mod single;
mod stores;
mod verify;

pub use crate::graph::chain::Axes;
pub use attention::Attention;
pub use function::Function;
pub use function_call::{FunctionCall, FunctionResults};
pub use moves::Part;
pub use verify::{Verification, VerifiedElement, VerifyCase, VerifyData, VerifyValue};

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::AnyBitPattern;

use self::record::Upload;
use self::selection::Selection;
use self::stores::RecordedStore;
use super::blocking::Blocking;
use super::call::Call;
use super::gpu::Gpu;
use super::request::{Chained, Request, Structure};
use super::tensor::Tensor;
use crate::error::Error;
use crate::graph::NodeId;
use crate::graph::chain::Chain;
use crate::graph::shape::Shape;
use crate::tensor::{DType, aligned};

/// Operations on whole arrays of floats, recorded one by one and executed
/// together: one upload, as few kernels as they fuse to, one read-back.
///
/// Each method names its operands by the [`Value`]s of earlier ones and checks
/// their shapes at once; shapes broadcast as in NumPy. Nothing is computed
/// before [`execute`](Batch::execute), which sends the whole as one call:
/// batches of equal structure that wait at the same time are computed together,
/// whatever their lengths and factors.
///
/// The results are those of the operations that no other one uses, and of what
/// [`keep`](Batch::keep) names; everything else never leaves the device. After
/// `execute` each of them can be read any number of times.
///
/// Uploads are borrowed, or owned where a `Vec` is given. How exact each
/// operation is, [`kernel::generated`](crate::kernel::generated) says.
///
/// ```
/// # pollster::block_on(async {
/// use framebatch::{Config, Gpu};
///
/// let gpu = Gpu::open(Config::default()).await?;
/// let data = [-1.0, 2.0, 3.0];
///
/// let mut batch = gpu.batch();
/// let x = batch.upload(&data);
/// let y = batch.relu(x)?;
/// let y = batch.scale(y, 2.0)?;
/// let z = batch.add(y, x)?;
/// batch.execute().await?;
/// assert_eq!(batch.read(z).await?, [-1.0, 6.0, 9.0]);
/// # Ok::<(), framebatch::Error>(())
/// # }).unwrap();
/// ```
///
/// [`Blocking::batch`] gives one whose `execute` and `read` block.
#[derive(Debug)]
pub struct Batch<'a, G = Gpu> {
    gpu: Gpu,
    number: u64,
    chain: Chain,
    /// The entry of each [`Value`], or why the value could not be recorded.
    values: Vec<Result<Entry, Error>>,
    uploads: Vec<Upload<'a>>,
    /// The tensors that were named.
    tensors: Vec<NamedTensor>,
    constants: Vec<f32>,
    operations: usize,
    /// What is stored in tensors.
    stores: Vec<RecordedStore>,
    progress: Progress,
    handle: PhantomData<fn() -> G>,
}

/// What one method of a [`Batch`] gave: an upload, a tensor, or the result of
/// an operation. It means something to its own batch only, and is nothing but a number
/// there: copy it freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    batch: u64,
    place: usize,
}

/// A tensor that a batch reads.
#[derive(Debug)]
struct NamedTensor {
    /// Keeps the tensor until the batch is sent.
    tensor: Tensor,
    value: Value,
    /// The tensor's number in the session.
    number: u32,
}

/// How far a batch has come.
#[derive(Debug)]
enum Progress {
    /// Operations can be recorded, and the batch can be executed.
    Open,
    /// Operations of a function can be recorded, and there is nothing to execute them with.
    Traced,
    /// The stores of the batch were sent, and so the batch is not sent again.
    Stored,
    /// Executed: all results, end to end.
    Done(Vec<f32>),
}

/// What an execution waits for.
#[derive(Debug)]
struct Execution {
    results: Call<f32>,
    /// The call that stores, in a batch that does.
    stored: Option<Call<f32>>,
}

/// A value of a batch.
#[derive(Clone, Debug)]
struct Entry {
    node: NodeId,
    shape: Shape,
    is_operation: bool,
    is_used: bool,
    is_kept: bool,
    is_stored: bool,
    /// Where the value's floats lie among the results.
    result: Option<Range<usize>>,
}

impl Entry {
    /// Whether it is among the results.
    fn is_result(&self) -> bool {
        self.is_kept || self.is_operation && !self.is_used && !self.is_stored
    }
}

impl<G> Batch<'_, G> {
    pub(super) fn new(gpu: Gpu) -> Self {
        // Values of other batches, also of other sessions, must be recognized.
        static BATCHES: AtomicU64 = AtomicU64::new(0);
        Batch {
            gpu,
            number: BATCHES.fetch_add(1, Ordering::Relaxed),
            chain: Chain::default(),
            values: Vec::new(),
            uploads: Vec::new(),
            tensors: Vec::new(),
            constants: Vec::new(),
            operations: 0,
            stores: Vec::new(),
            progress: Progress::Open,
            handle: PhantomData,
        }
    }

    pub(super) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Sends what was recorded, as one call; the floats of all results.
    fn submit(&mut self) -> Call<f32> {
        match self.lay_out() {
            Ok((chain, floats)) => {
                let (request, terms) = (self.request(chain, floats), self.gpu.terms());
                self.gpu.shared().submit_floats(request, terms, floats)
            }
            Err(error) => Call::known(Err(error)),
        }
    }

    /// Sends what was recorded. Results are read before anything is stored.
    fn send(&mut self) -> Execution {
        if self.stores.is_empty() {
            return Execution {
                results: self.submit(),
                stored: None,
            };
        }
        match self.submit_stores() {
            Ok(execution) => {
                self.progress = Progress::Stored;
                execution
            }
            Err(error) => Execution {
                results: Call::known(Err(error)),
                stored: None,
            },
        }
    }

    /// Sends a call that reads and one that stores, with no other call between.
    fn submit_stores(&mut self) -> Result<Execution, Error> {
        let (results, floats) = match self.is_read() {
            true => self.lay_out()?,
            false => {
                self.check_executable()?;
                (Chain::default(), 0)
            }
        };
        let mut read = Selection::of(self, results.outputs())?;
        let read = (read.read(results.outputs(), floats)?, floats);
        let (stored, written) = self.lay_out_stores()?;
        let shared = self.gpu.shared();
        shared.renew(&written)?;
        let calls = [read, (stored.store(written), 0)];
        let mut calls = shared.submit_together(&calls, self.gpu.terms())?;
        let stored = calls.pop();
        let results = calls.pop().expect("two calls");
        Ok(Execution { results, stored })
    }

    /// Sends a call that stores, and reads nothing.
    fn submit_unread(&mut self) -> Result<Call<f32>, Error> {
        let (stored, written) = self.lay_out_stores()?;
        let shared = self.gpu.shared();
        shared.renew(&written)?;
        let call = [(stored.store(written), 0)];
        let mut calls = shared.submit_together(&call, self.gpu.terms())?;
        Ok(calls.pop().expect("one call"))
    }

    /// Whether some value is a result.
    fn is_read(&self) -> bool {
        self.values.iter().flatten().any(Entry::is_result)
    }

    /// The chain with its results, and how many floats they are end to end.
    fn lay_out(&mut self) -> Result<(Chain, usize), Error> {
        self.check_executable()?;
        let mut chain = self.chain.clone();
        let mut places = ResultPlaces::default();
        for entry in self.values.iter_mut().flatten() {
            entry.result = None;
            if entry.is_result() {
                chain.output(entry.node)?;
                entry.result = Some(places.next(entry.shape));
            }
        }
        if chain.outputs().is_empty() {
            return Err(invalid(
                "execute",
                "nothing was asked for; apply an operation, or keep or compute a value",
            ));
        }
        Ok((chain, places.end))
    }

    fn request(&self, chain: Chain, floats: usize) -> Request<'_> {
        let uploads = self.uploads.iter().map(|upload| upload.bytes(&[]));
        let constants = bytemuck::cast_slice(&self.constants);
        Request {
            structure: Structure::Chain(chain),
            // The answer of a call without elements is known.
            rows: usize::from(floats > 0),
            scalar: 0,
            operands: Default::default(),
            chained: Chained {
                operands: uploads.chain([constants]).collect(),
                tensors: self.tensors.iter().map(|named| named.number).collect(),
                ..Chained::default()
            },
        }
    }

    fn check_executable(&self) -> Result<(), Error> {
        match self.progress {
            Progress::Traced => Err(traced("execute")),
            _ => self.check_open("execute"),
        }
    }

    /// Takes what came of an execution.
    fn finish(
        &mut self,
        results: Result<Vec<f32>, Error>,
        stored: Result<(), Error>,
    ) -> Result<(), Error> {
        let results = results?;
        stored?;
        self.progress = Progress::Done(results);
        self.uploads = Vec::new();
        self.tensors = Vec::new();
        self.stores = Vec::new();
        Ok(())
    }

    fn floats(&self, value: Value) -> Result<Vec<f32>, Error> {
        self.result("read", value, DType::F32)
    }

    fn indexes(&self, value: Value) -> Result<Vec<u32>, Error> {
        self.result("read_indexes", value, DType::U32)
    }

    fn integers(&self, value: Value) -> Result<Vec<i32>, Error> {
        self.result("read_i32", value, DType::I32)
    }

    /// A copy of a result, which must hold elements of this type.
    fn result<T: AnyBitPattern>(
        &self,
        name: &str,
        value: Value,
        dtype: DType,
    ) -> Result<Vec<T>, Error> {
        let entry = self.entry(name, value)?;
        let results = match &self.progress {
            Progress::Done(results) => results,
            Progress::Open => return Err(invalid(name, "execute the batch first")),
            Progress::Traced => return Err(traced(name)),
            Progress::Stored => {
                return Err(invalid(
                    name,
                    "the execution did not end well; make another batch",
                ));
            }
        };
        let own = self.chain.node(entry.node).dtype;
        if own != dtype {
            let problem = match own {
                DType::I32 => "this value holds whole numbers with a sign; call `read_i32`",
                DType::U32 => "this value holds indexes; call `read_indexes`",
                _ => "this value holds floats; call `read`",
            };
            return Err(invalid(name, problem));
        }
        match &entry.result {
            Some(range) => Ok(bytemuck::cast_slice(&results[range.clone()]).to_vec()),
            None => Err(invalid(
                name,
                "this value was not kept, because another operation uses it or nothing computed it; call `keep` with it before `execute`",
            )),
        }
    }
}

impl<'a> Batch<'a> {
    /// Computes everything that was recorded. The call is on its way when this
    /// returns; awaiting only waits. Dropped before it is done, it is given up; but what a
    /// batch [stores](Batch::compute) is stored all the same.
    ///
    /// What fails can be executed again, and what was refused is still recorded. A batch that
    /// stores is executed again only where it was refused, so that nothing is stored twice.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a batch that computes nothing or was
    /// executed before, [`Error::TooLarge`], and what may befall any call:
    /// [`Error::QueueFull`], [`Error::DeviceLost`], [`Error::OutOfMemory`],
    /// [`Error::Disposed`].
    #[must_use = "dropping an execution gives it up"]
    pub fn execute(&mut self) -> impl Future<Output = Result<(), Error>> + Send + use<'_, 'a> {
        let Execution { results, stored } = self.send();
        async move {
            let results = results.await;
            let stored = match stored {
                Some(stored) => stored.await.map(drop),
                None => Ok(()),
            };
            self.finish(results, stored)
        }
    }

    /// The floats of a result, row-major; see [`Batch::shape`].
    ///
    /// # Errors
    ///
    /// Out of the call comes [`Error::InvalidInput`] for a value of another
    /// batch, before `execute`, and for one that was not kept or holds indexes.
    pub fn read(&self, value: Value) -> Call<f32> {
        Call::known(self.floats(value))
    }

    /// The indexes of a result such as that of [`Batch::argmax`], which has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::read`], and for floats.
    pub fn read_indexes(&self, value: Value) -> Call<u32> {
        Call::known(self.indexes(value))
    }

    /// The whole numbers with a sign of a result; [`Batch::upload_i32`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::read`], and for values of other types.
    pub fn read_i32(&self, value: Value) -> Call<i32> {
        Call::known(self.integers(value))
    }
}

impl Batch<'_, Blocking> {
    /// Computes everything that was recorded, and waits for it. Where the
    /// queue is full and its policy is to wait, it waits for room first.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::<Gpu>::execute`](Batch::execute).
    pub fn execute(&mut self) -> Result<(), Error> {
        self.gpu.shared().wait_for_room();
        let Execution { results, stored } = self.send();
        let results = results.wait();
        let stored = stored.map_or(Ok(()), |stored| stored.wait().map(drop));
        self.finish(results, stored)
    }

    /// The floats of a result, row-major; see [`Batch::shape`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a value of another batch, before `execute`,
    /// and for one that was not kept or holds indexes.
    pub fn read(&self, value: Value) -> Result<Vec<f32>, Error> {
        self.floats(value)
    }

    /// The indexes of a result such as that of [`Batch::argmax`], which has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::read`], and for floats.
    pub fn read_indexes(&self, value: Value) -> Result<Vec<u32>, Error> {
        self.indexes(value)
    }

    /// The whole numbers with a sign of a result; [`Batch::upload_i32`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::read`], and for values of other types.
    pub fn read_i32(&self, value: Value) -> Result<Vec<i32>, Error> {
        self.integers(value)
    }
}

/// Where the results of a call lie, end to end.
#[derive(Debug, Default)]
struct ResultPlaces {
    next: usize,
    end: usize,
}

impl ResultPlaces {
    /// The floats of the next result. A device leaves each result at a multiple of 16 bytes.
    fn next(&mut self, shape: Shape) -> Range<usize> {
        let start = self.next;
        self.end = start + shape.count() as usize;
        self.next += aligned(shape.count()) as usize;
        start..self.end
    }
}

/// The error of whatever needs the values of a function's arguments.
fn traced(name: &str) -> Error {
    let problem = "what a function is given has no values while it is recorded; record with it, \
                   and return what is recorded";
    invalid(name, problem)
}

fn invalid(name: &str, problem: &str) -> Error {
    Error::InvalidInput(format!("{name}: {problem}"))
}
