//! Hands out a chunk's results: each call gets a copy of its own.
//!
//! Results are copied outside the lock. Which calls a chunk answers is the session's matter.

use super::recipient::Recipient;
use super::result_buffer::Words;
use crate::device::Readback;
use crate::error::Error;
use crate::session::{self, Facts};

/// A chunk whose answers are to be handed out, in the order of submission.
pub(super) struct Delivery {
    pub(super) parts: Vec<Part>,
    pub(super) outcome: Result<Readback, Error>,
    /// With the last chunk of a batch the batch's facts, if anybody listens.
    pub(super) facts: Option<Facts>,
}

/// A part of a call's result, or all of it.
pub(super) struct Part {
    pub(super) answer: session::Answer,
    /// With the first part of a call, memory for the whole result.
    pub(super) begun: Option<Words>,
    /// With the last part of a call, who waits for the result.
    pub(super) caller: Option<Recipient>,
}

impl Delivery {
    /// Gives each call its own copy of its result, or the chunk's error. `begun` is the result of
    /// a call of which some chunks are still to come. There is one such call at most, because the
    /// GPU's chunks arrive in order and only the last call of a chunk is cut.
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
            // Results of the CPU are whole, and may come between the chunks of a call.
            let mut whole = None;
            let result = match part.answer.is_whole() {
                true => &mut whole,
                false => &mut *begun,
            };
            if at == 0 {
                // A call that was begun before was given up, failed or is sent again.
                *result = part.begun;
            }
            if let Some(result) = result {
                let start = span.at as usize;
                result.put(&words[start..start + span.words as usize], at, total);
            }
            if let Some(caller) = part.caller
                && let Some(result) = result.take()
            {
                caller.send(Ok(result));
            }
        }
    }
}
