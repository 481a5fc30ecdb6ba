//! Calls that are given up, and what they leave in the open batch.
//!
//! In batches that are closed it stays until these go, which they do.

use super::Session;
use super::load::Load;
use crate::batch::Ticket;
use crate::device::Device;
use crate::plan::Call;
use crate::tensor::{Arena, Span, aligned};

/// Words that a call takes besides its operands, about.
const RECORD: usize = 16;

impl<D: Device> Session<D> {
    /// Gives up a call; `true` if it was pending. Nobody settles it then.
    pub fn abort(&mut self, ticket: Ticket) -> bool {
        let found = self.batcher.abort(ticket);
        self.counts.rejected += u64::from(found);
        self.waiting.is_due |= found; // Others may have waited for what it writes.
        if self.batcher.is_open_empty() {
            let read = self.open.clear();
            self.unread(read);
        } else if found {
            self.waste(ticket);
        }
        found
    }

    /// A call was given up. Where the open batch holds little else, it holds that no
    /// more: its calls that are left may never fill it.
    pub(super) fn waste(&mut self, ticket: Ticket) {
        if !self.open.waste(ticket) {
            return;
        }
        let mut arena = self.spare.pop().unwrap_or_default();
        let live = self.batcher.open_tickets();
        if let Some(read) = self.open.clean(live, &mut arena) {
            for tensor in &self.open.read {
                self.tensors.read(*tensor);
            }
            self.unread(read);
            self.sweep();
        }
        self.keep_arena(arena);
    }
}

impl Load {
    /// Notes that a call was given up, if it is one of these: whether most of what they
    /// hold is nobody's any more, and enough to be worth [`Load::clean`].
    fn waste(&mut self, ticket: Ticket) -> bool {
        let Some(at) = self.place(ticket) else {
            return false;
        };
        self.wasted += taken(&self.calls[at]);
        let all = self.arena.len() as usize + self.calls.len() * RECORD;
        self.wasted > Arena::CHUNK as usize && self.wasted > all.saturating_sub(self.wasted)
    }

    /// Keeps only calls that are still waited for, which come in the same order, and
    /// nothing of the others: changes its memory for this. The tensors that all of them
    /// read; `None` where there is not enough memory.
    fn clean(
        &mut self,
        live: impl ExactSizeIterator<Item = Ticket>,
        arena: &mut Arena,
    ) -> Option<Vec<u32>> {
        self.keep(live);
        let words = self.calls.iter().map(|call| aligned(call.inputs.words));
        if !arena.reserve(words.sum()) {
            return None;
        }
        let sets = std::mem::replace(&mut self.sets, vec![Box::default()]);
        let read = std::mem::take(&mut self.read);
        for at in 0..self.calls.len() {
            let Call { inputs, set, .. } = self.calls[at];
            let set = self.set(&sets[set.0 as usize]);
            let call = &mut self.calls[at];
            call.set = set;
            call.inputs = arena.push(self.arena.read(inputs));
        }
        std::mem::swap(&mut self.arena, arena);
        let mut asked = std::mem::take(&mut self.asked);
        asked.retain(|(ticket, _)| self.place(*ticket).is_some());
        self.asked = asked;
        self.numbers.0 = Span::default(); // The next call's are compared with none.
        self.wasted = 0;
        Some(read)
    }

    /// Where a call is.
    fn place(&self, ticket: Ticket) -> Option<usize> {
        let at = self.tickets.partition_point(|own| own.is_before(ticket));
        (self.tickets.get(at) == Some(&ticket)).then_some(at)
    }
}

/// Words that a call takes in a load.
fn taken(call: &Call) -> usize {
    aligned(call.inputs.words) as usize + RECORD
}
