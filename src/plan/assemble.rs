//! Turns the calls of a piece into a plan: results end to end, one dispatch a group and
//! stage, a slot for every intermediate until its last use.
//!
//! Which calls form a group is said in `groups`.

use std::borrow::Borrow;

use super::gather::Gather;
use super::groups::{Collected, Group};
use super::schedule::Run;
use super::search::{self, queries};
use super::{Dispatch, Piece, Plan, Recipe, Segment, Slot, Step};
use crate::graph::searching::Searching;
use crate::kernel::Settings;
use crate::program::{Body, BufferId};
use crate::tensor::Span;

/// A structure's number in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecipeId(pub u32);

/// A call as the planner sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its structure.
    pub recipe: RecipeId,
    /// Its rows.
    pub rows: u32,
    /// Its operands in the arena.
    pub inputs: Span,
    /// Its scalar, encoded; 0 where the structure has none.
    pub scalar: u32,
    /// Which of the batch's sets of tensors it reads.
    pub set: SetId,
    /// Which numbers came with it.
    pub numbers: NumbersId,
}

/// Calls in a row of one batch that name the same have the same numbers, bit for
/// bit, and may read one copy of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumbersId(pub u32);

/// Tensors on the device that calls read together, counted over the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetId(pub u32);

/// Plans a piece of a batch. Calls of one program become one dispatch a
/// stage, if they read the same tensors on the device; `sets` holds these.
pub fn assemble<C: Borrow<Call>>(
    recipes: &[Recipe],
    calls: &[C],
    sets: &[Box<[u32]>],
    piece: &Piece,
) -> Plan {
    assemble_from((recipes, &[]), calls, sets, piece)
}

/// The same where tensors begin so many words behind the first row of their call, each
/// by its place in the only set; 0 where there is no number for one.
pub(super) fn assemble_from<C: Borrow<Call>>(
    (recipes, before): (&[Recipe], &[u32]),
    calls: &[C],
    sets: &[Box<[u32]>],
    piece: &Piece,
) -> Plan {
    if calls.is_empty() {
        return Plan::default(); // Nothing was asked: there is nothing to do.
    }
    let mut collected = Collected::new(recipes.len(), piece.end - piece.first);
    for index in piece.first..piece.end {
        let call = calls[index].borrow();
        collected.add(recipes, (call, before), piece.part(calls, index));
    }
    Builder::default().build((recipes, sets), collected)
}

/// Steps and slots, as they are laid out.
#[derive(Default)]
struct Builder {
    plan: Plan,
    /// Scratch slots that nobody uses at the moment.
    idle: Vec<Slot>,
}

impl Builder {
    fn build(mut self, (recipes, sets): (&[Recipe], &[Box<[u32]>]), collected: Collected) -> Plan {
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
            let set = sets.get(group.set.0 as usize).map_or(&[][..], |set| set);
            self.group(&recipes[group.recipe.0 as usize], group, set);
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
        let mut homes = vec![Slot::RESULTS; group.filled.len()];
        let mut is_made = vec![false; homes.len()];
        let runs = schedule.runs.iter().zip(group.stages);
        for (at, (run, calls)) in runs.enumerate() {
            let stage = &schedule.program.stages[run.stage];
            if let Some(BufferId(buffer)) = stage.buffer() {
                let index = buffer as usize;
                if run.output.is_none() && !is_made[index] {
                    homes[index] = self.scratch(group.filled[index]);
                }
                is_made[index] = true;
            }
            match &stage.body {
                Body::Search(searching) => self.search(searching, &calls, set),
                _ => {
                    let dispatch = dispatch(recipe, *run, (&homes, set), (group.calls, calls));
                    self.plan.steps.push(Step::Dispatch(dispatch));
                }
            }
            // Invariant: a slot is freed after its last reader, never during.
            for (buffer, home) in (0..).map(BufferId).zip(&homes) {
                if *home != Slot::RESULTS && schedule.is_last_reader(at, buffer) {
                    self.free(*home);
                }
            }
        }
    }

    /// The steps of searches of one index.
    fn search(&mut self, searching: &Searching, calls: &(Vec<Segment>, Vec<u32>), set: &[u32]) {
        let steps = search::Steps {
            searching,
            queries: &queries(searching, (&calls.0, &calls.1)),
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

/// A stage at work for all calls of a group; `homes` are the slots of the program's
/// buffers, and `set` the tensors that the calls name.
fn dispatch(
    recipe: &Recipe,
    run: Run,
    (homes, set): (&[Slot], &[u32]),
    (calls, (segments, entries)): (u32, (Vec<Segment>, Vec<u32>)),
) -> Dispatch {
    let stage = &recipe.schedule.program.stages[run.stage];
    let settings = match &stage.body {
        Body::Named(_, settings) => *settings,
        _ => Settings::default(),
    };
    Dispatch {
        kernel: recipe.schedule.kernel(run.stage, (&segments, &entries)),
        settings,
        operands: recipe.bindings(stage, homes, set),
        output: recipe.output(stage, homes, set),
        row_words: recipe.results.first().map_or(0, |result| result.per_row),
        calls,
        segments,
        entries,
    }
}
