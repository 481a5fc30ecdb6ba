//! A text's call, which all who ask for an equal text share while it is pending.
//!
//! With several devices the call goes to the device that has the least to do, and to another one
//! if that device fails.

use std::borrow::Cow;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};

use super::load::{Burden, Places, least};
use super::sharing::{SharedFuture, WeakFuture};
use super::{Destination, Embedder, Model};
use crate::embed::Tokens;
use crate::error::{Code, Error};
use crate::graph::shape::Shape;
use crate::native::call::Call;
use crate::native::gpu::Gpu;
use crate::native::platform::{Mutex, MutexGuard, block_on};
use crate::native::request::{Chained, Coverage, Request, Structure, Written};
use crate::native::shared::Purpose;
use crate::native::submission::Terms;
use crate::native::tensor::Tensor;

/// A text being embedded. Dropped before its answer, it is given up, unless
/// somebody else asked for an equal text meanwhile.
#[derive(Clone, Debug)]
#[must_use = "dropping an embedding gives it up"]
pub struct Embedding(pub(super) Result<SharedFuture<Attempt>, Error>);

impl Embedding {
    /// Blocks this thread until the answer is there.
    ///
    /// # Errors
    ///
    /// What went wrong with this text.
    pub fn wait(self) -> Result<Vec<f32>, Error> {
        block_on(self)
    }
}

impl Future for Embedding {
    type Output = Result<Vec<f32>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(call) => Pin::new(call).poll(context),
            Err(error) => Poll::Ready(Err(error.clone())),
        }
    }
}

/// The tokens of a text, or of a pair of texts.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) ids: &'a [u32],
    /// The type of each token; none where all tokens have the first type.
    pub(super) types: &'a [u32],
}

impl<'a> Text<'a> {
    /// A single text.
    pub(super) fn of(ids: &'a [u32]) -> Text<'a> {
        Text { ids, types: &[] }
    }

    /// By what texts are equal. The texts of a model all have types, or none has.
    fn key(self) -> Cow<'a, [u32]> {
        match self.types.is_empty() {
            true => self.ids.into(),
            false => [self.ids, self.types].concat().into(),
        }
    }

    fn tokens(self) -> Tokens {
        let count = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        match self.types.is_empty() {
            true => Tokens::Ids(count),
            false => Tokens::Typed(count),
        }
    }
}

/// Pending texts, by their tokens, in several tables, so that threads seldom wait for each other.
#[derive(Default)]
pub(super) struct Pending([Mutex<Table>; 16]);

type Table = HashMap<Box<[u32]>, WeakFuture<Attempt>>;

/// Entries of a table at which those of texts that nobody waits for are removed first.
const PENDING: usize = 64;

impl Pending {
    fn table(&self, key: &[u32]) -> MutexGuard<'_, Table> {
        let mix = |sum: u32, word: &u32| (sum ^ word).wrapping_mul(0x9E37_79B1);
        let table = key.iter().fold(0, mix) >> 28;
        let table = self.0[table as usize].lock();
        table.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Embedder {
    /// Makes a text's call, or shares a pending one of equal tokens.
    pub(super) fn enter(&self, text: Text<'_>) -> SharedFuture<Attempt> {
        if !self.shares() {
            return SharedFuture::new(self.deal(text));
        }
        let key = text.key();
        let mut pending = self.model.pending.table(&key);
        let known = pending.get(&key[..]).and_then(WeakFuture::upgrade);
        if let Some(call) = known.filter(|call| !call.is_done()) {
            return call;
        }
        if pending.len() >= PENDING && pending.len() == pending.capacity() {
            pending.retain(|_, call| call.upgrade().is_some());
        }
        let attempt = self.deal(text);
        if !attempt.call.is_pending() {
            return SharedFuture::new(attempt); // A call that was refused is not shared: the next one may be taken.
        }
        let attempt = SharedFuture::new(attempt);
        pending.insert(key.into(), attempt.downgrade());
        attempt
    }

    /// Whether equal texts may share an answer. Texts through a handle with terms of its own may
    /// not.
    fn shares(&self) -> bool {
        let is_plain =
            |gpu: &Gpu| gpu.terms() == Terms::default() && gpu.shared().purpose == Purpose::Send;
        match (&self.through, &self.model.replicas[..]) {
            (None, replicas) => replicas.iter().all(|replica| is_plain(&replica.gpu)),
            (Some(gpu), [replica]) => is_plain(gpu) && gpu.is_same(&replica.gpu),
            (Some(_), _) => false,
        }
    }

    /// The one handle that calls may go through, and the place of its session; `None` where there
    /// are several.
    fn single(&self) -> Option<(&Gpu, usize)> {
        match (&self.through, &self.model.replicas[..]) {
            (None, [replica]) => Some((&replica.gpu, 0)),
            (None, _) => None,
            (Some(gpu), replicas) => {
                let at = replicas
                    .iter()
                    .position(|replica| gpu.is_same(&replica.gpu));
                Some((gpu, at.unwrap_or(0)))
            }
        }
    }

    /// A tensor of a text's vector, whose call is on its way.
    pub(super) fn store(&self, ids: &[u32]) -> Result<Tensor, Error> {
        let (gpu, at) = self.single().ok_or_else(|| {
            Error::Unsupported(
                "compute: the embedder has several sessions, and a tensor is of one; choose it by `through`"
                    .into(),
            )
        })?;
        self.model.store(gpu, at, ids)
    }

    fn deal(&self, text: Text<'_>) -> Attempt {
        let model = &self.model;
        if let Some((gpu, at)) = self.single() {
            let call = model.submit(gpu, at, text, Places::ALL);
            return Attempt {
                call,
                route: None,
                _model: Arc::clone(model),
            };
        }
        let mut route = Route {
            model: Arc::clone(model),
            ids: text.ids.into(),
            types: text.types.into(),
            at: 0,
            tried: Places::default(),
        };
        let known = Err(Error::Fatal("an embedder has no device".into()));
        let call = route.go().unwrap_or_else(|| Call::known(known));
        Attempt {
            call,
            route: Some(route),
            _model: Arc::clone(model),
        }
    }
}

/// A text's call on one device after another, until one answers it.
pub(super) struct Attempt {
    call: Call<f32>,
    /// The devices that the text may go to; `None` where there is one.
    route: Option<Route>,
    /// Keeps the weights, from which the model is filled again after a loss.
    _model: Arc<Model>,
}

impl Future for Attempt {
    type Output = Result<Vec<f32>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let answer = ready!(Pin::new(&mut self.call).poll(context));
            let Err(error) = &answer else {
                return Poll::Ready(answer);
            };
            let route = self.route.as_mut().filter(|_| is_of_the_device(error));
            let Some(call) = route.and_then(Route::go_on) else {
                return Poll::Ready(answer);
            };
            self.call = call;
        }
    }
}

/// Whether the text may succeed on another device.
fn is_of_the_device(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::DeviceLost
            | Code::OutOfMemory
            | Code::Shader
            | Code::QueueFull
            | Code::Disposed
            | Code::Fatal
    )
}

/// The devices that a text was sent to, and those that it may still go to.
struct Route {
    model: Arc<Model>,
    ids: Box<[u32]>,
    types: Box<[u32]>,
    at: usize,
    tried: Places,
}

impl Route {
    /// Sends the text to a device that was not tried, and to the next one where that refuses it.
    fn go(&mut self) -> Option<Call<f32>> {
        let mut last = None;
        while let Some(at) = least(&self.model.loads, self.tried) {
            if self.tried != Places::default() {
                let left = &self.model.loads[self.at];
                left.handed_over.fetch_add(1, Ordering::Relaxed);
            }
            self.at = at;
            self.tried = self.tried.with(at);
            let gpu = &self.model.replicas[at].gpu;
            let text = Text {
                ids: &self.ids,
                types: &self.types,
            };
            let call = self.model.submit(gpu, at, text, self.tried);
            if !call.refusal().is_some_and(is_of_the_device) {
                return Some(call);
            }
            last = Some(call);
        }
        last
    }

    /// Sends a text on that a device failed: at once, whatever the policy, because the text was
    /// sent before.
    fn go_on(&mut self) -> Option<Call<f32>> {
        let call = self.go()?;
        self.model.replicas[self.at].gpu.shared().flush_queued();
        Some(call)
    }
}

impl Model {
    /// A call through this handle, whose session has replica number `at`.
    fn submit(&self, gpu: &Gpu, at: usize, text: Text<'_>, tried: Places) -> Call<f32> {
        let tensors = match self.weights(gpu, at) {
            Ok(tensors) => tensors,
            Err(error) => return Call::known(Err(error)),
        };
        let request = self.request(text, Destination::Host, tensors);
        let burden = Burden::new(&self.loads, at, text.ids.len() as u64, tried);
        let floats = self.encoder.config.dimensions() as usize;
        gpu.shared()
            .submit_text(request, gpu.terms(), floats, burden)
    }

    /// The same of a call whose vector a new tensor takes.
    fn store(&self, gpu: &Gpu, at: usize, ids: &[u32]) -> Result<Tensor, Error> {
        let shared = gpu.shared();
        let mut tensors = self.weights(gpu, at)?;
        let shape = Shape::new(&[self.encoder.config.dimensions()])?;
        let tensor = shared.make_room(shape, tensors.clone())?;
        tensors.push(tensor.number());
        let mut request = self.request(Text::of(ids), Destination::Tensor, tensors);
        request.chained.offset = Some(0);
        request.chained.written.push(Written {
            number: tensor.number(),
            words: shape.count(),
            coverage: Coverage::Replaced,
        });
        let burden = Burden::new(&self.loads, at, ids.len() as u64, Places::ALL);
        // Whoever reads the tensor hears how the call went.
        drop(shared.submit_stored_text(&request, gpu.terms(), burden)?);
        Ok(tensor)
    }

    /// The weights' numbers in the session of a handle.
    fn weights(&self, gpu: &Gpu, at: usize) -> Result<Vec<u32>, Error> {
        let replica = &self.replicas[at];
        if gpu.is_same(&replica.gpu) {
            return Ok(replica.numbers.clone());
        }
        let tensors = replica.tensors.iter();
        tensors.map(|tensor| gpu.shared().admit(tensor)).collect()
    }

    fn request<'a>(
        &'a self,
        text: Text<'a>,
        destination: Destination,
        tensors: Vec<u32>,
    ) -> Request<'a> {
        let operands = [
            Some(text.ids),
            Some(text.types).filter(|types| !types.is_empty()),
        ];
        let operands = operands.into_iter().flatten().map(bytemuck::cast_slice);
        let numbers = bytemuck::cast_slice(&self.numbers);
        let operands = operands.chain([numbers]).collect();
        Request {
            structure: Structure::Embedding(Arc::clone(&self.encoder), text.tokens(), destination),
            rows: text.ids.len(),
            scalar: 0,
            operands: Default::default(),
            chained: Chained {
                operands,
                tensors,
                ..Chained::default()
            },
        }
    }
}
