//! The settle table, which tells TypeScript how calls are answered: four words a call.

use wasm_bindgen::JsValue;

use super::header::word_index;
use crate::batch::Ticket;
use crate::device::Readback;
use crate::error::Error;
use crate::session::Answer;

/// The whole result; any other status but [`FRAGMENT`] is a code's number.
const OK: u32 = 0;

/// A fragment of the result. The first words of a second entry say where in the result the
/// fragment lies, and how long the whole result is.
const FRAGMENT: u32 = u32::MAX;

/// `[ticket, offset, length, status]` for each call. Offset and length count words of the source:
/// a mapped range, or wasm memory.
#[derive(Debug, Default)]
pub(super) struct Table {
    words: Vec<u32>,
}

impl Table {
    /// Writes answers; the source that the offsets refer to, null for wasm memory, and the
    /// message of a failure.
    pub(super) fn fill(
        &mut self,
        answers: &[Answer],
        outcome: &Result<Readback, Error>,
    ) -> (JsValue, JsValue) {
        self.words.clear();
        self.words.reserve(answers.len() * 4);
        match outcome {
            Ok(Readback::Mapped(mapped)) => {
                self.results(answers, 0);
                (mapped.array_buffer().into(), JsValue::UNDEFINED)
            }
            Ok(Readback::Host(words)) => {
                self.results(answers, word_index(words.as_ptr()));
                (JsValue::NULL, JsValue::UNDEFINED)
            }
            Err(error) => {
                self.failures(answers.iter().map(|answer| answer.ticket), error);
                (JsValue::NULL, error.to_string().into())
            }
        }
    }

    /// Writes that calls failed; the error's message.
    pub(super) fn fail(&mut self, tickets: &[Ticket], error: &Error) -> JsValue {
        self.words.clear();
        self.failures(tickets.iter().copied(), error);
        error.to_string().into()
    }

    /// Writes that tickets have answers without words.
    pub(super) fn accept(&mut self, tickets: &[Ticket]) {
        self.words.clear();
        let entries = tickets.iter().flat_map(|ticket| [ticket.0, 0, 0, OK]);
        self.words.extend(entries);
    }

    /// Word index of the first entry.
    pub(super) fn address(&self) -> u32 {
        word_index(self.words.as_ptr())
    }

    /// How many entries there are.
    pub(super) fn entries(&self) -> usize {
        self.words.len() / 4
    }

    fn results(&mut self, answers: &[Answer], base: u32) {
        for answer in answers {
            let Answer {
                ticket, span, at, ..
            } = *answer;
            let (offset, is_whole) = (base + span.at, answer.is_whole());
            let status = if is_whole { OK } else { FRAGMENT };
            self.words
                .extend_from_slice(&[ticket.0, offset, span.words, status]);
            if !is_whole {
                self.words.extend_from_slice(&[at, answer.total, 0, 0]);
            }
        }
    }

    fn failures(&mut self, tickets: impl Iterator<Item = Ticket>, error: &Error) {
        let status = error.code().number();
        for ticket in tickets {
            self.words.extend_from_slice(&[ticket.0, 0, 0, status]);
        }
    }
}
