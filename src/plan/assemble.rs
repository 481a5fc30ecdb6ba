//! Turns the calls of a batch into a plan: groups equal structures, lays
//! results end to end, gives every intermediate a slot until its last use.

use super::recipe::{Recipe, Source, Stage};
use super::{Dispatch, Operand, Plan, Segment, Slot, Step};
use crate::graph::OpClass;
use crate::kernel::MAX_OPERANDS;
use crate::tensor::{Span, aligned};

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
}

/// Plans a batch. Calls of one structure become one dispatch a stage.
pub fn assemble(recipes: &[Recipe], calls: &[Call]) -> Plan {
    if calls.is_empty() {
        return Plan::default(); // Nothing was asked: there is nothing to do.
    }
    let mut builder = Builder::new(recipes, calls);
    let words = calls
        .iter()
        .map(|call| call.inputs.at + aligned(call.inputs.words))
        .max();
    builder.define(Slot::INPUTS, words.unwrap_or(0));
    builder.plan.steps.push(Step::Upload {
        slot: Slot::INPUTS,
        words: words.unwrap_or(0),
    });
    for group in group(recipes, calls) {
        builder.group(&group);
    }
    let words = builder.results;
    builder.define(Slot::RESULTS, words);
    builder.plan.steps.push(Step::Download {
        slot: Slot::RESULTS,
        words,
    });
    builder.plan
}

/// Indexes of calls that are computed together, by first appearance.
fn group(recipes: &[Recipe], calls: &[Call]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: Vec<Option<usize>> = vec![None; recipes.len()];
    for (index, call) in calls.iter().enumerate() {
        let id = call.recipe.0 as usize;
        match group_of[id] {
            Some(group) => groups[group].push(index),
            None => {
                if recipes[id].class() != OpClass::Whole {
                    group_of[id] = Some(groups.len());
                }
                groups.push(vec![index]);
            }
        }
    }
    groups
}

struct Builder<'a> {
    recipes: &'a [Recipe],
    calls: &'a [Call],
    plan: Plan,
    /// Words of results laid out so far.
    results: u32,
    /// Scratch slots that nobody uses at the moment.
    idle: Vec<Slot>,
}

impl<'a> Builder<'a> {
    fn new(recipes: &'a [Recipe], calls: &'a [Call]) -> Self {
        let plan = Plan {
            steps: Vec::new(),
            results: vec![Span { at: 0, words: 0 }; calls.len()],
            slots: vec![0; Slot::SCRATCH.0 as usize],
        };
        Builder {
            recipes,
            calls,
            plan,
            results: 0,
            idle: Vec::new(),
        }
    }

    fn group(&mut self, group: &[usize]) {
        let recipe = &self.recipes[self.calls[group[0]].recipe.0 as usize];
        let last = recipe.stages.len() - 1;
        let mut homes: Vec<Slot> = Vec::with_capacity(recipe.stages.len());
        for (index, stage) in recipe.stages.iter().enumerate() {
            let home = if index == last {
                Slot::RESULTS
            } else {
                self.scratch()
            };
            homes.push(home);
            let dispatch = self.dispatch(recipe, stage, group, &homes);
            self.plan.steps.push(Step::Dispatch(dispatch));
            self.free_unused(recipe, index, &homes);
        }
    }

    fn dispatch(
        &mut self,
        recipe: &Recipe,
        stage: &Stage,
        group: &[usize],
        homes: &[Slot],
    ) -> Dispatch {
        let home = homes[homes.len() - 1];
        let is_result = home == Slot::RESULTS;
        let mut next = if is_result { self.results } else { 0 };
        let mut rows_before = 0;
        let mut segments = Vec::with_capacity(group.len());
        for &index in group {
            let call = &self.calls[index];
            segments.push(Segment {
                rows: call.rows,
                result: next,
                operands: addresses(recipe, stage, call, rows_before),
            });
            let words = call.rows * stage.row_words;
            if is_result {
                self.plan.results[index] = Span { at: next, words };
                next += aligned(words);
            } else {
                // Every row-wise intermediate keeps the calls end to end in
                // steps of 16 bytes a row, so an address follows from rows.
                next += call.rows * aligned(stage.row_words);
            }
            rows_before += call.rows;
        }
        if is_result {
            self.results = next;
        } else {
            self.define(home, next);
        }
        Dispatch {
            kernel: stage.kernel.clone(),
            settings: stage.settings,
            operands: stage
                .operands
                .iter()
                .map(|source| operand(recipe, *source, homes))
                .collect(),
            output: home,
            row_words: stage.row_words,
            segments,
        }
    }

    /// An idle scratch slot, or a new one.
    fn scratch(&mut self) -> Slot {
        self.idle.pop().unwrap_or_else(|| {
            let number = u32::try_from(self.plan.slots.len()).expect("few slots");
            self.plan.slots.push(0);
            Slot(number)
        })
    }

    /// Invariant: a slot is freed after its last reader, never during.
    fn free_unused(&mut self, recipe: &Recipe, done: usize, homes: &[Slot]) {
        for (made, home) in homes.iter().enumerate().take(done) {
            let reads = |stage: &Stage| stage.operands.contains(&Source::Stage(made));
            let later = recipe.stages[done + 1..].iter().any(reads);
            if reads(&recipe.stages[done]) && !later {
                self.plan.steps.push(Step::Free { slot: *home });
                self.idle.push(*home);
            }
        }
    }

    fn define(&mut self, slot: Slot, words: u32) {
        let size = &mut self.plan.slots[slot.0 as usize];
        *size = words.max(*size);
    }
}

/// Addresses of a stage's operands for one call.
fn addresses(recipe: &Recipe, stage: &Stage, call: &Call, rows_before: u32) -> [u32; MAX_OPERANDS] {
    let mut addresses = [0; MAX_OPERANDS];
    for (address, source) in addresses.iter_mut().zip(&stage.operands) {
        *address = match source {
            Source::Input(index) => recipe
                .addresses(call.inputs.at, call.rows)
                .nth(*index)
                .expect("a recipe names its own inputs"),
            Source::Scalar => call.scalar,
            Source::Stage(made) => rows_before * aligned(recipe.stages[*made].row_words),
        };
    }
    addresses
}

fn operand(recipe: &Recipe, source: Source, homes: &[Slot]) -> Operand {
    match source {
        Source::Input(index) => Operand::Rows {
            slot: Slot::INPUTS,
            words: recipe.inputs[index].words(),
        },
        Source::Scalar => Operand::Scalar,
        Source::Stage(made) => Operand::Rows {
            slot: homes[made],
            words: recipe.stages[made].row_words,
        },
    }
}
