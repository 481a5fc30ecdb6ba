//! Turns the calls of a chunk into a plan: results end to end, one dispatch a group and
//! stage, a slot for every intermediate until its last use.
//!
//! Which calls form a group is said in `groups`.

use std::borrow::Borrow;

use super::call::Shares;
use super::copy_runs::Gather;
use super::groups::{Batch, Collected, Group};
use super::schedule::Run;
use super::search::{self, queries};
use super::{Call, Chunk, Dispatch, Operand, Plan, Recipe, Slot, Step};
use crate::graph::searching::Searching;
use crate::kernel::Settings;
use crate::program::{Body, BufferId, Source, Target};

/// Plans a chunk of a batch. Calls of one program become one dispatch a
/// stage, if they read the same tensors on the device; `sets` holds these.
pub fn assemble<C: Borrow<Call>>(
    recipes: &[Recipe],
    calls: &[C],
    sets: &[Box<[u32]>],
    chunk: &Chunk,
) -> Plan {
    let batch = Batch {
        recipes,
        calls,
        sets,
        before: &[],
    };
    batch.plan(chunk)
}

impl<C: Borrow<Call>> Batch<'_, C> {
    /// Plans a chunk.
    pub(super) fn plan(&self, chunk: &Chunk) -> Plan {
        if self.calls.is_empty() {
            return Plan::default(); // Nothing was asked: there is nothing to do.
        }
        let mut collected = Collected::new(self, chunk.end - chunk.first);
        for index in chunk.first..chunk.end {
            collected.add(self.calls[index].borrow(), chunk.part(self.calls, index));
        }
        Builder::default().build(self.recipes, self.sets, collected)
    }
}

/// Steps and slots, as they are laid out.
#[derive(Default)]
struct Builder {
    plan: Plan,
    /// Scratch slots that nobody uses at the moment.
    idle: Vec<Slot>,
}

impl Builder {
    fn build(mut self, recipes: &[Recipe], sets: &[Box<[u32]>], collected: Collected<'_>) -> Plan {
        let Gather { runs, words } = collected.gather;
        // The operands, the results; scratch follows.
        self.plan.slots = vec![words, collected.result_words];
        self.plan.results = collected.results;
        self.plan.steps.push(Step::Upload {
            slot: Slot::INPUTS,
            words,
            runs,
        });
        // Tensors are written before anything of the batch reads them.
        let is_stored = |group: &Group| recipes[group.recipe.0 as usize].is_stored();
        let (first, rest): (Vec<Group>, Vec<Group>) =
            collected.groups.into_iter().partition(is_stored);
        for group in first.into_iter().chain(rest) {
            let set = sets.get(group.set.0 as usize);
            let recipe = &recipes[group.recipe.0 as usize];
            self.group(recipe, group, set.map_or(&[][..], |set| set));
        }
        self.plan.steps.push(Step::Download {
            slot: Slot::RESULTS,
            words: collected.result_words,
        });
        self.plan
    }

    /// The steps of a program, for all its calls; `set` are their tensors.
    fn group(&mut self, recipe: &Recipe, group: Group, set: &[u32]) {
        let schedule = &recipe.schedule;
        let mut places = Places {
            recipe,
            homes: vec![Slot::RESULTS; group.filled.len()],
            set,
        };
        let mut is_made = vec![false; group.filled.len()];
        let runs = schedule.runs.iter().zip(group.stages);
        for (at, (run, calls)) in runs.enumerate() {
            let stage = &schedule.program.stages[run.stage];
            if let Some(BufferId(buffer)) = stage.buffer() {
                let index = buffer as usize;
                if run.output.is_none() && !is_made[index] {
                    places.homes[index] = self.scratch(group.filled[index]);
                }
                is_made[index] = true;
            }
            match &stage.body {
                Body::Search(searching) => self.search(searching, &calls, set),
                _ => {
                    let dispatch = places.dispatch(*run, group.calls, calls);
                    self.plan.steps.push(Step::Dispatch(dispatch));
                }
            }
            // Invariant: a slot is freed after its last reader, never during.
            for (buffer, home) in (0..).map(BufferId).zip(&places.homes) {
                if *home != Slot::RESULTS && schedule.is_last_reader(at, buffer) {
                    self.free(*home);
                }
            }
        }
    }

    /// The steps of searches of one index.
    fn search(&mut self, searching: &Searching, calls: &Shares, set: &[u32]) {
        let steps = search::Steps {
            searching,
            queries: &queries(searching, calls),
            set,
        };
        let slot = self.scratch(steps.scratch());
        let dispatches = steps.dispatches(slot);
        (self.plan.steps).extend(dispatches.into_iter().map(Step::Dispatch));
        self.free(slot);
    }

    /// A scratch slot of so many words: an idle one, or a new one.
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

/// Where what a group's stages read and write is.
struct Places<'a> {
    recipe: &'a Recipe,
    /// The slots of the program's buffers.
    homes: Vec<Slot>,
    /// The tensors that the calls name.
    set: &'a [u32],
}

impl Places<'_> {
    /// A stage at work for so many calls.
    fn dispatch(&self, run: Run, calls: u32, shares: Shares) -> Dispatch {
        let schedule = &self.recipe.schedule;
        let stage = &schedule.program.stages[run.stage];
        Dispatch {
            kernel: schedule.kernel(run.stage, &shares),
            settings: match &stage.body {
                Body::Named(_, settings) => *settings,
                _ => Settings::default(),
            },
            operands: stage.sources().map(|source| self.operand(source)).collect(),
            output: match stage.target {
                Target::Buffer(buffer) => self.homes[buffer.0 as usize],
                Target::Resident(input) => self.tensor(input),
            },
            row_words: self
                .recipe
                .results
                .first()
                .map_or(0, |result| result.per_row),
            calls,
            segments: shares.segments,
            entries: shares.entries,
        }
    }

    fn operand(&self, source: Source) -> Operand {
        let (slot, words) = match source {
            Source::Scalar => return Operand::Scalar,
            Source::Input(input) => {
                let operand = self.recipe.places[input as usize];
                (Slot::INPUTS, self.recipe.operands[operand].per_row)
            }
            Source::Resident(input) => (self.tensor(input), 0),
            Source::Buffer(buffer) => (self.homes[buffer.0 as usize], 0),
        };
        Operand::Rows { slot, words }
    }

    fn tensor(&self, input: u32) -> Slot {
        Slot::resident(self.set[self.recipe.places[input as usize]])
    }
}
