//! Merges the calls of a chunk that have one program, bind the same buffers and are of one phase, and gives every call its addresses.
//!
//! Each call has one entry for each stage; calls whose rows lie end to end may share an
//! entry. Which slots the addresses are in is not decided here.

use std::borrow::Borrow;
use std::sync::Arc;

use super::call::SegmentList;
use super::copy_runs::CopyRuns;
use super::phases::Phases;
use super::schedule::{Schedule, StageRun};
use super::slicing::Slicing;
use super::{Call, Chunk, NamedTensors, NumbersId, Recipe, RecipeId, RowSlice, Segment, SetId};
use crate::program::{Access, Body, Sizes, Source, Stage, StageSizes, Target};
use crate::tensor::{Span, aligned};

/// The calls that a chunk is taken from.
pub(super) struct ChunkSource<'a, C> {
    pub(super) recipes: &'a [Recipe],
    pub(super) calls: &'a [C],
    /// The resident tensors that calls name.
    pub(super) tensors: NamedTensors<'a>,
    /// For each tensor of the only set, where that tensor is a shard, the words of the shards
    /// in front. Empty where no call reads shards.
    pub(super) before: &'a [u32],
}

/// The calls of a chunk, merged and with their addresses.
pub(super) struct ChunkLayout<'a> {
    recipes: &'a [Recipe],
    tensors: NamedTensors<'a>,
    /// The phases of the calls; `None` where no call writes a tensor, so that one phase has all.
    phases: Option<Phases>,
    /// The calls before each chunk, as in [`ChunkSource`].
    before: &'a [u32],
    pub(super) copies: CopyRuns,
    pub(super) merged: Vec<MergedCalls>,
    /// For each recipe the merged calls that its last call was added to.
    merged_with: Vec<Option<usize>>,
    /// Where the result of each call lies, in the order of the calls.
    pub(super) results: Vec<Span>,
    /// The last call's numbers that were laid out, and the address of their copy.
    numbers: Option<(NumbersId, u32)>,
    /// Words of results laid out so far.
    pub(super) result_words: u32,
}

/// Calls that are computed together.
pub(super) struct MergedCalls {
    /// The recipe of the first call.
    pub(super) recipe: RecipeId,
    pub(super) set: SetId,
    pub(super) phase: u32,
    /// What is computed: one of the forms of the recipe.
    pub(super) schedule: Arc<Schedule>,
    /// How many calls there are so far.
    pub(super) calls: u32,
    /// For each stage that is run, the segments of the calls.
    pub(super) stages: Vec<SegmentList>,
    /// Words so far of each buffer of the program.
    pub(super) filled: Vec<u32>,
    /// `filled` before the last call was added: the words where that call's intermediates begin.
    starts: Vec<u32>,
}

/// A slice of a call, and where its data lies.
struct AddressedCall<'a> {
    recipe: &'a Recipe,
    schedule: &'a Schedule,
    sizes: &'a Sizes,
    slice: RowSlice,
    scalar: u32,
    /// The word of its target that the call's first stored element goes to.
    stored: u32,
    /// The word where the operands begin.
    inputs: u32,
    /// The word where the numbers begin.
    numbers: u32,
    /// The words where the resident tensors begin that the call names.
    places: &'a [u32],
    /// The calls before each chunk, as in [`ChunkSource`].
    before: &'a [u32],
    /// The word where the result begins.
    result: u32,
}

impl<'a> ChunkLayout<'a> {
    /// An empty layout with room for the calls of a chunk.
    pub(super) fn new<C: Borrow<Call>>(
        source: &ChunkSource<'a, C>,
        chunk: &Chunk,
    ) -> ChunkLayout<'a> {
        let recipes = source.recipes;
        let mut own = source.calls[chunk.first..chunk.end].iter();
        let is_stored = |call: &C| recipes[call.borrow().recipe.0 as usize].is_stored();
        ChunkLayout {
            recipes,
            tensors: source.tensors,
            phases: own.any(is_stored).then(Phases::default),
            before: source.before,
            copies: CopyRuns::default(),
            merged: Vec::new(),
            merged_with: vec![None; source.recipes.len()],
            results: Vec::with_capacity(chunk.end - chunk.first),
            numbers: None,
            result_words: 0,
        }
    }

    /// Adds a slice of a call.
    pub(super) fn add(&mut self, call: &Call, slice: RowSlice) {
        let (recipes, before, tensors) = (self.recipes, self.before, self.tensors);
        let recipe = &recipes[call.recipe.0 as usize];
        let inputs = self.copies.add(recipe, call, slice);
        let result = Span {
            at: self.result_words,
            words: recipe.words_of(slice.rows),
        };
        self.result_words = self.result_words.saturating_add(aligned(result.words));
        self.results.push(result);
        let own = match slice.rows == call.rows {
            true => None,
            false => recipe.sizes_of(slice.rows),
        };
        let numbers = self.numbers(recipe, call, inputs, slice.rows);
        let by_scratch = recipe.form_by_scratch(self.tensors.set(call));
        let (schedule, sizes) = match by_scratch {
            Some(form) => (&form.schedule, &form.sizes),
            None => (&recipe.schedule, &recipe.sizes),
        };
        self.merged_calls(call, schedule).add(&AddressedCall {
            recipe,
            schedule,
            sizes: own.as_deref().unwrap_or(sizes),
            slice,
            scalar: call.scalar,
            stored: recipe.offset(call),
            inputs,
            numbers,
            places: tensors.places_of(call),
            before,
            result: result.at,
        });
    }

    /// The address of a call's numbers: those of the call before, if both have the same.
    fn numbers(&mut self, recipe: &Recipe, call: &Call, inputs: u32, rows: u32) -> u32 {
        if recipe.numbers() == 0 {
            return 0; // No stage reads the address.
        }
        let known = self.numbers.filter(|(id, _)| *id == call.numbers);
        let own = || recipe.address(recipe.operands.len() - 1, inputs, rows);
        let (_, at) = *(self.numbers).insert(known.unwrap_or_else(|| (call.numbers, own())));
        at
    }

    /// How many phases the calls have.
    pub(super) fn phases(&self) -> u32 {
        self.phases.as_ref().map_or(1, |phases| phases.count)
    }

    /// The merged calls that a call belongs to: all calls of one phase and of equal programs that
    /// bind the same buffers, whatever the shapes and wherever tensors lie in the buffers.
    fn merged_calls(&mut self, call: &Call, schedule: &Arc<Schedule>) -> &mut MergedCalls {
        let recipe = &self.recipes[call.recipe.0 as usize];
        let named = self.tensors.numbers_of(call);
        let phase = self.phases.as_mut().map_or(0, |phases| {
            let is_written = |tensor| recipe.written(named).any(|written| written == tensor);
            phases.add(named, &is_written, call.stored)
        });
        let belongs = |known: &MergedCalls| {
            known.set == call.set && known.phase == phase && Arc::ptr_eq(&known.schedule, schedule)
        };
        let known = match self.merged_with[call.recipe.0 as usize] {
            Some(index) if belongs(&self.merged[index]) => Some(index),
            _ => self.merged.iter().position(belongs),
        };
        let index = known.unwrap_or_else(|| {
            self.merged.push(MergedCalls {
                recipe: call.recipe,
                set: call.set,
                phase,
                schedule: Arc::clone(schedule),
                calls: 0,
                stages: vec![SegmentList::default(); schedule.runs.len()],
                filled: vec![0; schedule.program.buffers as usize],
                starts: Vec::new(),
            });
            self.merged.len() - 1
        });
        self.merged_with[call.recipe.0 as usize] = Some(index);
        &mut self.merged[index]
    }
}

impl MergedCalls {
    /// Adds a slice of a call.
    fn add(&mut self, call: &AddressedCall<'_>) {
        // Intermediates lie end to end, call after call. A count of words that passes 32 bits
        // stops at the largest one, which no device holds: such a chunk is halved.
        self.starts.clone_from(&self.filled);
        for (filled, words) in self.filled.iter_mut().zip(&call.sizes.buffers) {
            *filled = filled.saturating_add(aligned(*words));
        }
        let schedule = call.schedule;
        for (run, list) in schedule.runs.iter().zip(&mut self.stages) {
            let start = list.entries.len();
            call.append_entry(*run, &self.starts, &mut list.entries);
            let segment = call.segment(*run, &self.starts);
            schedule.coalesce_rules[run.stage].push(segment, list, start);
        }
        self.calls += 1;
    }
}

impl AddressedCall<'_> {
    /// The call's segment of a stage; `starts` are the words where the call's intermediates
    /// begin.
    fn segment(&self, run: StageRun, starts: &[u32]) -> Segment {
        let stage = &self.schedule.program.stages[run.stage];
        let sizes = &self.sizes.stages[run.stage];
        let start = match (run.output, stage.target) {
            (Some(output), _) => self.result.saturating_add(self.start(output)),
            (None, Target::Buffer(buffer)) => starts[buffer.0 as usize],
            // The kernels of samplings and insertions read among the operands where they write.
            (None, Target::Resident(_)) if self.recipe.store.is_none() => 0,
            (None, Target::Resident(input)) => self.place(input).saturating_add(self.stored),
        };
        Segment {
            rows: self.threads(stage, sizes),
            // An address wraps only in a plan that no device holds.
            result: start.wrapping_add(sizes.result),
        }
    }

    /// The word of its buffer where an input begins that is a resident tensor.
    fn place(&self, input: u32) -> u32 {
        let tensor = self.recipe.ordinals[input as usize];
        self.places.get(tensor).copied().unwrap_or(0)
    }

    /// The threads of a stage, or the rows of a named kernel.
    fn threads(&self, stage: &Stage, sizes: &StageSizes) -> u32 {
        match (&stage.body, &self.recipe.slicing) {
            (Body::Named(..) | Body::Search(_), _) => self.slice.rows.saturating_mul(sizes.threads),
            (_, Slicing::Elements) => self.slice.rows.div_ceil(4),
            _ => sizes.threads,
        }
    }

    /// The word where an output begins within the call's result.
    fn start(&self, output: usize) -> u32 {
        let before = &self.schedule.program.outputs[..output];
        before.iter().fold(0, |next, output| {
            aligned(self.sizes.buffers[output.0 as usize]).saturating_add(next)
        })
    }

    /// Appends what the call's entry of a stage holds behind the address of the result.
    fn append_entry(&self, run: StageRun, starts: &[u32], entries: &mut Vec<u32>) {
        let recipe = self.recipe;
        let stage = &self.schedule.program.stages[run.stage];
        let sizes = &self.sizes.stages[run.stage];
        for (load, offset) in stage.loads.iter().zip(&sizes.offsets) {
            let base = match load.source {
                _ if load.access == Access::Found => continue,
                Source::Input(input) => {
                    let operand = recipe.ordinals[input as usize];
                    recipe.address(operand, self.inputs, self.slice.rows)
                }
                Source::Scalar => self.scalar,
                Source::Resident(input) => {
                    let tensor = recipe.ordinals[input as usize];
                    let before = self.before.get(tensor).unwrap_or(&0);
                    let row = self.slice.first * recipe.tensors[tensor] - before;
                    self.place(input).saturating_add(row)
                }
                Source::Buffer(buffer) => starts[buffer.0 as usize],
            };
            // An offset wraps where a stride is negative.
            entries.push(base.wrapping_add(*offset));
        }
        if stage.has_constants() {
            entries.push(self.numbers);
        }
        let from = entries.len();
        entries.extend_from_slice(&sizes.words);
        if let (Body::Map(map), Slicing::Elements) = (&stage.body, &recipe.slicing)
            && map.is_counted()
        {
            entries[from] = self.slice.rows; // Elements of the slice, which come first.
        }
    }
}
