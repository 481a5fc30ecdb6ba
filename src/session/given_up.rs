//! Calls that are given up, and what they leave in the open batch.
//!
//! In batches that are closed it stays until these go, which they do.

use super::Session;
use super::load::Load;
use crate::batch::Ticket;
use crate::device::{Device, Engine};
use crate::plan::Call;
use crate::tensor::{Arena, aligned};

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
        let arena = self.spare.pop().unwrap_or_default();
        let Some(next) = self.open.rebuilt(self.batcher.open_tickets(), arena) else {
            return;
        };
        for tensor in &next.read {
            self.tensors.read(*tensor);
        }
        let before = std::mem::replace(&mut self.open, next);
        self.recycle(before);
    }
}

impl Load {
    /// Notes that a call was given up, if it is one of these: whether most of what they
    /// hold is nobody's any more, and enough to be worth a [`Load::rebuilt`].
    fn waste(&mut self, ticket: Ticket) -> bool {
        let Some(at) = self.place(ticket) else {
            return false;
        };
        self.wasted += taken(&self.calls[at]);
        let all = self.arena.len() as usize + self.calls.len() * RECORD;
        self.wasted > Arena::CHUNK as usize && self.wasted > all.saturating_sub(self.wasted)
    }

    /// The calls that are still waited for, which come in the same order, in this memory;
    /// `None` where there is not enough of it.
    fn rebuilt(
        &mut self,
        live: impl ExactSizeIterator<Item = Ticket>,
        mut arena: Arena,
    ) -> Option<Load> {
        self.keep(live);
        let words = self.calls.iter().map(|call| aligned(call.inputs.words));
        if !arena.reserve(words.sum()) {
            return None;
        }
        let mut next = Load::of(self.id, arena, self.calls.len());
        // As the last call's: the next one's are compared with none.
        next.numbers.1 = self.numbers.1;
        for (call, ticket) in self.calls.iter().zip(&self.tickets) {
            let inputs = next.arena.push(self.arena.read(call.inputs));
            let set = next.set(&self.sets[call.set.0 as usize]);
            next.calls.push(Call {
                inputs,
                set,
                ..*call
            });
            next.tickets.push(*ticket);
        }
        let asked = std::mem::take(&mut self.asked);
        let is_live = |(ticket, _): &(Ticket, Engine)| next.place(*ticket).is_some();
        next.asked = asked.into_iter().filter(is_live).collect();
        Some(next)
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
