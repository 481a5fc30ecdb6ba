//! How calls enter a session, and how they are given up.
//!
//! Callers copy their operands into the session here, under its lock. What a call is asked for
//! is a `Request`; when its batch is sent, the driver decides.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_channel::oneshot;

use super::call::Call;
use super::copies;
use super::embedder::Burden;
use super::recipient::Recipient;
use super::request::{Request, Structure};
use super::result_buffer::Words;
use super::shared::{Purpose, Shared};
use super::state::State;
use super::state_lock::Guard;
use crate::batch::{Millis, Priority, Ticket};
use crate::device::Engine;
use crate::error::Error;
use crate::plan::RecipeId;
use crate::session::{Kernels, Submission};
use crate::tensor::WORD;

/// What a handle adds to its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Terms {
    /// The calls' key: in a full queue a call may take the place of an older one with its key.
    pub(super) key: Option<u32>,
    /// The engine that the calls run on, if the handle chooses one.
    pub(super) engine: Option<Engine>,
    /// Milliseconds after which a call that is not answered fails.
    pub(super) deadline_ms: Option<f64>,
    /// The calls' priority.
    pub(super) priority: Priority,
}

/// A call that was taken.
struct Taken {
    ticket: Ticket,
    /// Who waited for the call whose place it took.
    superseded: Option<Recipient>,
    /// Whether its deadline is the next one.
    is_next: bool,
}

impl Shared {
    /// Takes a call. Its answer, or a refusal, comes out of the call.
    pub(super) fn submit<T>(
        self: &Arc<Self>,
        request: Result<Request<'_>, Error>,
        terms: Terms,
    ) -> Call<T>
    where
        Recipient: From<oneshot::Sender<Result<Vec<T>, Error>>>,
    {
        self.submit_to(request, terms, Recipient::from)
    }

    /// Takes a call whose answer is the first floats of its result.
    pub(super) fn submit_floats(
        self: &Arc<Self>,
        request: Request<'_>,
        terms: Terms,
        floats: usize,
    ) -> Call<f32> {
        self.submit_to(Ok(request), terms, |sender| {
            Recipient::Floats(sender, floats)
        })
    }

    /// The same for a state that is locked already, in which the caller has found the tensors.
    pub(super) fn submit_floats_in(
        self: &Arc<Self>,
        state: Guard<'_>,
        request: &Request<'_>,
        terms: Terms,
    ) -> Call<f32> {
        let (sender, receiver) = oneshot::channel();
        let answer = Recipient::Floats(sender, usize::MAX);
        self.pending(self.enqueue_in(state, request, terms, answer), receiver)
    }

    /// Takes a text's call, whose answer is the first floats of its result.
    pub(super) fn submit_text(
        self: &Arc<Self>,
        request: Request<'_>,
        terms: Terms,
        floats: usize,
        burden: Burden,
    ) -> Call<f32> {
        let answer = |sender| Recipient::Embedded(sender, floats, burden);
        self.submit_to(Ok(request), terms, answer)
    }

    /// Takes a text's call that stores its vector. Dropping the call does not give it up.
    pub(super) fn submit_stored_text(
        self: &Arc<Self>,
        request: &Request<'_>,
        terms: Terms,
        burden: Burden,
    ) -> Result<Call<f32>, Error> {
        let (sender, receiver) = oneshot::channel();
        self.enqueue(request, terms, Recipient::Embedded(sender, 0, burden))?;
        Ok(Call::committed(receiver))
    }

    fn submit_to<T>(
        self: &Arc<Self>,
        request: Result<Request<'_>, Error>,
        terms: Terms,
        answer: impl FnOnce(oneshot::Sender<Result<Vec<T>, Error>>) -> Recipient,
    ) -> Call<T> {
        let (sender, receiver) = oneshot::channel();
        let taken = request.and_then(|request| self.enqueue(&request, terms, answer(sender)));
        self.pending(taken, receiver)
    }

    /// The call of a ticket, or of what is known of it.
    fn pending<T>(
        self: &Arc<Self>,
        taken: Result<Option<Ticket>, Error>,
        receiver: oneshot::Receiver<Result<Vec<T>, Error>>,
    ) -> Call<T> {
        match taken {
            Ok(Some(ticket)) => Call::pending(Arc::clone(self), ticket, receiver),
            Ok(None) => Call::known(Ok(Vec::new())),
            Err(error) => Call::known(Err(error)),
        }
    }

    /// Takes calls in this order, each with the floats of its answer, and no other call between: all
    /// of them, or none. Dropping the futures of the answers gives up none of the calls.
    pub(super) fn submit_together(
        self: &Arc<Self>,
        requests: &[(Request<'_>, usize)],
        terms: Terms,
    ) -> Result<Vec<Call<f32>>, Error> {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            requests.iter().map(|_| oneshot::channel()).unzip();
        // No call may take the place of one of several, and leave the others.
        let alone = requests.iter().filter(|(request, _)| request.rows > 0);
        let key = terms.key.filter(|_| alone.count() == 1);
        let terms = Terms { key, ..terms };
        let mut state = self.open()?;
        let mut taken: Vec<Option<Taken>> = Vec::new();
        let mut refusal = None;
        for ((request, floats), sender) in requests.iter().zip(senders) {
            match self.take(
                &mut state,
                request,
                terms,
                Recipient::Floats(sender, *floats),
            ) {
                Ok(call) => taken.push(call),
                Err(error) => refusal = Some(error),
            }
            // In a session that explains all calls are planned, and refused.
            if refusal.is_some() && self.purpose == Purpose::Send {
                break;
            }
        }
        if refusal.is_some() {
            for call in taken.iter().flatten() {
                state.answers.remove(&call.ticket);
                state.driver.session.abort(call.ticket);
            }
        }
        let calls = taken
            .iter()
            .zip(receivers)
            .map(|(call, answer)| match call {
                Some(_) => Call::committed(answer),
                None => Call::known(Ok(Vec::new())),
            });
        let calls = calls.collect();
        self.tell_taken(state, taken.into_iter().flatten());
        refusal.map_or(Ok(calls), Err)
    }

    /// The call's ticket; `None` for one without items, whose answer is known.
    fn enqueue(
        &self,
        request: &Request<'_>,
        terms: Terms,
        answer: Recipient,
    ) -> Result<Option<Ticket>, Error> {
        self.enqueue_in(self.open()?, request, terms, answer)
    }

    fn enqueue_in(
        &self,
        mut state: Guard<'_>,
        request: &Request<'_>,
        terms: Terms,
        answer: Recipient,
    ) -> Result<Option<Ticket>, Error> {
        let taken = self.take(&mut state, request, terms, answer);
        let (taken, refusal) = match taken {
            Ok(taken) => (taken, None),
            Err(error) => (None, Some(error)),
        };
        let ticket = taken.as_ref().map(|taken| taken.ticket);
        // A full queue is sent, also where the call was refused.
        self.tell_taken(state, taken);
        refusal.map_or(Ok(ticket), Err)
    }

    /// Has the worker see calls that were taken, and tells those whose places they took.
    fn tell_taken(&self, state: Guard<'_>, taken: impl IntoIterator<Item = Taken>) {
        let mut superseded = Vec::new();
        for call in taken {
            self.arrivals.fetch_add(1, Ordering::Relaxed);
            if call.is_next {
                self.state.work.notify_one(); // The worker may sleep for longer than the call can wait.
            }
            superseded.extend(call.superseded);
        }
        self.wake_worker(state);
        for older in superseded {
            older.send(Err(Error::Superseded));
        }
    }

    /// Takes a call; `None` for one without items, whose answer is known.
    fn take(
        &self,
        state: &mut State,
        request: &Request<'_>,
        terms: Terms,
        answer: Recipient,
    ) -> Result<Option<Taken>, Error> {
        for tensor in &request.chained.tensors {
            if request.is_found(*tensor) {
                state.residents.check(*tensor)?;
            }
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
        let session = &mut state.driver.session;
        let accepted = session.submit_with(terms.priority, terms.engine, &submission, now)?;
        let targets = state.note_taken(&request.chained.written);
        if self.purpose == Purpose::Explain {
            return Err(Error::InvalidInput(
                "a call made in explain is planned and never sent; ask for its value outside"
                    .into(),
            ));
        }
        let answer = answer.storing(targets);
        state.answers.insert(accepted.ticket, answer);
        let State {
            deadlines, answers, ..
        } = state;
        let is_next = terms.deadline_ms.is_some_and(|ms| {
            deadlines.prune(answers.len(), |ticket| answers.contains_key(&ticket));
            deadlines.add(accepted.ticket, Millis(now.0 + ms))
        });
        let superseded = accepted
            .superseded
            .and_then(|older| state.take_failed(older, &Error::Superseded));
        Ok(Some(Taken {
            ticket: accepted.ticket,
            superseded,
            is_next,
        }))
    }

    /// Has kernels compiled; the answer has no elements.
    pub(super) fn warm_up(self: &Arc<Self>, kernels: Kernels) -> Call<f32> {
        let mut state = match self.open() {
            Ok(state) => state,
            Err(error) => return Call::known(Err(error)),
        };
        let (sender, receiver) = oneshot::channel();
        let ticket = state.driver.session.warm_up(kernels);
        state.answers.insert(ticket, Recipient::from(sender));
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
        let session = &state.driver.session;
        if !session.is_open_empty() || session.has_low_calls() {
            state.driver.session.flush();
            self.wake_worker(state);
        }
    }

    /// Has the result of a pending call lie in the caller's memory. A result that has arrived
    /// stays where it is.
    pub(super) fn lend(&self, ticket: Ticket, memory: Words) {
        let mut state = self.lock();
        let Some(recipient) = state.answers.remove(&ticket) else {
            drop(state);
            return drop(memory); // Freeing much memory takes long.
        };
        state.answers.insert(ticket, recipient.lending(memory));
    }

    pub(super) fn abort(&self, ticket: Ticket) {
        let mut state = self.lock();
        // The answer is dropped outside the lock, because it may hold a waker.
        let answer = state.answers.remove(&ticket);
        if answer.is_some() {
            state.driver.session.abort(ticket);
            // Other calls may have waited for a tensor that this call would have written.
            let wanted = self.wants_worker(&state);
            self.tell_waiting(state);
            if wanted {
                self.state.work.notify_one();
            }
        }
    }
}

impl State {
    pub(super) fn recipe(&mut self, structure: &Structure) -> Result<RecipeId, Error> {
        if let Some(id) = self.recipes.get(structure) {
            return Ok(id);
        }
        let id = match structure {
            Structure::Chain(chain) => self.driver.session.recipe(chain.clone()),
            Structure::Recorded(recorded) => self.driver.session.recipe(recorded.chain().clone()),
            Structure::Embedding(encoder, tokens, destination) => {
                let chain = encoder.chain(*tokens, *destination)?;
                self.driver.session.recipe(chain)
            }
            Structure::Sampling(sampling) => self.driver.session.recipe(*sampling),
            Structure::Searching(searching) => self.driver.session.recipe(*searching),
            Structure::Insertion(insertion) => self.driver.session.recipe(*insertion),
            Structure::Op(op) => self.driver.session.recipe(op.clone()),
        };
        let dropped = self.recipes.add(structure.clone(), id);
        self.driver.session.forget(dropped);
        Ok(id)
    }

    /// Copies the operands to the arena, each from the next multiple of 16 bytes on.
    pub(super) fn copy(&mut self, request: &Request<'_>) -> Result<(), Error> {
        let operands = request.operands();
        let carried: usize = operands
            .map(|operand| operand.len().next_multiple_of(16))
            .sum();
        let carried = carried / WORD as usize;
        let need = carried + request.names().count();
        let room = self.driver.session.room(need as u64)?;
        for (word, name) in room[carried..].iter_mut().zip(request.names()) {
            *word = name;
        }
        let room: &mut [u8] = bytemuck::cast_slice_mut(&mut room[..carried]);
        let mut at = 0;
        for operand in request.operands() {
            copies::copy_operand(operand, &mut room[at..at + operand.len()]);
            at += operand.len().next_multiple_of(16);
        }
        Ok(())
    }
}

fn rows(request: &Request<'_>) -> Result<u32, Error> {
    if let Structure::Chain(_) | Structure::Recorded(_) = request.structure {
        return Ok(0); // A chain knows its rows, and costs nothing.
    }
    u32::try_from(request.rows).map_err(|_| Error::TooLarge {
        what: "what a call reads",
        need: request.operands().map(|o| o.len() as u64).sum(),
        limit: u32::MAX.into(),
    })
}
