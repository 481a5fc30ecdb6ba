//! The calls of one batch and the memory that holds their operands.

use super::route::Group;
use crate::batch::{BatchId, Ticket};
use crate::device::Engine;
use crate::error::Error;
use crate::plan::{Call, NumbersId, Recipe, SetId};
use crate::tensor::{Arena, Format, Span, aligned};

/// What a batch carries until it is sent.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) id: BatchId,
    /// The first batch that took one of its calls: another than its own where it was
    /// divided from that one.
    pub(super) oldest: BatchId,
    pub(super) arena: Arena,
    /// Its calls, and the ticket of each.
    pub(super) calls: Vec<Call>,
    pub(super) tickets: Vec<Ticket>,
    /// Those of them that said where they run.
    pub(super) asked: Vec<(Ticket, Engine)>,
    /// Its calls by structure, where they have a choice of devices.
    pub(super) groups: Vec<Group>,
    /// Where each call goes; empty where all go to the device.
    pub(super) engines: Vec<Engine>,
    /// While it is on its way, the calls that the processor beside the GPU has
    /// and the GPU has not.
    pub(super) aside: Aside,
    /// While it is on its way, how many of its calls are in front of the others because
    /// they write to tensors, and these are not all in its first piece.
    pub(super) leading: usize,
    /// Sets of tensors that calls read on the device; the first is empty.
    pub(super) sets: Vec<Box<[u32]>>,
    /// Where the numbers of the last call that has some are, and which they are.
    pub(super) numbers: (Span, NumbersId),
    /// Every tensor that a call reads, as often as one does.
    pub(super) read: Vec<u32>,
    /// Words that calls took here which were given up.
    pub(super) wasted: usize,
    /// Whether it was sent before.
    pub(super) is_sent: bool,
    /// Losses of a device that was at work on it.
    pub(super) losses: u32,
    /// Losses of a device that answered others while it waited for kernels.
    pub(super) doubts: u32,
    /// How often there was no memory for it.
    pub(super) shortages: u32,
}

/// Some of a batch's calls, in order, and the ticket of each.
#[derive(Debug, Default)]
pub(super) struct Aside {
    pub(super) calls: Vec<Call>,
    pub(super) tickets: Vec<Ticket>,
}

impl Load {
    pub(super) fn new(id: BatchId, arena: Arena) -> Self {
        Load::of(id, arena, 0)
    }

    /// One that has memory for so many calls.
    pub(super) fn of(id: BatchId, arena: Arena, calls: usize) -> Self {
        Load {
            id,
            oldest: id,
            arena,
            calls: Vec::with_capacity(calls),
            tickets: Vec::with_capacity(calls),
            asked: Vec::new(),
            groups: Vec::new(),
            engines: Vec::new(),
            aside: Aside::default(),
            leading: 0,
            sets: vec![Box::default()],
            numbers: Default::default(),
            read: Vec::new(),
            wasted: 0,
            is_sent: false,
            losses: 0,
            doubts: 0,
            shortages: 0,
        }
    }

    /// Turns the values in the free room into what the core keeps, and refuses
    /// those that a type refuses. Returns the scalar's word.
    pub(super) fn encode(&mut self, recipe: &Recipe, rows: u32, scalar: u32) -> Result<u32, Error> {
        let mut at = 0;
        for format in recipe.inputs() {
            let words = rows * format.words();
            if format.dtype.is_encoded() {
                let values = &mut self.arena.free()[at as usize..(at + words) as usize];
                let encoded = format.dtype.encode_all(values);
                encoded.map_err(|row| refused(*format, Some(row)))?;
            }
            at += aligned(words);
        }
        match recipe.scalar() {
            Some(format) => format
                .dtype
                .encode(scalar)
                .ok_or_else(|| refused(format, None)),
            None => Ok(0),
        }
    }

    /// The number of a set of tensors in this batch, for one more call.
    pub(super) fn set(&mut self, tensors: &[u32]) -> SetId {
        if tensors.is_empty() {
            return SetId::default(); // Most calls: no search.
        }
        self.read.extend_from_slice(tensors);
        let known = self.sets.iter().rposition(|set| **set == *tensors);
        let index = known.unwrap_or_else(|| {
            self.sets.push(tensors.into());
            self.sets.len() - 1
        });
        SetId(u32::try_from(index).expect("fewer than 2^32 sets"))
    }

    /// Whether a call, by its place, goes to the processor beside the device.
    pub(super) fn is_aside(&self, at: usize) -> bool {
        self.engines.get(at) == Some(&Engine::Cpu)
    }

    /// Whether a call of it asked for a device of this kind.
    pub(super) fn asks(&self, engine: Engine) -> bool {
        self.asked.iter().any(|(_, asked)| *asked == engine)
    }

    /// Claims the operands in the free room for a call, the last of which are so
    /// many numbers.
    pub(super) fn take(&mut self, ticket: Ticket, mut call: Call, numbers: u32) {
        call.inputs = self.arena.take(call.inputs.words);
        if numbers > 0 {
            let own = Span {
                at: call.inputs.at + call.inputs.words - aligned(numbers),
                words: numbers,
            };
            let (last, id) = &mut self.numbers;
            if last.words != numbers || self.arena.read(*last) != self.arena.read(own) {
                id.0 += 1;
            }
            *last = own;
            call.numbers = *id;
        }
        self.calls.push(call);
        self.tickets.push(ticket);
    }

    /// Keeps only calls that are still waited for, which come in the same order.
    pub(super) fn keep(&mut self, live: impl ExactSizeIterator<Item = Ticket>) {
        if live.len() == self.calls.len() {
            return;
        }
        let mut kept = 0;
        let mut live = live.peekable();
        for index in 0..self.calls.len() {
            if live.next_if_eq(&self.tickets[index]).is_some() {
                self.calls[kept] = self.calls[index];
                self.tickets[kept] = self.tickets[index];
                kept += 1;
            }
        }
        self.calls.truncate(kept);
        self.tickets.truncate(kept);
    }

    /// Puts the processor's calls aside.
    pub(super) fn part(&mut self) {
        let engines = std::mem::take(&mut self.engines);
        if !engines.contains(&Engine::Cpu) {
            return;
        }
        let all = Aside {
            calls: std::mem::take(&mut self.calls),
            tickets: std::mem::take(&mut self.tickets),
        };
        for ((call, ticket), engine) in all.calls.into_iter().zip(all.tickets).zip(engines) {
            let (calls, tickets) = match engine {
                Engine::Gpu => (&mut self.calls, &mut self.tickets),
                Engine::Cpu => (&mut self.aside.calls, &mut self.aside.tickets),
            };
            calls.push(call);
            tickets.push(ticket);
        }
    }

    /// Puts the calls that write to tensors in front of the others, if one of them is
    /// from a place on; whether that is so.
    pub(super) fn lead(&mut self, recipes: &[Recipe], from: usize) -> bool {
        let writes = |call: &Call| recipes[call.recipe.0 as usize].is_stored();
        if !self.calls[from..].iter().any(writes) {
            return false;
        }
        let calls = std::mem::take(&mut self.calls).into_iter();
        let all = calls.zip(std::mem::take(&mut self.tickets));
        let (leading, others): (Vec<_>, Vec<_>) = all.partition(|(call, _)| writes(call));
        self.leading = leading.len();
        (self.calls, self.tickets) = leading.into_iter().chain(others).unzip();
        true
    }

    /// Takes the calls that were put aside or in front back, all in order.
    pub(super) fn join(&mut self) {
        let leading = std::mem::take(&mut self.leading);
        let leading = Aside {
            calls: self.calls.drain(..leading).collect(),
            tickets: self.tickets.drain(..leading).collect(),
        };
        let aside = std::mem::take(&mut self.aside);
        self.merge(leading);
        self.merge(aside);
    }

    fn merge(&mut self, Aside { calls, tickets }: Aside) {
        if tickets.is_empty() {
            return;
        }
        let own = std::mem::take(&mut self.calls).into_iter();
        let mut own = own.zip(std::mem::take(&mut self.tickets)).peekable();
        for other in calls.into_iter().zip(tickets) {
            while let Some(older) = own.next_if(|own| own.1.is_before(other.1)) {
                self.calls.push(older.0);
                self.tickets.push(older.1);
            }
            self.calls.push(other.0);
            self.tickets.push(other.1);
        }
        let (calls, tickets): (Vec<Call>, Vec<Ticket>) = own.unzip();
        self.calls.extend(calls);
        self.tickets.extend(tickets);
    }

    /// Moves the marked calls to `other`, whose own are older, operands and all: they
    /// stay where they are if it has none.
    pub(super) fn divide(&mut self, leaves: &[bool], other: &mut Load) {
        let is_first = other.calls.is_empty();
        if is_first {
            other.arena = self.arena.share();
        }
        if self.oldest.is_before(other.oldest) {
            other.oldest = self.oldest;
        }
        other.is_sent = self.is_sent;
        other.losses = self.losses;
        other.doubts = other.doubts.max(self.doubts);
        other.shortages = self.shortages;
        other.asked.extend_from_slice(&self.asked);
        // Numbers of one batch are none of the other's, and nothing later is compared.
        let behind = other.numbers.1.0 + 1;
        other.numbers = (Span::default(), NumbersId(behind + self.numbers.1.0));
        let mut stays = leaves.iter().map(|leaves| !leaves);
        self.engines.retain(|_| stays.next() == Some(true));
        let calls = std::mem::take(&mut self.calls).into_iter();
        let tickets = std::mem::take(&mut self.tickets);
        for ((mut call, ticket), leaves) in calls.zip(tickets).zip(leaves) {
            let home = if *leaves { &mut *other } else { &mut *self };
            home.tickets.push(ticket);
            if *leaves {
                if !is_first {
                    call.inputs = other.arena.push(self.arena.read(call.inputs));
                }
                call.set = other.set(&self.sets[call.set.0 as usize]);
                call.numbers.0 += behind;
                other.calls.push(call);
            } else {
                self.calls.push(call);
            }
        }
    }

    /// The tensors that a call names behind its operands in the free room, in
    /// place of what `tensors` held.
    pub(super) fn tensors(&mut self, operands: u32, count: u32, tensors: &mut Vec<u32>) {
        tensors.clear();
        if count == 0 {
            return; // Most calls.
        }
        let (from, count) = (operands as usize, count as usize);
        let free = self.arena.free();
        tensors.extend(free[from.min(free.len())..].iter().take(count));
    }

    /// Forgets calls and operands; the tensors that they read.
    pub(super) fn clear(&mut self) -> Vec<u32> {
        self.arena.clear();
        self.calls.clear();
        self.tickets.clear();
        self.asked.clear();
        self.sets.truncate(1);
        self.numbers = Default::default();
        self.wasted = 0;
        std::mem::take(&mut self.read)
    }
}

fn refused(format: Format, row: Option<usize>) -> Error {
    let name = format.dtype.operand_name();
    let place = row.map_or_else(String::new, |row| format!("[{row}]"));
    Error::InvalidInput(format!("{name}{place} is NaN; give a number"))
}
