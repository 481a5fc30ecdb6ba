//! Cancellation: calls that are given up, and the memory that they leave in the open batch.
//!
//! In a batch that is sealed such memory stays until the batch has ended.

use super::Session;
use super::payload::{Batch, Call, Computation};
use super::tensor_table::TensorTable;
use crate::batch::Ticket;
use crate::device::Device;
use crate::plan;
use crate::tensor::{Arena, Span, aligned};

/// About how many words a call takes besides its operands.
const RECORD: usize = 16;

impl<D: Device> Session<D> {
    /// Gives up a call; `true` if it was pending. Nobody settles the call then.
    pub fn abort(&mut self, ticket: Ticket) -> bool {
        let found = self.queue.abort(ticket);
        self.metrics.rejected += u64::from(found);
        if found {
            self.gate.open(); // Parked calls may have waited for what this call writes.
        }
        let open = self.queue.open_mut();
        if open.is_empty() {
            open.clear();
            let read = open.payload.clear();
            self.unread(read);
        } else if found {
            self.note_waste(ticket);
        }
        found
    }

    /// Notes that a call was given up. Where the open batch holds little else, its memory
    /// is compacted: its other calls may never fill the batch.
    pub(super) fn note_waste(&mut self, ticket: Ticket) {
        let open = self.queue.open_mut();
        if !open.note_waste(ticket) {
            return;
        }
        let mut arena = self.arenas.take();
        if let Some(read) = open.compact(&mut arena, &self.tensors) {
            for tensor in &open.payload.read {
                self.tensors.read(*tensor);
            }
            self.unread(read);
            self.sweep();
        }
        self.arenas.keep(arena);
    }
}

impl Batch {
    /// Notes that a call was given up, if it is a call of this batch: whether most of what
    /// the batch holds belongs to such calls, and enough to be worth [`Batch::compact`].
    fn note_waste(&mut self, ticket: Ticket) -> bool {
        let Some(at) = self.place(ticket) else {
            return false;
        };
        let all = self.payload.arena.len() as usize + self.calls().len() * RECORD;
        let words = words_taken(&self.calls()[at]);
        let wasted = &mut self.payload.wasted;
        *wasted += words;
        *wasted > Arena::GROWTH as usize && *wasted > all.saturating_sub(*wasted)
    }

    /// Keeps only the live calls and what belongs to them, in other memory. Returns the
    /// tensors that all calls read; `None` where there is not enough memory.
    fn compact(&mut self, arena: &mut Arena, table: &TensorTable) -> Option<Vec<u32>> {
        self.purge();
        let inputs = self.calls().iter().map(|call| call.work.planned.inputs);
        if !arena.reserve(inputs.map(|inputs| aligned(inputs.words)).sum()) {
            return None;
        }
        let (works, payload) = self.works_and_payload();
        let calls = works.map(|Computation { planned, .. }| planned);
        let mut calls: Vec<&mut plan::Call> = calls.collect();
        for call in &mut calls {
            call.inputs = arena.push(payload.arena.read(call.inputs));
        }
        let read = payload.rename(calls, table);
        std::mem::swap(&mut payload.arena, arena);
        payload.numbers.last = Span::default(); // The next call's numbers are compared with none.
        payload.wasted = 0;
        Some(read)
    }
}

/// Words that a call takes in a batch.
fn words_taken(call: &Call) -> usize {
    aligned(call.work.planned.inputs.words) as usize + RECORD
}
