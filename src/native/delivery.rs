//! Hands out a chunk's results: each call gets a copy of its own.
//!
//! Results are copied outside the lock. Which calls a chunk answers is the session's matter.

use rayon::prelude::*;

use super::copies::{copies_of_a_core, result_threads};
use super::recipient::Recipient;
use super::result_buffer::Words;
use crate::device::Readback;
use crate::error::Error;
use crate::session::{self, Facts};

/// Bytes of results, on average, from which on their copies are worth more than one core: the
/// system hands out smaller memory faster than cores wake.
const WORTH_A_CORE: usize = 16 << 10;

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
    pub(super) fn deliver(mut self, begun: &mut Option<Words>) {
        let words: &[u32] = match &self.outcome {
            Ok(Readback::Host(words)) => words,
            Ok(Readback::Mapped(mapped)) => mapped.words(),
            Err(error) => {
                let callers = self.parts.into_iter().filter_map(|part| part.caller);
                return callers.for_each(|caller| caller.send(Err(error.clone())));
            }
        };
        fill_whole(&mut self.parts, words);
        for mut part in self.parts {
            // Results of the CPU are whole, and may come between the chunks of a call.
            let result = match part.answer.is_whole() {
                true => &mut part.begun,
                false => {
                    if part.answer.at == 0 {
                        // A call that was begun before was given up, failed or is sent again.
                        *begun = part.begun;
                    }
                    if let Some(result) = &mut *begun {
                        copy(part.answer, words, result);
                    }
                    &mut *begun
                }
            };
            if let Some(caller) = part.caller
                && let Some(result) = result.take()
            {
                caller.send(Ok(result));
            }
        }
    }
}

/// Copies the results that are whole, on all cores where they are large.
fn fill_whole(parts: &mut [Part], words: &[u32]) {
    let fill = |part: &mut Part| {
        if let Some(result) = part.begun.as_mut().filter(|_| part.answer.is_whole()) {
            copy(part.answer, words, result);
        }
    };
    let average = size_of_val(words) / parts.len().max(1);
    match result_threads().filter(|_| parts.len() > 1 && average >= WORTH_A_CORE) {
        Some(pool) => {
            let few = copies_of_a_core(parts.len(), average);
            pool.install(|| parts.par_iter_mut().with_min_len(few).for_each(fill));
        }
        None => parts.iter_mut().for_each(fill),
    }
}

/// Copies what a chunk has of a result.
fn copy(answer: session::Answer, words: &[u32], result: &mut Words) {
    let session::Answer {
        span, at, total, ..
    } = answer;
    let start = span.at as usize;
    result.put(&words[start..start + span.words as usize], at, total);
}
