//! The settle table: which call is answered how, four words a call.

use wasm_bindgen::JsValue;

use super::header::word_index;
use crate::batch::Ticket;
use crate::device::Readback;
use crate::error::Error;
use crate::tensor::Span;

/// Success; any other status is a code's number.
const OK: u32 = 0;

/// `[ticket, offset, length, status]` a call, offset and length in words of
/// the source: a mapped range, or wasm memory itself.
#[derive(Debug, Default)]
pub(super) struct Table {
    words: Vec<u32>,
}

impl Table {
    /// Writes the answers; the source that the offsets refer to (null for wasm
    /// memory) and the message of a failure.
    pub(super) fn fill(
        &mut self,
        calls: &[(Ticket, Span)],
        outcome: &Result<Readback, Error>,
    ) -> (JsValue, JsValue) {
        let (base, status, source, message) = match outcome {
            Ok(Readback::Mapped(mapped)) => {
                (0, OK, mapped.array_buffer().into(), JsValue::UNDEFINED)
            }
            Ok(Readback::Host(words)) => (
                word_index(words.as_ptr()),
                OK,
                JsValue::NULL,
                JsValue::UNDEFINED,
            ),
            Err(error) => (
                0,
                error.code().number(),
                JsValue::NULL,
                error.to_string().into(),
            ),
        };
        self.words.clear();
        self.words.reserve(calls.len() * 4);
        for (ticket, span) in calls {
            self.words
                .extend_from_slice(&[ticket.0, base + span.at, span.words, status]);
        }
        (source, message)
    }

    /// Word index of the first entry.
    pub(super) fn address(&self) -> u32 {
        word_index(self.words.as_ptr())
    }
}
