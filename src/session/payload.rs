//! The payload of a batch: the memory of its operands, the tensors that its calls name, and what is remembered of losses and of shortages of memory.
//!
//! The queue has the calls themselves and their weights.

use std::borrow::Borrow;

use super::router::Group;
use super::slabs::Place;
use super::tensor_table::TensorTable;
use crate::batch;
use crate::device::Engine;
use crate::error::Error;
use crate::plan::{self, NamedTensors, NumbersId, Recipe, SetId};
use crate::tensor::{Arena, Format, Span, aligned};

/// One batch of a session.
pub(super) type Batch = batch::Batch<Computation, Payload>;

/// One call of a batch.
pub(super) type Call = batch::Call<Computation>;

/// What a call computes, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Computation {
    /// The call as the planner sees it.
    pub(super) planned: plan::Call,
    /// The device that the caller names, if any.
    pub(super) wanted: Option<Engine>,
    /// Whether the CPU beside the GPU is to compute the call. Decided anew whenever the
    /// batch is about to be sent; `false` while the batch waits.
    pub(super) is_cpu_share: bool,
}

impl Borrow<plan::Call> for Call {
    fn borrow(&self) -> &plan::Call {
        &self.work.planned
    }
}

/// The numbers that come last in the operands of calls, such as a chain's constants.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// Where the numbers of the last call that has some lie.
    pub(super) last: Span,
    /// The id of those numbers: a call with the same numbers as the call before has the
    /// same id.
    pub(super) id: NumbersId,
}

/// The tensors that a call names, and the table that has their places.
#[derive(Clone, Copy)]
pub(super) struct Naming<'a> {
    /// The numbers of the tensors, in the order of the call's operands.
    pub(super) tensors: &'a [u32],
    pub(super) table: &'a TensorTable,
}

/// What a batch carries until its last call is answered.
#[derive(Debug)]
pub(super) struct Payload {
    /// The operands of the calls.
    pub(super) arena: Arena,
    /// The calls by structure, where they have a choice of devices, once they are routed.
    pub(super) groups: Vec<Group>,
    /// Sets of buffers that the tensors of calls lie in; the first is empty.
    sets: Vec<Box<[u32]>>,
    pub(super) numbers: Numbers,
    /// Every tensor that a call names, as often as one does.
    pub(super) read: Vec<u32>,
    /// For each of these the word of its buffer where the tensor begins.
    places: Vec<u32>,
    /// The tensors that calls write, in the order of the calls.
    pub(super) written: Vec<u32>,
    /// Words that given-up calls took in the open batch.
    pub(super) wasted: usize,
    /// Calls of the batch that were answered with errors.
    pub(super) failed: u64,
    /// Whether a call names the CPU as its device.
    pub(super) asks_cpu: bool,
    /// Whether the batch was sent before.
    pub(super) is_sent: bool,
    /// How many devices were lost while they were at work on the batch.
    pub(super) losses: u32,
    /// How many devices were lost that answered other calls while this batch waited for
    /// kernels.
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
            numbers: Numbers::default(),
            read: Vec::new(),
            places: Vec::new(),
            written: Vec::new(),
            wasted: 0,
            failed: 0,
            asks_cpu: false,
            is_sent: false,
            losses: 0,
            doubts: 0,
            shortages: 0,
        }
    }

    /// Encodes the operands in the free room as the core keeps them, and refuses values
    /// that a type refuses. Returns the scalar's word.
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

    /// Reads the tensors that a call names behind its operands in the free room, in place
    /// of what `tensors` held.
    pub(super) fn read_tensors(&mut self, operands: u32, count: u32, tensors: &mut Vec<u32>) {
        tensors.clear();
        if count == 0 {
            return; // Most calls name none.
        }
        let (from, count) = (operands as usize, count as usize);
        let free = self.arena.free();
        tensors.extend(free[from.min(free.len())..].iter().take(count));
    }

    /// Adds the tensors that one more call names.
    fn name(&mut self, call: &mut plan::Call, Naming { tensors, table }: Naming<'_>) {
        let at = self.read.len();
        call.tensors = Span {
            at: u32::try_from(at).expect("fewer than 2^32 tensors"),
            words: u32::try_from(tensors.len()).expect("a call names few tensors"),
        };
        call.set = SetId::default();
        if tensors.is_empty() {
            return; // Most calls name none: no search.
        }
        self.read.extend_from_slice(tensors);
        let places = tensors.iter().map(|tensor| table.place(*tensor));
        self.places.extend(places.clone().map(Place::at));
        let homes = places.map(Place::home);
        let mut sets = self.sets.iter();
        let known = sets.rposition(|set| set.iter().copied().eq(homes.clone()));
        let index = known.unwrap_or_else(|| {
            self.sets.push(homes.collect());
            self.sets.len() - 1
        });
        call.set = SetId(u32::try_from(index).expect("fewer than 2^32 sets"));
    }

    /// The tensors that calls name, as the planner sees them.
    pub(super) fn named(&self) -> NamedTensors<'_> {
        NamedTensors {
            sets: &self.sets,
            numbers: &self.read,
            places: &self.places,
        }
    }

    /// The tensors that a call names.
    pub(super) fn tensors_of(&self, call: &Call) -> &[u32] {
        &self.read[call.work.planned.tensors.range()]
    }

    /// Names the tensors of these calls anew, and forgets those that only other calls named.
    /// Returns the tensors that all calls named.
    pub(super) fn rename(&mut self, calls: Vec<&mut plan::Call>, table: &TensorTable) -> Vec<u32> {
        let read = std::mem::take(&mut self.read);
        self.places.clear();
        self.sets.truncate(1);
        for call in calls {
            let tensors = &read[call.tensors.range()];
            self.name(call, Naming { tensors, table });
        }
        read
    }

    /// Claims the operands in the free room for a call, and notes the tensors that the call
    /// names. So many numbers come last in the operands.
    pub(super) fn claim(&mut self, work: &mut Computation, naming: Naming<'_>, numbers: u32) {
        self.asks_cpu |= work.wanted == Some(Engine::Cpu);
        let call = &mut work.planned;
        self.name(call, naming);
        call.inputs = self.arena.take(call.inputs.words);
        if numbers > 0 {
            let own = Span {
                at: call.inputs.at + call.inputs.words - aligned(numbers),
                words: numbers,
            };
            let Numbers { last, id } = &mut self.numbers;
            if last.words != numbers || self.arena.read(*last) != self.arena.read(own) {
                id.0 += 1;
            }
            *last = own;
            call.numbers = *id;
        }
    }

    /// Notes that a call writes these tensors.
    pub(super) fn note_written(&mut self, tensors: &[u32]) {
        for tensor in tensors {
            if self.written.last() != Some(tensor) {
                self.written.push(*tensor);
            }
        }
    }

    /// Whether a call that names these tensors, and writes some, is to stay behind the calls of
    /// this batch: one of both writes what the other names.
    pub(super) fn precedes(&self, named: &[u32], written: &[u32]) -> bool {
        let names = |tensor: &u32| self.read.contains(tensor);
        self.written.iter().any(|tensor| named.contains(tensor)) || written.iter().any(names)
    }

    /// Forgets the operands. Returns the tensors that calls read.
    pub(super) fn clear(&mut self) -> Vec<u32> {
        self.arena.clear();
        self.sets.truncate(1);
        self.places.clear();
        self.written.clear();
        self.numbers = Numbers::default();
        self.wasted = 0;
        self.asks_cpu = false;
        std::mem::take(&mut self.read)
    }
}

impl Batch {
    /// The tensors that a call writes.
    pub(super) fn written<'a>(
        &'a self,
        recipes: &'a [Recipe],
        call: &Call,
    ) -> impl Iterator<Item = u32> + 'a {
        let recipe = &recipes[call.work.planned.recipe.0 as usize];
        recipe.written(self.payload.tensors_of(call))
    }

    /// Puts the CPU share of a batch that was routed behind the device's calls.
    pub(super) fn move_cpu_share_to_back(&mut self) {
        if self.calls().iter().any(|call| call.work.is_cpu_share) {
            self.move_to_back(|work| work.is_cpu_share);
        }
    }

    /// Forgets the routes of a batch that waits again.
    pub(super) fn forget_routes(&mut self) {
        let (works, payload) = self.works_and_payload();
        payload.groups.clear();
        works.for_each(|work| work.is_cpu_share = false);
    }

    /// Moves the marked calls to another batch, whose own calls are older. The operands
    /// move along; where the other batch has no calls, both share the memory.
    pub(super) fn move_marked(&mut self, leaves: &[bool], other: &mut Batch, table: &TensorTable) {
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
        others.written.extend_from_slice(&own.written);
        // The ids of one batch's numbers say nothing in the other, and later calls are
        // compared with none.
        let behind = others.numbers.id.0 + 1;
        others.numbers = Numbers {
            last: Span::default(),
            id: NumbersId(behind + own.numbers.id.0),
        };
        let mut leaving = self.extract(leaves);
        let (own, others) = (&self.payload, &mut other.payload);
        for call in &mut leaving {
            call.work.is_cpu_share = false;
            let planned = &mut call.work.planned;
            if !is_first {
                let operands = own.arena.read(planned.inputs);
                planned.inputs = others.arena.push(operands);
            }
            let tensors = &own.read[planned.tensors.range()];
            others.name(planned, Naming { tensors, table });
            planned.numbers.0 += behind;
        }
        other.append(leaving, self.origin);
    }
}

/// Whether the calls of a batch are to go before those of another one: one of both writes what
/// the other names.
pub(super) fn precedes_batch(batch: &Batch, other: &Batch) -> bool {
    let writes = |one: &Batch, other: &Batch| {
        let mut written = one.payload.written.clone();
        written.sort_unstable();
        let mut named = other.payload.read.iter();
        named.any(|tensor| written.binary_search(tensor).is_ok())
    };
    writes(batch, other) || writes(other, batch)
}

fn refused(format: Format, row: Option<usize>) -> Error {
    let name = format.dtype.operand_name();
    let place = row.map_or_else(String::new, |row| format!("[{row}]"));
    Error::InvalidInput(format!("{name}{place} is NaN; give a number"))
}
