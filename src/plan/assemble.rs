//! Turns the calls of a piece into a plan: groups equal structures, lays
//! results end to end, gives every intermediate a slot until its last use.

use super::gather::Gather;
use super::recipe::{Recipe, Source, Stage};
use super::{Dispatch, Operand, Part, Piece, Plan, Segment, Slot, Step};
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

/// Plans a piece of a batch. Calls of one structure become one dispatch a stage.
pub fn assemble(recipes: &[Recipe], calls: &[Call], piece: &Piece) -> Plan {
    if calls.is_empty() {
        return Plan::default(); // Nothing was asked: there is nothing to do.
    }
    let mut collected = Collected {
        group_of: vec![None; recipes.len()],
        results: Vec::with_capacity(piece.end - piece.first),
        ..Collected::default()
    };
    for index in piece.first..piece.end {
        let call = &calls[index];
        let recipe = &recipes[call.recipe.0 as usize];
        collected.add(recipe, call, piece.part(calls, index));
    }
    Builder::default().build(recipes, collected)
}

/// The calls of a piece by structure, with their addresses.
#[derive(Default)]
struct Collected {
    gather: Gather,
    groups: Vec<Group>,
    /// The group of each recipe that has one.
    group_of: Vec<Option<usize>>,
    results: Vec<Span>,
    /// Words of results laid out so far.
    result_words: u32,
}

/// Calls that are computed together.
struct Group {
    recipe: RecipeId,
    /// For each stage of the recipe the calls' segments.
    stages: Vec<Vec<Segment>>,
    /// Rows so far.
    rows: u32,
}

impl Collected {
    fn add(&mut self, recipe: &Recipe, call: &Call, part: Part) {
        let inputs = self.gather.place(recipe, call, part);
        let result = Span {
            at: self.result_words,
            words: part.rows * recipe.result_row_words(),
        };
        self.result_words += aligned(result.words);
        self.results.push(result);
        let group = self.group(recipe, call.recipe);
        let last = recipe.stages.len() - 1;
        for (index, stage) in recipe.stages.iter().enumerate() {
            let mut operands = [0; MAX_OPERANDS];
            for (address, source) in operands.iter_mut().zip(&stage.operands) {
                *address = match source {
                    Source::Input(operand) => recipe.address(*operand, inputs, part.rows),
                    Source::Scalar => call.scalar,
                    Source::Stage(made) => recipe.scratch(*made, group.rows),
                };
            }
            group.stages[index].push(Segment {
                rows: part.rows,
                result: if index == last {
                    result.at
                } else {
                    recipe.scratch(index, group.rows)
                },
                operands,
            });
        }
        group.rows += part.rows;
    }

    /// The group that a call belongs to.
    fn group(&mut self, recipe: &Recipe, id: RecipeId) -> &mut Group {
        let known = &mut self.group_of[id.0 as usize];
        let index = known.unwrap_or_else(|| {
            self.groups.push(Group {
                recipe: id,
                stages: vec![Vec::new(); recipe.stages.len()],
                rows: 0,
            });
            self.groups.len() - 1
        });
        // What is computed as a whole has no company.
        *known = (recipe.class() != OpClass::Whole).then_some(index);
        &mut self.groups[index]
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
    fn build(mut self, recipes: &[Recipe], collected: Collected) -> Plan {
        let Gather { runs, words } = collected.gather;
        // The operands, the results; scratch follows.
        self.plan.slots = vec![words, collected.result_words];
        self.plan.results = collected.results;
        self.plan.steps.push(Step::Upload {
            slot: Slot::INPUTS,
            words,
            runs,
        });
        for group in collected.groups {
            self.group(&recipes[group.recipe.0 as usize], group);
        }
        self.plan.steps.push(Step::Download {
            slot: Slot::RESULTS,
            words: collected.result_words,
        });
        self.plan
    }

    fn group(&mut self, recipe: &Recipe, group: Group) {
        let last = recipe.stages.len() - 1;
        let mut homes: Vec<Slot> = Vec::with_capacity(recipe.stages.len());
        for (index, segments) in group.stages.into_iter().enumerate() {
            homes.push(if index == last {
                Slot::RESULTS
            } else {
                self.scratch(recipe.scratch(index, group.rows))
            });
            let stage = &recipe.stages[index];
            let operand = |source: &Source| operand(recipe, *source, &homes);
            self.plan.steps.push(Step::Dispatch(Dispatch {
                kernel: stage.kernel.clone(),
                settings: stage.settings,
                operands: stage.operands.iter().map(operand).collect(),
                output: homes[index],
                row_words: stage.row_words,
                segments,
            }));
            self.free_unused(recipe, index, &homes);
        }
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
