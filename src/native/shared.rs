//! What handles, calls and the worker share: the session behind one lock.
//!
//! Callers copy their operands into the session here. Nobody waits for a GPU under
//! the lock, but the processor computes a batch under it: it reads operands and
//! tensors where they lie. Only the worker sends.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, TryLockError, TryLockResult};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_channel::oneshot;

use super::backpressure::{Waiter, Waiters};
use super::call::{Answer, Call};
use super::compiles::Compiles;
use super::config::Config;
use super::embedder::Burden;
use super::index::Indexes;
use super::listeners::Watchers;
use super::lru::Recent;
use super::platform::{self, AnyDevice, AtomicU64, Clock, Condvar, Mutex, MutexGuard, Task};
use super::recovery::PAUSES;
use super::request::{Request, Structure};
use super::result_buffer::Spare;
use super::store::Clips;
use super::tensor::Residents;
use crate::batch::{Due, Overflow, Ticket};
use crate::device::{Cpu, Device, Engine};
use crate::driver::{Driver, DriverConfig};
use crate::error::Error;
use crate::plan::RecipeId;
use crate::session::{Kernels, Model, Routing, Session, Submission};
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
    /// The longest that the device may owe an answer.
    pub(super) stall: Duration,
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
    pub(super) driver: Driver<AnyDevice>,
    pub(super) answers: HashMap<Ticket, Answer>,
    recipes: Recent<Structure, RecipeId>,
    pub(super) residents: Residents,
    pub(super) watchers: Watchers,
    pub(super) clips: Clips,
    pub(super) indexes: Indexes,
    /// Memory for results.
    pub(super) spare: Spare,
    /// Tasks that wait for room in the queue.
    pub(super) waiting: Waiters,
    pub(super) compiles: Compiles,
    /// Devices of before that are being freed.
    pub(super) freeing: Vec<Task>,
    /// Why no more calls are taken.
    pub(super) closed: Option<Error>,
    /// Whether a thread panicked with the state locked and left it half changed.
    is_broken: bool,
    /// Whether the worker sleeps. Waking a thread that is awake still costs a
    /// system call.
    pub(super) asleep: bool,
}

impl Shared {
    pub(super) fn new(
        device: AnyDevice,
        routing: Option<Model>,
        config: &Config,
        purpose: Purpose,
    ) -> Result<Self, Error> {
        let batch = config.batch.clone();
        let overflow = batch.overflow;
        let routing = routing.map(Routing::from);
        let processor = AnyDevice::Cpu(Cpu::default());
        let mut session = Session::new(device, batch)?.with_companion(processor, routing);
        if purpose == Purpose::Explain {
            session.begin_explain();
        }
        let driving = DriverConfig {
            stall_ms: config.stall_ms,
            pauses: &PAUSES,
            processor: || AnyDevice::Cpu(Cpu::default()),
        };
        Ok(Shared {
            state: Mutex::new(State {
                driver: Driver::new(session, driving),
                answers: HashMap::new(),
                recipes: Recent::default(),
                residents: Residents::default(),
                watchers: Watchers::default(),
                clips: Clips::default(),
                indexes: Indexes::default(),
                spare: Spare::default(),
                waiting: Waiters::default(),
                compiles: Compiles::default(),
                freeing: Vec::new(),
                closed: None,
                is_broken: false,
                asleep: false,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            clock: Clock::start(),
            arrivals: AtomicU64::new(0),
            sound: Arc::new(AtomicBool::new(true)),
            overflow,
            purpose,
            stall: config.stall(),
        })
    }

    /// The state. After a panic elsewhere it is closed, not unreadable.
    pub(super) fn lock(&self) -> Guard<'_> {
        let locked = self.state.lock();
        self.guard(locked.unwrap_or_else(PoisonError::into_inner))
    }

    /// The state of a session that is not closed.
    pub(super) fn open(&self) -> Result<Guard<'_>, Error> {
        check_open(self.lock())
    }

    /// The same, if nobody has it now.
    pub(super) fn try_open(&self) -> Result<Option<Guard<'_>>, Error> {
        let unlocked = free(self.state.try_lock());
        let guarded = unlocked.map(|state| self.guard(state));
        guarded.map(check_open).transpose()
    }

    fn guard<'a>(&'a self, state: MutexGuard<'a, State>) -> Guard<'a> {
        Guard {
            shared: self,
            state: Some(state),
            was_panicking: std::thread::panicking(),
        }
    }

    /// Has a thread that may enter a GPU driver do this with the session, and waits for it.
    pub(super) fn on_gpu_driver_thread<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = Arc::clone(self);
        platform::run(move || job(&shared))?
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
        let accepted = match state
            .driver
            .session
            .submit_to(terms.engine, &submission, now)
        {
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
        let ticket = state.driver.session.warm_up(kernels);
        state.answers.insert(ticket, Answer::from(sender));
        self.wake_worker(state);
        Call::pending(Arc::clone(self), ticket, receiver)
    }

    /// Sends what is queued, as soon as the worker gets to it.
    pub(super) fn flush(&self) {
        let mut state = self.lock();
        state.driver.session.flush();
        self.wake_worker(state);
    }

    /// Sends what is queued, if anything is.
    pub(super) fn flush_queued(&self) {
        let mut state = self.lock();
        if !state.driver.session.is_open_empty() {
            state.driver.session.flush();
            self.wake_worker(state);
        }
    }

    pub(super) fn abort(&self, ticket: Ticket) {
        let mut state = self.lock();
        // Removed under the lock, dropped outside it: a waker may be inside.
        let answer = state.answers.remove(&ticket);
        if answer.is_some() {
            state.driver.session.abort(ticket);
            // Others may have waited for what the call would have written.
            let wanted = self.wants_worker(&state);
            self.tell_waiting(state);
            if wanted {
                self.work.notify_one();
            }
        }
    }

    /// Rejects what is pending and takes no more calls. The first reason stays. The worker
    /// frees the device.
    pub(super) fn close(&self, reason: &Error) {
        let mut state = self.lock();
        if state.is_broken && matches!(reason, Error::Fatal(_)) {
            state.closed = Some(reason.clone()); // It says what the panic said.
        }
        let reason = state.closed.get_or_insert_with(|| reason.clone()).clone();
        self.sound.store(false, Ordering::Relaxed);
        let mut answers: Vec<(Ticket, Answer)> = state.answers.drain().collect();
        // What is half changed may panic again; the calls are answered all the same.
        state.driver.close();
        let given_up = catch_unwind(AssertUnwindSafe(|| state.driver.session.give_up_all()));
        debug_assert!(given_up.is_ok() || state.is_broken, "it is not broken");
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

    /// Frees a device that the session no longer uses, which may be at work for ever.
    pub(super) fn free(&self, device: AnyDevice) {
        let freeing = platform::free(device, Duration::ZERO);
        let mut state = self.lock();
        state.freeing.retain(|task| !task.wait(Duration::ZERO));
        state.freeing.extend(freeing);
    }

    /// Takes the devices of a session that is closed, for a thread that may enter a GPU
    /// driver to free. They work on nothing new.
    pub(super) fn take_devices(&self) -> Vec<AnyDevice> {
        let instead = AnyDevice::Cpu(Cpu::default());
        let mut devices = self.lock().driver.session.take_devices(instead);
        devices.iter_mut().for_each(Device::destroy);
        devices
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
            state.driver.session.abort(ticket);
            texts.extend(state.answers.remove(&ticket));
        }
        self.tell_waiting(state);
        for text in texts {
            let why = "other devices of its embedder take the text";
            text.send(Err(Error::DeviceLost(why.into())));
        }
    }

    /// Whether the queue has room; if not, the waiter's task is told when it may have.
    pub(super) fn poll_room(
        &self,
        waiter: &mut Waiter,
        context: &Context<'_>,
    ) -> Poll<Result<(), Error>> {
        let mut state = self.lock();
        if let Some(reason) = &state.closed {
            return Poll::Ready(Err(reason.clone()));
        }
        if !state.is_full() {
            return Poll::Ready(Ok(()));
        }
        state.waiting.wait(waiter, context.waker());
        Poll::Pending
    }

    /// Blocks this thread while the queue is full and its policy is to wait.
    pub(super) fn wait_for_room(&self) {
        if self.overflow != Overflow::Wait {
            return;
        }
        let mut state = self.lock();
        while state.closed.is_none() && state.is_full() {
            state = state.sleep(&self.room, None);
        }
    }

    /// Tells everyone who waits for room that there may be some. All of them:
    /// one of two woken tasks may never be polled again.
    pub(super) fn tell_waiting(&self, mut state: Guard<'_>) {
        let waiting = state.waiting.take();
        drop(state);
        self.room.notify_all();
        for (_, waker) in waiting {
            waker.wake();
        }
    }

    /// Wakes the worker if it sleeps and has something to do.
    pub(super) fn wake_worker(&self, state: Guard<'_>) {
        let wanted = self.wants_worker(&state);
        drop(state);
        if wanted {
            self.work.notify_one();
        }
    }

    fn wants_worker(&self, state: &State) -> bool {
        state.asleep
            && (state.is_full()
                || state.driver.session.has_released()
                || state.driver.session.due(self.clock.now()) != Due::Idle)
    }
}

/// The state of a session, locked.
///
/// Invariant: a panic of the thread that has it closes the session, for what is half
/// changed is used by nobody. The worker, which is woken, answers the calls.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    shared: &'a Shared,
    /// `None` once it is let go of.
    state: Option<MutexGuard<'a, State>>,
    /// Whether the thread had panicked before, and takes the lock as it unwinds.
    was_panicking: bool,
}

impl<'a> Guard<'a> {
    /// Lets go of the state until `woken` is notified, or the time is over.
    pub(super) fn sleep(mut self, woken: &Condvar, longest: Option<Duration>) -> Guard<'a> {
        let state = self.state.take().expect("held until it is dropped");
        let state = match longest {
            None => woken.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(longest) => {
                let waited = woken.wait_timeout(state, longest);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        self.shared.guard(state)
    }
}

impl Deref for Guard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_ref().expect("held until it is dropped")
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("held until it is dropped")
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let Some(state) = self.state.as_mut().filter(|_| !self.was_panicking) else {
            return;
        };
        if std::thread::panicking() {
            let why = "a thread panicked with the session locked";
            state.closed.get_or_insert_with(|| Error::Fatal(why.into()));
            state.is_broken = true;
            self.shared.work.notify_all();
            self.shared.room.notify_all();
        }
    }
}

impl State {
    /// Whether producers should wait. A full queue is sent whatever the policy.
    pub(super) fn is_full(&self) -> bool {
        self.driver.session.desired_size() <= 0
    }

    /// Keeps a result's memory for others, if the worker is going to free it: once no
    /// batch follows the last one. Or hands it back.
    pub(super) fn keep(&mut self, result: Vec<f32>) -> Option<Vec<f32>> {
        match self.closed.is_none() && self.driver.session.may_trim() {
            true => self.spare.give(result),
            false => Some(result),
        }
    }

    fn recipe(&mut self, structure: &Structure) -> Result<RecipeId, Error> {
        if let Some(id) = self.recipes.get(structure) {
            return Ok(id);
        }
        let id = match structure {
            Structure::Chain(chain) => self.driver.session.recipe(chain.clone()),
            Structure::Embedding(encoder, tokens) => {
                self.driver.session.recipe(encoder.chain(*tokens)?)
            }
            Structure::Sampling(sampling) => self.driver.session.recipe(*sampling),
            Structure::Searching(searching) => self.driver.session.recipe(*searching),
            Structure::Op(op) => self.driver.session.recipe(op.clone()),
        };
        let dropped = self.recipes.add(structure.clone(), id);
        self.driver.session.forget(dropped);
        Ok(id)
    }

    /// Copies the operands into the session, each from a multiple of 16 bytes.
    fn copy(&mut self, request: &Request<'_>) -> Result<(), Error> {
        let need: usize = request
            .operands()
            .map(|operand| operand.len().next_multiple_of(16))
            .sum();
        let room: &mut [u8] =
            bytemuck::cast_slice_mut(self.driver.session.room(need as u64 / u64::from(WORD))?);
        let mut at = 0;
        for operand in request.operands() {
            room[at..at + operand.len()].copy_from_slice(operand);
            at += operand.len().next_multiple_of(16);
        }
        Ok(())
    }
}

fn check_open(state: Guard<'_>) -> Result<Guard<'_>, Error> {
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
