//! Calls that are given up, and what they leave in the open batch.
//!
//! In batches that are closed it stays until these go, which they do.

use super::Session;
use super::payload::{Batch, Call, Work};
use crate::batch::Ticket;
use crate::device::Device;
use crate::tensor::{Arena, Span, aligned};

/// Words that a call takes besides its operands, about.
const RECORD: usize = 16;

impl<D: Device> Session<D> {
    /// Gives up a call; `true` if it was pending. Nobody settles it then.
    pub fn abort(&mut self, ticket: Ticket) -> bool {
        let found = self.queue.abort(ticket);
        self.metrics.rejected += u64::from(found);
        if found {
            self.gate.open(); // Others may have waited for what it writes.
        }
        let open = self.queue.open_mut();
        if open.is_empty() {
            open.clear();
            let read = open.payload.clear();
            self.unread(read);
        } else if found {
            self.waste(ticket);
        }
        found
    }

    /// A call was given up. Where the open batch holds little else, it holds that no
    /// more: its calls that are left may never fill it.
    pub(super) fn waste(&mut self, ticket: Ticket) {
        let open = self.queue.open_mut();
        if !open.waste(ticket) {
            return;
        }
        let mut arena = self.arenas.take();
        if let Some(read) = open.clean(&mut arena) {
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
    /// Notes that a call was given up, if it is one of these: whether most of what they
    /// hold is nobody's any more, and enough to be worth [`Batch::clean`].
    fn waste(&mut self, ticket: Ticket) -> bool {
        let Some(at) = self.place(ticket) else {
            return false;
        };
        let all = self.payload.arena.len() as usize + self.calls().len() * RECORD;
        let words = taken(&self.calls()[at]);
        let wasted = &mut self.payload.wasted;
        *wasted += words;
        *wasted > Arena::GROWTH as usize && *wasted > all.saturating_sub(*wasted)
    }

    /// Keeps only calls that are still waited for, and nothing of the others: changes its
    /// memory for this. The tensors that all of them read; `None` where there is not
    /// enough memory.
    fn clean(&mut self, arena: &mut Arena) -> Option<Vec<u32>> {
        self.purge();
        let inputs = self.calls().iter().map(|call| call.work.planned.inputs);
        if !arena.reserve(inputs.map(|inputs| aligned(inputs.words)).sum()) {
            return None;
        }
        let (works, payload) = self.works_and_payload();
        let sets = std::mem::replace(&mut payload.sets, vec![Box::default()]);
        let read = std::mem::take(&mut payload.read);
        for Work { planned, .. } in works {
            planned.set = payload.set(&sets[planned.set.0 as usize]);
            planned.inputs = arena.push(payload.arena.read(planned.inputs));
        }
        std::mem::swap(&mut payload.arena, arena);
        payload.numbers.0 = Span::default(); // The next call's are compared with none.
        payload.wasted = 0;
        Some(read)
    }
}

/// Words that a call takes in a batch.
fn taken(call: &Call) -> usize {
    aligned(call.work.planned.inputs.words) as usize + RECORD
}
