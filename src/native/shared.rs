//! What handles, calls and the worker share: the session behind one lock, what may be looked
//! at without the lock, and who is woken when the state changes.
//!
//! Nobody waits for a GPU under the lock, but the CPU computes a batch under it: it reads
//! operands and tensors where they lie. Only the worker sends.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use super::compile_jobs::CompileJobs;
use super::config::{Config, PAUSES, instead_of_gpu};
use super::deadlines::Deadlines;
use super::indexes::Indexes;
use super::listeners::Listeners;
use super::lru::Recent;
use super::platform::{self, AnyDevice, AtomicU64, Clock};
use super::recipient::Recipient;
use super::residents::Residents;
use super::result_buffer::Spare;
use super::state::State;
use super::state_lock::{Guard, StateLock};
use super::store::Clips;
use super::waiters::{Waiter, Waiters};
use crate::batch::{Due, Overflow, Ticket};
use crate::device::{Cpu, CpuReason, Device};
use crate::driver::{Driver, DriverConfig};
use crate::error::Error;
use crate::session::{Model, Routing, Session};

/// How long a GPU driver may take to free a device that works.
const LONGEST_FREEING: Duration = Duration::from_secs(10);

/// A session, and who waits for it.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: StateLock,
    pub(super) clock: Clock,
    /// Calls accepted so far, to be watched without the lock.
    pub(super) arrivals: AtomicU64,
    /// Whether the device is of the kind that the session was opened on: the session is not
    /// closed, the device not lost, and the CPU not in a GPU's place.
    sound: Arc<AtomicBool>,
    overflow: Overflow,
    pub(super) purpose: Purpose,
    /// The longest that the device may owe an answer.
    pub(super) stall: Duration,
}

/// What becomes of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A worker sends them.
    Send,
    /// Calls are planned, and refused as soon as they are.
    Explain,
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
        let cpu = AnyDevice::Cpu(Cpu::default());
        let stall_ms = config.stall_ms(&device.info());
        let mut session = Session::new(device, batch)?.with_companion(cpu, routing);
        if purpose == Purpose::Explain {
            session.begin_explain();
        }
        let driving = DriverConfig {
            stall_ms,
            pauses: &PAUSES,
            cpu: || instead_of_gpu(CpuReason::DeviceLost),
        };
        Ok(Shared {
            state: StateLock::new(State {
                driver: Driver::new(session, driving),
                answers: HashMap::new(),
                deadlines: Deadlines::default(),
                recipes: Recent::default(),
                residents: Residents::default(),
                listeners: Listeners::default(),
                device_listeners: Listeners::default(),
                clips: Clips::default(),
                indexes: Indexes::default(),
                spare: Spare::default(),
                waiting: Waiters::default(),
                compiles: CompileJobs::default(),
                freeing: Vec::new(),
                closed: None,
                is_broken: false,
                asleep: false,
            }),
            clock: Clock::start(),
            arrivals: AtomicU64::new(0),
            sound: Arc::new(AtomicBool::new(true)),
            overflow,
            purpose,
            stall: Duration::try_from_secs_f64(stall_ms / 1e3).unwrap_or(Duration::MAX),
        })
    }

    /// The state. After a panic elsewhere the session is closed, not unreadable.
    pub(super) fn lock(&self) -> Guard<'_> {
        self.state.lock()
    }

    /// The state of a session that is not closed.
    pub(super) fn open(&self) -> Result<Guard<'_>, Error> {
        self.state.open()
    }

    /// The state of a session that is not closed, if nobody else has it now.
    pub(super) fn try_open(&self) -> Result<Option<Guard<'_>>, Error> {
        self.state.try_open()
    }

    /// Has a thread that may enter a GPU driver do this with the session, and waits for it.
    pub(super) fn on_gpu_driver_thread<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = Arc::clone(self);
        platform::run(move || job(&shared))?
    }

    /// Rejects what is pending and takes no more calls. The first reason stays. The worker
    /// frees the device.
    pub(super) fn close(&self, reason: &Error) {
        let mut state = self.lock();
        if state.is_broken && matches!(reason, Error::Fatal(_)) {
            state.closed = Some(reason.clone()); // The newer reason has the panic's message.
        }
        let reason = state.closed.get_or_insert_with(|| reason.clone()).clone();
        self.sound.store(false, Ordering::Relaxed);
        let mut answers: Vec<(Ticket, Recipient)> = state.answers.drain().collect();
        // A state that is half changed may panic again; all calls are answered nevertheless.
        state.driver.close();
        let given_up = catch_unwind(AssertUnwindSafe(|| state.driver.session.give_up_all()));
        debug_assert!(given_up.is_ok() || state.is_broken, "it is not broken");
        let residents = std::mem::take(&mut state.residents);
        let spare = std::mem::take(&mut state.spare);
        self.state.work.notify_all();
        self.tell_waiting(state);
        // Dropped outside the lock: they may be large, and hold other sessions' tensors.
        drop((residents, spare));
        answers.sort_unstable_by_key(|(ticket, _)| *ticket);
        for (_, answer) in answers {
            answer.send(Err(reason.clone()));
        }
    }

    /// How long the end of a session waits at most for GPU drivers to free devices, however soon
    /// devices count as stalled.
    pub(super) fn longest_end(&self) -> Duration {
        self.stall.max(LONGEST_FREEING)
    }

    /// Frees a device that the session no longer uses, without waiting for the device's work.
    pub(super) fn free(&self, device: AnyDevice) {
        let freeing = platform::free(device, Duration::ZERO);
        let mut state = self.lock();
        state.freeing.retain(|task| !task.wait(Duration::ZERO));
        state.freeing.extend(freeing);
    }

    /// Takes the devices of a session that is closed, to be freed on a thread that may enter a GPU
    /// driver.
    pub(super) fn take_devices(&self) -> Vec<AnyDevice> {
        let instead = AnyDevice::Cpu(Cpu::default());
        let mut devices = self.lock().driver.session.take_devices(instead);
        devices.iter_mut().for_each(Device::destroy);
        devices
    }

    /// A flag that may be read at any time: whether the session has a device of the kind that it
    /// was opened on.
    pub(super) fn sound(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.sound)
    }

    pub(super) fn is_sound(&self) -> bool {
        self.sound.load(Ordering::Relaxed)
    }

    /// Notes that the session has a device of the kind that it was opened on again.
    pub(super) fn mark_sound(&self) {
        self.sound.store(true, Ordering::Relaxed);
    }

    /// Notes that the device is lost or the CPU in its place. Texts that another session can
    /// embed fail here as lost, so that the embedder sends them there.
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

    /// Fails the calls whose deadlines have passed; the state, locked again.
    pub(super) fn expire<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        let expired = state.expire(self.clock.now());
        if expired.is_empty() {
            return state;
        }
        // Calls that were given up make room.
        self.tell_waiting(state);
        for recipient in expired {
            recipient.send(Err(Error::Timeout));
        }
        self.lock()
    }

    /// Whether the queue has room; if not, the waiter's task is woken when it may have.
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
            state = state.sleep(&self.state.room, None);
        }
    }

    /// Wakes all tasks and threads that wait for room: if only one task were woken, it might never
    /// be polled again.
    pub(super) fn tell_waiting(&self, mut state: Guard<'_>) {
        let waiting = state.waiting.take();
        drop(state);
        self.state.room.notify_all();
        for (_, waker) in waiting {
            waker.wake();
        }
    }

    /// Wakes the worker if it sleeps and has something to do.
    pub(super) fn wake_worker(&self, state: Guard<'_>) {
        let wanted = self.wants_worker(&state);
        drop(state);
        if wanted {
            self.state.work.notify_one();
        }
    }

    pub(super) fn wants_worker(&self, state: &State) -> bool {
        state.asleep
            && (state.is_full()
                || state.driver.session.has_released()
                || state.driver.session.due(self.clock.now()) != Due::Idle)
    }
}
