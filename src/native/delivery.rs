//! What came back, for those who wait: each call gets its own copy of its result.
//!
//! Copied outside the lock. Which calls a chunk answers is the session's matter.

use super::answer::Answer;
use super::result_buffer::Words;
use crate::device::Readback;
use crate::error::Error;
use crate::session::{self, Facts};

/// A chunk that returned, its calls in submission order.
pub(super) struct Landed {
    pub(super) parts: Vec<Part>,
    pub(super) outcome: Result<Readback, Error>,
    /// What the batch was, with its last chunk, if anybody listens.
    pub(super) facts: Option<Facts>,
}

/// What there is for a call.
pub(super) struct Part {
    pub(super) answer: session::Answer,
    /// Where it goes with all behind it, if it is the first of its call.
    pub(super) begun: Option<Words>,
    /// Who waits for it, if it is the last.
    pub(super) caller: Option<Answer>,
}

impl Landed {
    /// Gives each call its own copy of its result, or the chunk's error. `begun` is
    /// the result of a call of which not all chunks are back: one at most, because
    /// the GPU's chunks arrive in order and only their ends are cut.
    pub(super) fn deliver(self, begun: &mut Option<Words>) {
        let words = match &self.outcome {
            Ok(Readback::Host(words)) => words,
            Ok(Readback::Mapped(mapped)) => mapped.words(),
            Err(error) => {
                let callers = self.parts.into_iter().filter_map(|part| part.caller);
                return callers.for_each(|caller| caller.send(Err(error.clone())));
            }
        };
        for part in self.parts {
            let session::Answer {
                span, at, total, ..
            } = part.answer;
            // What the processor computed comes whole, between chunks of others.
            let mut whole = None;
            let result = match part.answer.is_whole() {
                true => &mut whole,
                false => &mut *begun,
            };
            if at == 0 {
                // Whatever was begun before was given up, failed or is sent again.
                *result = part.begun;
            }
            if let Some(result) = result {
                let start = span.at as usize;
                result.put(&words[start..start + span.words as usize], (at, total));
            }
            if let Some(caller) = part.caller
                && let Some(result) = result.take()
            {
                caller.send(Ok(result));
            }
        }
    }
}
