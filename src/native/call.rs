//! One call and its answer.
//!
//! A call is queued as soon as it exists; awaiting it only waits. It depends on no runtime, and
//! dropping it gives the call up.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_channel::oneshot::Receiver;

use super::platform::block_on;
use super::result_buffer::Words;
use super::shared::Shared;
use crate::batch::Ticket;
use crate::error::Error;
use crate::ops::State;

/// A call under way. It resolves to its own values or to its own error.
///
/// Make all calls before awaiting the first, and they share a batch. A call that is dropped
/// before its answer is given up: if it is still queued it is not computed, and if it is in
/// flight its result is thrown away.
#[derive(Debug)]
#[must_use = "dropping a call gives it up"]
pub struct Call<T> {
    stage: Stage<T>,
}

#[derive(Debug)]
enum Stage<T> {
    /// Answered without a device, or refused.
    Known(Result<Vec<T>, Error>),
    /// Queued or in flight.
    Pending {
        shared: Arc<Shared>,
        ticket: Ticket,
        answer: Receiver<Result<Vec<T>, Error>>,
    },
    /// Queued or in flight, and not to be given up.
    Committed {
        answer: Receiver<Result<Vec<T>, Error>>,
    },
    /// The answer was handed over.
    Done,
}

impl<T> Call<T> {
    /// Blocks this thread until the answer is there. Not for async code, where
    /// it would block the runtime: `await` the call instead.
    ///
    /// # Errors
    ///
    /// What went wrong with this call.
    pub fn wait(self) -> Result<Vec<T>, Error> {
        block_on(self)
    }

    /// Whether the session took the call, and its answer was not polled out yet.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.stage, Stage::Pending { .. })
    }

    /// Why the session did not take the call.
    pub(super) fn refusal(&self) -> Option<&Error> {
        match &self.stage {
            Stage::Known(Err(error)) => Some(error),
            _ => None,
        }
    }

    pub(super) fn known(answer: Result<Vec<T>, Error>) -> Self {
        Call {
            stage: Stage::Known(answer),
        }
    }

    pub(super) fn pending(
        shared: Arc<Shared>,
        ticket: Ticket,
        answer: Receiver<Result<Vec<T>, Error>>,
    ) -> Self {
        Call {
            stage: Stage::Pending {
                shared,
                ticket,
                answer,
            },
        }
    }

    /// A call that goes on though nobody waits for its answer.
    pub(super) fn committed(answer: Receiver<Result<Vec<T>, Error>>) -> Self {
        Call {
            stage: Stage::Committed { answer },
        }
    }
}

impl Call<f32> {
    /// Has the result written to memory of the caller's, which comes back as the result. What
    /// the memory holds is overwritten; a result that is longer makes the memory grow.
    ///
    /// The first write to fresh memory takes the system several times as long as a copy, so
    /// large results are read faster to memory that was used before. Say so right behind the
    /// call: a result that has arrived keeps its own memory, and so does that of a call that is
    /// computed once more because a device was lost while the result was copied.
    ///
    /// ```
    /// use framebatch::{Config, Gpu, State};
    ///
    /// # pollster::block_on(async {
    /// let gpu = Gpu::open(Config::default()).await?;
    /// let states = vec![State::default(); 1000];
    /// let mut gradients = Vec::new();
    /// for _ in 0..3 {
    ///     let call = gpu.compute_gradients(&states);
    ///     gradients = call.with_memory(gradients).await?;
    ///     assert_eq!(gradients.len(), 1000 * 32);
    /// }
    /// # Ok::<(), framebatch::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn with_memory(self, memory: Vec<f32>) -> Self {
        self.lend(Words::Floats(memory))
    }
}

impl Call<State> {
    /// [`Call::with_memory`] for results of states.
    pub fn with_memory(self, memory: Vec<State>) -> Self {
        self.lend(Words::States(memory))
    }
}

impl<T> Call<T> {
    fn lend(self, memory: Words) -> Self {
        if let Stage::Pending { shared, ticket, .. } = &self.stage {
            shared.lend(*ticket, memory);
        }
        self
    }
}

// Nothing in a call is pinned: the receiver is `Unpin`, and values are owned.
impl<T> Unpin for Call<T> {}

impl<T> Future for Call<T> {
    type Output = Result<Vec<T>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Stage::Pending { answer, .. } | Stage::Committed { answer } = &mut self.stage {
            let Poll::Ready(answer) = Pin::new(answer).poll(context) else {
                return Poll::Pending;
            };
            let lost = Error::Fatal("the worker dropped a call".into());
            self.stage = Stage::Known(answer.unwrap_or(Err(lost)));
        }
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Known(answer) => Poll::Ready(answer),
            Stage::Pending { .. } | Stage::Committed { .. } | Stage::Done => {
                panic!("a call was polled after its answer")
            }
        }
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        if let Stage::Pending { shared, ticket, .. } = &self.stage {
            shared.abort(*ticket);
        }
    }
}
