//! Turns the calls of a chunk into a plan: results end to end, one dispatch for each stage of
//! merged calls, a slot for every intermediate until its last use.
//!
//! The calls that are merged are chosen in `merging`.

use std::borrow::Borrow;

use super::call::SegmentList;
use super::copy_runs::CopyRuns;
use super::merging::{ChunkLayout, ChunkSource, MergedCalls};
use super::schedule::{Schedule, StageRun};
use super::search::{self, queries};
use super::{Call, Chunk, Dispatch, NamedTensors, Operand, Plan, Recipe, Slot, Step};
use crate::graph::searching::Searching;
use crate::kernel::Settings;
use crate::program::{Body, BufferId, Source, Target};

/// Plans a chunk of a batch. Calls of one program whose tensors lie in the same buffers become
/// one dispatch a stage.
pub fn assemble<C: Borrow<Call>>(
    recipes: &[Recipe],
    calls: &[C],
    tensors: NamedTensors<'_>,
    chunk: &Chunk,
) -> Plan {
    let source = ChunkSource {
        recipes,
        calls,
        tensors,
        before: &[],
    };
    source.plan(chunk)
}

impl<C: Borrow<Call>> ChunkSource<'_, C> {
    /// Plans the chunk.
    pub(super) fn plan(&self, chunk: &Chunk) -> Plan {
        if self.calls.is_empty() {
            return Plan::default(); // Nothing was asked: there is nothing to do.
        }
        let mut layout = ChunkLayout::new(self, chunk);
        for index in chunk.first..chunk.end {
            layout.add(self.calls[index].borrow(), chunk.rows_of(self.calls, index));
        }
        Builder::default().build(self.recipes, self.tensors.sets, layout)
    }
}

/// A plan while its steps and slots are added.
#[derive(Default)]
struct Builder {
    plan: Plan,
    /// Scratch slots that hold nothing which a later step reads.
    idle: Vec<Slot>,
}

impl Builder {
    fn build(mut self, recipes: &[Recipe], sets: &[Box<[u32]>], layout: ChunkLayout<'_>) -> Plan {
        let phases = layout.phases();
        let CopyRuns { runs, words } = layout.copies;
        // In the order of their numbers: `INPUTS`, `RESULTS`, and later scratch slots.
        self.plan.slots = vec![words, layout.result_words];
        self.plan.results = layout.results;
        self.plan.steps.push(Step::Upload {
            slot: Slot::INPUTS,
            words,
            runs,
        });
        let mut all: Vec<Option<MergedCalls>> = layout.merged.into_iter().map(Some).collect();
        // Invariant: each phase finds what those before it wrote.
        for phase in 0..phases {
            for merged in &mut all {
                let Some(own) = merged.take_if(|merged| merged.phase == phase) else {
                    continue;
                };
                let set = sets.get(own.set.0 as usize);
                let recipe = &recipes[own.recipe.0 as usize];
                self.add_program(recipe, own, set.map_or(&[][..], |set| set));
            }
        }
        self.plan.steps.push(Step::Download {
            slot: Slot::RESULTS,
            words: layout.result_words,
        });
        self.plan
    }

    /// Adds the steps of merged calls, stage by stage; `set` are the buffers of the resident
    /// tensors that these calls name.
    fn add_program(&mut self, recipe: &Recipe, merged: MergedCalls, set: &[u32]) {
        let schedule = &*merged.schedule;
        let mut slots = ProgramSlots {
            recipe,
            schedule,
            buffers: vec![Slot::RESULTS; merged.filled.len()],
            set,
        };
        let mut is_made = vec![false; merged.filled.len()];
        let runs = schedule.runs.iter().zip(merged.stages);
        for (at, (run, calls)) in runs.enumerate() {
            let stage = &schedule.program.stages[run.stage];
            if let Some(BufferId(buffer)) = stage.buffer() {
                let index = buffer as usize;
                if run.output.is_none() && !is_made[index] {
                    slots.buffers[index] = self.scratch(merged.filled[index]);
                }
                is_made[index] = true;
            }
            match &stage.body {
                Body::Search(searching) => self.search(searching, &calls, set),
                _ => {
                    let dispatch = slots.dispatch(*run, merged.calls, calls);
                    self.plan.steps.push(Step::Dispatch(dispatch));
                }
            }
            // Invariant: a slot is freed after its last reader, never during.
            for (buffer, slot) in (0..).map(BufferId).zip(&slots.buffers) {
                if *slot != Slot::RESULTS && schedule.is_last_reader(at, buffer) {
                    self.free(*slot);
                }
            }
        }
    }

    /// Adds the steps of searches of one index.
    fn search(&mut self, searching: &Searching, calls: &SegmentList, set: &[u32]) {
        let steps = search::SearchSteps {
            searching,
            queries: &queries(searching, calls),
            set,
        };
        let slot = self.scratch(steps.scratch());
        let dispatches = steps.dispatches(slot);
        (self.plan.steps).extend(dispatches.into_iter().map(Step::Dispatch));
        self.free(slot);
    }

    /// Takes a scratch slot of at least so many words: an idle one, or a new one.
    fn scratch(&mut self, words: u32) -> Slot {
        let slot = self.idle.pop().unwrap_or_else(|| {
            let number = u32::try_from(self.plan.slots.len()).expect("few slots");
            self.plan.slots.push(0);
            Slot(number)
        });
        let size = &mut self.plan.slots[slot.0 as usize];
        *size = words.max(*size);
        slot
    }

    fn free(&mut self, slot: Slot) {
        self.plan.steps.push(Step::Free { slot });
        self.idle.push(slot);
    }
}

/// The slots that the stages of a program read and write.
struct ProgramSlots<'a> {
    recipe: &'a Recipe,
    /// The form of the recipe that is computed.
    schedule: &'a Schedule,
    /// The slot of each buffer of the program.
    buffers: Vec<Slot>,
    /// The buffers of the resident tensors that the calls name.
    set: &'a [u32],
}

impl ProgramSlots<'_> {
    /// The dispatch of a stage for so many calls.
    fn dispatch(&self, run: StageRun, calls: u32, list: SegmentList) -> Dispatch {
        let schedule = self.schedule;
        let stage = &schedule.program.stages[run.stage];
        Dispatch {
            kernel: schedule.kernel(run.stage, &list),
            settings: match &stage.body {
                Body::Named(_, settings) => *settings,
                _ => Settings::default(),
            },
            operands: stage.sources().map(|source| self.operand(source)).collect(),
            output: match stage.target {
                Target::Buffer(buffer) => self.buffers[buffer.0 as usize],
                Target::Resident(input) => self.tensor(input),
            },
            row_words: self
                .recipe
                .results
                .first()
                .map_or(0, |result| result.per_row),
            calls,
            segments: list.segments,
            entries: list.entries,
        }
    }

    fn operand(&self, source: Source) -> Operand {
        let (slot, words) = match source {
            Source::Scalar => return Operand::Scalar,
            Source::Input(input) => {
                let operand = self.recipe.ordinals[input as usize];
                (Slot::INPUTS, self.recipe.operands[operand].per_row)
            }
            Source::Resident(input) => (self.tensor(input), 0),
            Source::Buffer(buffer) => (self.buffers[buffer.0 as usize], 0),
        };
        Operand::Rows { slot, words }
    }

    fn tensor(&self, input: u32) -> Slot {
        Slot::resident(self.set[self.recipe.ordinals[input as usize]])
    }
}
