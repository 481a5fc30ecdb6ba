//! What handles, calls and the worker share: the session behind one lock.
//!
//! Callers copy their operands into the session here. Nobody waits for a GPU under
//! the lock, but the processor computes a batch under it: it reads operands and
//! tensors where they lie. Only the worker sends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, TryLockError, TryLockResult};
use std::task::{Poll, Waker};

use futures_channel::oneshot;

use super::call::{Answer, Call};
use super::clips::Entry;
use super::embedder::Burden;
use super::index::Indexes;
use super::outside::{AnyDevice, AtomicU64, Clock, Condvar, Mutex, MutexGuard};
use super::recent::Recent;
use super::request::{Request, Structure};
use super::store::Clips;
use super::tensor::Residents;
use super::watch::Watchers;
use super::words::Spare;
use crate::batch::{BatchConfig, Due, Overflow, Ticket};
use crate::device::{Cpu, Engine};
use crate::error::Error;
use crate::plan::RecipeId;
use crate::session::{Kernels, Model, Session, Submission};
use crate::tensor::WORD;

/// A session, and who waits for it.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Wakes the worker.
    pub(super) work: Condvar,
    /// Wakes threads that wait for room in the queue.
    room: Condvar,
    pub(super) clock: Clock,
    /// Calls accepted so far, to be watched without the lock.
    pub(super) arrivals: AtomicU64,
    /// Whether the device is what it was at first: neither lost nor closed, nor the
    /// processor in its place.
    sound: Arc<AtomicBool>,
    overflow: Overflow,
    pub(super) purpose: Purpose,
}

/// What a handle says of its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Terms {
    /// In a full queue they may take each other's place.
    pub(super) key: Option<u32>,
    /// Where they run.
    pub(super) engine: Option<Engine>,
}

/// What becomes of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A worker sends them.
    Send,
    /// They are planned, and refused as soon as they are.
    Explain,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) session: Session<AnyDevice>,
    pub(super) answers: HashMap<Ticket, Answer>,
    recipes: Recent<Structure, RecipeId>,
    pub(super) residents: Residents,
    pub(super) watchers: Watchers,
    pub(super) clips: Clips,
    pub(super) indexes: Indexes,
    /// Memory for results.
    pub(super) spare: Spare,
    /// Tasks that wait for room in the queue.
    waiting: Vec<Waker>,
    /// Why no more calls are taken.
    pub(super) closed: Option<Error>,
    /// Whether the worker sleeps. Waking a thread that is awake still costs a
    /// system call.
    pub(super) asleep: bool,
}

impl Shared {
    pub(super) fn new(
        device: AnyDevice,
        routing: Option<Model>,
        batch: BatchConfig,
        purpose: Purpose,
    ) -> Result<Self, Error> {
        let overflow = batch.overflow;
        // The worker is nobody's main thread: it may take its time.
        let routing = routing.map(|model| (model, f64::INFINITY));
        let processor = AnyDevice::Cpu(Cpu::default());
        let mut session = Session::new(device, batch)?.beside(processor, routing);
        if purpose == Purpose::Explain {
            session.begin_explain();
        }
        Ok(Shared {
            state: Mutex::new(State {
                session,
                answers: HashMap::new(),
                recipes: Recent::default(),
                residents: Residents::default(),
                watchers: Watchers::default(),
                clips: Clips::default(),
                indexes: Indexes::default(),
                spare: Spare::default(),
                waiting: Vec::new(),
                closed: None,
                asleep: false,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            clock: Clock::start(),
            arrivals: AtomicU64::new(0),
            sound: Arc::new(AtomicBool::new(true)),
            overflow,
            purpose,
        })
    }

    /// A panic elsewhere leaves the state closed, not unreadable.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a session that is not closed.
    pub(super) fn open(&self) -> Result<MutexGuard<'_, State>, Error> {
        check_open(self.lock())
    }

    /// The same, if nobody has it now.
    pub(super) fn try_open(&self) -> Result<Option<MutexGuard<'_, State>>, Error> {
        free(self.state.try_lock()).map(check_open).transpose()
    }

    /// Takes a call. Its answer comes through the call, a refusal too.
    pub(super) fn submit<T>(
        self: &Arc<Self>,
        request: Result<Request<'_>, Error>,
        terms: Terms,
    ) -> Call<T>
    where
        Answer: From<oneshot::Sender<Result<Vec<T>, Error>>>,
    {
        self.submit_to(request, terms, Answer::from)
    }

    /// Takes a call whose answer is the first floats of its result.
    pub(super) fn submit_floats(
        self: &Arc<Self>,
        request: Request<'_>,
        terms: Terms,
        floats: usize,
    ) -> Call<f32> {
        self.submit_to(Ok(request), terms, |sender| Answer::Floats(sender, floats))
    }

    /// Takes a text's call, whose answer is the first floats of its result.
    pub(super) fn submit_text(
        self: &Arc<Self>,
        request: Request<'_>,
        terms: Terms,
        floats: usize,
        burden: Burden,
    ) -> Call<f32> {
        let answer = |sender| Answer::Embedded(sender, floats, burden);
        self.submit_to(Ok(request), terms, answer)
    }

    /// Takes a call that samples clips, which keep their places until it is
    /// settled.
    pub(super) fn submit_sampling(
        self: &Arc<Self>,
        request: &Request<'_>,
        terms: Terms,
        clips: Vec<Arc<Entry>>,
    ) -> Call<f32> {
        let (sender, receiver) = oneshot::channel();
        match self.enqueue(request, terms, Answer::Sampled(sender, clips)) {
            Ok(Some(ticket)) => Call::pending(Arc::clone(self), ticket, receiver),
            Ok(None) => Call::known(Ok(Vec::new())),
            Err(error) => Call::known(Err(error)),
        }
    }

    fn submit_to<T>(
        self: &Arc<Self>,
        request: Result<Request<'_>, Error>,
        terms: Terms,
        answer: impl FnOnce(oneshot::Sender<Result<Vec<T>, Error>>) -> Answer,
    ) -> Call<T> {
        let (sender, receiver) = oneshot::channel();
        match request.and_then(|request| self.enqueue(&request, terms, answer(sender))) {
            Ok(Some(ticket)) => Call::pending(Arc::clone(self), ticket, receiver),
            Ok(None) => Call::known(Ok(Vec::new())),
            Err(error) => Call::known(Err(error)),
        }
    }

    /// The call's ticket; `None` for one without items, whose answer is known.
    fn enqueue(
        &self,
        request: &Request<'_>,
        terms: Terms,
        answer: Answer,
    ) -> Result<Option<Ticket>, Error> {
        let mut state = self.open()?;
        for tensor in &request.chained.tensors {
            state.residents.check(*tensor)?;
        }
        if request.rows == 0 {
            return Ok(None);
        }
        let submission = Submission {
            recipe: state.recipe(&request.structure)?,
            rows: rows(request)?,
            scalar: request.scalar,
            key: terms.key,
        };
        state.copy(request)?;
        let now = self.clock.now();
        let accepted = match state.session.submit_to(terms.engine, &submission, now) {
            Ok(accepted) => accepted,
            Err(error) => {
                // A call that finds the queue full has what fills it sent.
                self.wake_worker(state);
                return Err(error);
            }
        };
        if self.purpose == Purpose::Explain {
            return Err(Error::InvalidInput(
                "a call made in explain is planned and never sent; ask for its value outside"
                    .into(),
            ));
        }
        state.answers.insert(accepted.ticket, answer);
        self.arrivals.fetch_add(1, Ordering::Relaxed);
        let superseded = accepted
            .superseded
            .and_then(|older| state.answers.remove(&older));
        self.wake_worker(state);
        if let Some(older) = superseded {
            older.send(Err(Error::Superseded));
        }
        Ok(Some(accepted.ticket))
    }

    /// Has kernels compiled; the answer has no elements.
    pub(super) fn warm_up(self: &Arc<Self>, kernels: Kernels) -> Call<f32> {
        let mut state = match self.open() {
            Ok(state) => state,
            Err(error) => return Call::known(Err(error)),
        };
        let (sender, receiver) = oneshot::channel();
        let ticket = state.session.warm_up(kernels);
        state.answers.insert(ticket, Answer::from(sender));
        self.wake_worker(state);
        Call::pending(Arc::clone(self), ticket, receiver)
    }

    /// Sends what is queued, as soon as the worker gets to it.
    pub(super) fn flush(&self) {
        let mut state = self.lock();
        state.session.flush();
        self.wake_worker(state);
    }

    /// Sends what is queued, if anything is.
    pub(super) fn flush_queued(&self) {
        let mut state = self.lock();
        if !state.session.is_open_empty() {
            state.session.flush();
            self.wake_worker(state);
        }
    }

    pub(super) fn abort(&self, ticket: Ticket) {
        let mut state = self.lock();
        // Removed under the lock, dropped outside it: a waker may be inside.
        let answer = state.answers.remove(&ticket);
        if answer.is_some() {
            state.session.abort(ticket);
            self.tell_waiting(state);
        }
    }

    /// Rejects what is pending and takes no more calls. The first reason stays.
    pub(super) fn close(&self, reason: &Error) {
        let mut state = self.lock();
        if state.closed.is_some() {
            return;
        }
        state.closed = Some(reason.clone());
        self.sound.store(false, Ordering::Relaxed);
        let mut answers: Vec<(Ticket, Answer)> = state.answers.drain().collect();
        state.session.dispose();
        let residents = std::mem::take(&mut state.residents);
        let spare = std::mem::take(&mut state.spare);
        self.work.notify_all();
        self.tell_waiting(state);
        // Outside the lock: it may be much, and hold other sessions' tensors.
        drop((residents, spare));
        answers.sort_unstable_by_key(|(ticket, _)| *ticket);
        for (_, answer) in answers {
            answer.send(Err(reason.clone()));
        }
    }

    /// Whether the device is what it was at first, to be looked at at any time.
    pub(super) fn sound(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.sound)
    }

    pub(super) fn is_sound(&self) -> bool {
        self.sound.load(Ordering::Relaxed)
    }

    /// The device is what it was at first again.
    pub(super) fn recovered(&self) {
        self.sound.store(true, Ordering::Relaxed);
    }

    /// The device is not what it was at first. Texts that another session can embed
    /// are told that it is lost, so that they go there.
    pub(super) fn hand_over(&self) {
        self.sound.store(false, Ordering::Relaxed);
        let mut state = self.lock();
        let texts = state.answers.iter();
        let texts = texts.filter(|(_, answer)| answer.may_move());
        let mut tickets: Vec<Ticket> = texts.map(|(ticket, _)| *ticket).collect();
        tickets.sort_unstable();
        let mut texts = Vec::with_capacity(tickets.len());
        for ticket in tickets {
            state.session.abort(ticket);
            texts.extend(state.answers.remove(&ticket));
        }
        self.tell_waiting(state);
        for text in texts {
            let why = "other devices of its embedder take the text";
            text.send(Err(Error::DeviceLost(why.into())));
        }
    }

    /// Whether the queue has room; if not, `waker` is told when it may have.
    pub(super) fn poll_ready(&self, waker: &Waker) -> Poll<Result<(), Error>> {
        let mut state = self.lock();
        if let Some(reason) = &state.closed {
            return Poll::Ready(Err(reason.clone()));
        }
        if !state.is_full() {
            return Poll::Ready(Ok(()));
        }
        state.waiting.push(waker.clone());
        Poll::Pending
    }

    /// Blocks this thread while the queue is full and its policy is to wait.
    pub(super) fn wait_for_room(&self) {
        if self.overflow != Overflow::Wait {
            return;
        }
        let mut state = self.lock();
        while state.closed.is_none() && state.is_full() {
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells everyone who waits for room that there may be some. All of them:
    /// one of two woken tasks may never be polled again.
    pub(super) fn tell_waiting(&self, mut state: MutexGuard<'_, State>) {
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.room.notify_all();
        for waker in waiting {
            waker.wake();
        }
    }

    fn wake_worker(&self, state: MutexGuard<'_, State>) {
        let wanted =
            state.asleep && (state.is_full() || state.session.due(self.clock.now()) != Due::Idle);
        drop(state);
        if wanted {
            self.work.notify_one();
        }
    }
}

impl State {
    /// Whether producers should wait. A full queue is sent whatever the policy.
    pub(super) fn is_full(&self) -> bool {
        self.session.desired_size() <= 0
    }

    /// Keeps a result's memory for others, if the worker is going to free it: once no
    /// batch follows the last one. Or hands it back.
    pub(super) fn keep(&mut self, result: Vec<f32>) -> Option<Vec<f32>> {
        match self.closed.is_none() && self.session.may_trim() {
            true => self.spare.give(result),
            false => Some(result),
        }
    }

    fn recipe(&mut self, structure: &Structure) -> Result<RecipeId, Error> {
        if let Some(id) = self.recipes.get(structure) {
            return Ok(id);
        }
        let id = match structure {
            Structure::Chain(chain) => self.session.chain(chain.clone()),
            Structure::Embedding(encoder, tokens) => self.session.chain(encoder.chain(*tokens)?),
            Structure::Sampling(sampling) => self.session.sampling(*sampling),
            Structure::Searching(searching) => self.session.searching(*searching),
            _ => self.session.recipe(&structure.graph()?)?,
        };
        let dropped = self.recipes.add(structure.clone(), id);
        self.session.forget(dropped);
        Ok(id)
    }

    /// Copies the operands into the session, each from a multiple of 16 bytes.
    fn copy(&mut self, request: &Request<'_>) -> Result<(), Error> {
        let need: usize = request
            .operands()
            .map(|operand| operand.len().next_multiple_of(16))
            .sum();
        let room: &mut [u8] =
            bytemuck::cast_slice_mut(self.session.room(need as u64 / u64::from(WORD))?);
        let mut at = 0;
        for operand in request.operands() {
            room[at..at + operand.len()].copy_from_slice(operand);
            at += operand.len().next_multiple_of(16);
        }
        Ok(())
    }
}

fn check_open(state: MutexGuard<'_, State>) -> Result<MutexGuard<'_, State>, Error> {
    match &state.closed {
        Some(reason) => Err(reason.clone()),
        None => Ok(state),
    }
}

/// What nobody else has locked; a panic elsewhere changes nothing here either.
pub(super) fn free<G>(lock: TryLockResult<G>) -> Option<G> {
    match lock {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn rows(request: &Request<'_>) -> Result<u32, Error> {
    if let Structure::Chain(_) = request.structure {
        return Ok(0); // It knows its rows, and costs nothing.
    }
    u32::try_from(request.rows).map_err(|_| Error::TooLarge {
        what: "a call's operands",
        need: request.operands().map(|o| o.len() as u64).sum(),
        limit: u32::MAX.into(),
    })
}
