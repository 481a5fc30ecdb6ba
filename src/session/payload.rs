//! What a batch of a session carries: the memory of its operands, the sets of tensors
//! that its calls name, and what is remembered of losses and of shortages of memory.
//!
//! The calls themselves and their weights are the queue's.

use std::borrow::Borrow;

use super::router::Group;
use crate::batch;
use crate::device::Engine;
use crate::error::Error;
use crate::plan::{self, NumbersId, Recipe, SetId};
use crate::tensor::{Arena, Format, Span, aligned};

/// One batch of a session.
pub(super) type Batch = batch::Batch<Work, Payload>;

/// One call of a batch.
pub(super) type Call = batch::Call<Work>;

/// What a call computes, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// The call as the planner sees it.
    pub(super) planned: plan::Call,
    /// The device that the caller names, if any.
    pub(super) wanted: Option<Engine>,
    /// Whether the processor beside the GPU is to compute it: said anew whenever the
    /// batch is about to be sent, and of no batch that waits.
    pub(super) is_cpu_share: bool,
}

impl Borrow<plan::Call> for Call {
    fn borrow(&self) -> &plan::Call {
        &self.work.planned
    }
}

/// What a batch carries until its last call is answered.
#[derive(Debug)]
pub(super) struct Payload {
    /// Operands of its calls.
    pub(super) arena: Arena,
    /// Its calls by structure, where they have a choice of devices, once they are routed.
    pub(super) groups: Vec<Group>,
    /// Sets of tensors that calls read on the device; the first is empty.
    pub(super) sets: Vec<Box<[u32]>>,
    /// Where the numbers of the last call that has some are, and which they are.
    pub(super) numbers: (Span, NumbersId),
    /// Every tensor that a call reads, as often as one does.
    pub(super) read: Vec<u32>,
    /// Words that calls which were given up took in the open batch.
    pub(super) wasted: usize,
    /// Whether a call that it was given names the processor as its device.
    pub(super) asks_cpu: bool,
    /// Whether it was sent before.
    pub(super) is_sent: bool,
    /// Losses of a device that was at work on it.
    pub(super) losses: u32,
    /// Losses of a device that answered others while it waited for kernels.
    pub(super) doubts: u32,
    /// Failed attempts for lack of GPU memory; each one halves the size of chunks.
    pub(super) shortages: u32,
}

impl Payload {
    pub(super) fn new(arena: Arena) -> Self {
        Payload {
            arena,
            groups: Vec::new(),
            sets: vec![Box::default()],
            numbers: Default::default(),
            read: Vec::new(),
            wasted: 0,
            asks_cpu: false,
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
        for format in recipe.formats() {
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

    /// The tensors that a call names.
    pub(super) fn tensors_of(&self, call: &Call) -> &[u32] {
        &self.sets[call.work.planned.set.0 as usize]
    }

    /// Claims the operands in the free room for a call, the last of which are so
    /// many numbers, and notes the tensors that it names.
    pub(super) fn take(&mut self, work: &mut Work, tensors: &[u32], numbers: u32) {
        self.asks_cpu |= work.wanted == Some(Engine::Cpu);
        let call = &mut work.planned;
        call.set = self.set(tensors);
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
    }

    /// Forgets operands; the tensors that calls read.
    pub(super) fn clear(&mut self) -> Vec<u32> {
        self.arena.clear();
        self.sets.truncate(1);
        self.numbers = Default::default();
        self.wasted = 0;
        self.asks_cpu = false;
        std::mem::take(&mut self.read)
    }
}

impl Batch {
    /// The tensor that a call writes, if it does.
    pub(super) fn written(&self, recipes: &[Recipe], call: &Call) -> Option<u32> {
        let recipe = &recipes[call.work.planned.recipe.0 as usize];
        recipe.written(self.payload.tensors_of(call))
    }

    /// Puts the processor's share of a batch that was routed behind the device's.
    pub(super) fn part(&mut self) {
        if self.calls().iter().any(|call| call.work.is_cpu_share) {
            self.move_to_back(|work| work.is_cpu_share);
        }
    }

    /// Puts the device's calls that write to tensors in front of the others, if one of
    /// them is from a place on; whether that is so.
    pub(super) fn lead(&mut self, recipes: &[Recipe], from: usize) -> bool {
        let writes = |work: &Work| recipes[work.planned.recipe.0 as usize].is_stored();
        let has_more = self.ahead()[from..].iter().any(|call| writes(&call.work));
        if has_more {
            self.move_to_front(writes);
        }
        has_more
    }

    /// Forgets where the calls of a batch that waits again were to go.
    pub(super) fn forget_routes(&mut self) {
        let (works, payload) = self.works_and_payload();
        payload.groups.clear();
        works.for_each(|work| work.is_cpu_share = false);
    }

    /// Moves the marked calls to another batch, whose own are older, operands and all:
    /// these stay where they are if that one has none.
    pub(super) fn divide(&mut self, leaves: &[bool], other: &mut Batch) {
        let is_first = other.calls().is_empty();
        let (own, others) = (&self.payload, &mut other.payload);
        if is_first {
            others.arena = own.arena.share();
        }
        others.is_sent = own.is_sent;
        others.losses = own.losses;
        others.doubts = others.doubts.max(own.doubts);
        others.shortages = own.shortages;
        others.asks_cpu |= own.asks_cpu;
        // Numbers of one batch are none of the other's, and nothing later is compared.
        let behind = others.numbers.1.0 + 1;
        others.numbers = (Span::default(), NumbersId(behind + own.numbers.1.0));
        let mut leaving = self.extract(leaves);
        let (own, others) = (&self.payload, &mut other.payload);
        for call in &mut leaving {
            call.work.is_cpu_share = false;
            let planned = &mut call.work.planned;
            if !is_first {
                let operands = own.arena.read(planned.inputs);
                planned.inputs = others.arena.push(operands);
            }
            planned.set = others.set(&own.sets[planned.set.0 as usize]);
            planned.numbers.0 += behind;
        }
        other.append(leaving, self.origin);
    }
}

fn refused(format: Format, row: Option<usize>) -> Error {
    let name = format.dtype.operand_name();
    let place = row.map_or_else(String::new, |row| format!("[{row}]"));
    Error::InvalidInput(format!("{name}{place} is NaN; give a number"))
}
