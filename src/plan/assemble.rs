//! Turns the calls of a piece into a plan: groups equal structures, lays
//! results end to end, gives every intermediate a slot until its last use.

use std::borrow::Borrow;

use super::fuse::BufferId;
use super::fused::{Placed, Shaped};
use super::gather::Gather;
use super::recipe::{Recipe, Source, Stage, Work};
use super::{Dispatch, Operand, Part, Piece, Plan, Segment, Slot, Step};
use super::{sampled, searched};
use crate::graph::OpClass;
use crate::graph::searching::Searching;
use crate::kernel::{MAX_OPERANDS, Settings};
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

/// Plans a piece of a batch. Calls of one structure become one dispatch a
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
    let mut collected = Collected {
        group_of: vec![None; recipes.len()],
        results: Vec::with_capacity(piece.end - piece.first),
        ..Collected::default()
    };
    for index in piece.first..piece.end {
        let call = calls[index].borrow();
        let recipe = &recipes[call.recipe.0 as usize];
        collected.add((recipes, recipe), (call, before), piece.part(calls, index));
    }
    Builder::default().build((recipes, sets), collected)
}

/// The calls of a piece by structure, with their addresses.
#[derive(Default)]
struct Collected {
    gather: Gather,
    groups: Vec<Group>,
    /// The group of each recipe that has one.
    group_of: Vec<Option<usize>>,
    results: Vec<Span>,
    /// The numbers of the last call that has some, and their address.
    numbers: Option<(NumbersId, u32)>,
    /// Words of results laid out so far.
    result_words: u32,
}

/// Calls that are computed together.
struct Group {
    recipe: RecipeId,
    set: SetId,
    /// How many calls so far.
    calls: u32,
    /// For each stage of the recipe, or run of a program, the calls' segments
    /// and entries.
    stages: Vec<(Vec<Segment>, Vec<u32>)>,
    /// Rows so far.
    rows: u32,
    /// Words so far of each buffer of a program.
    filled: Vec<u32>,
    /// The same before the last call.
    homes: Vec<u32>,
}

impl Collected {
    fn add(
        &mut self,
        (recipes, recipe): (&[Recipe], &Recipe),
        (call, before): (&Call, &[u32]),
        part: Part,
    ) {
        let inputs = self.gather.place(recipe, call, part);
        let result = Span {
            at: self.result_words,
            words: recipe.words_of(part.rows),
        };
        self.result_words = self.result_words.saturating_add(aligned(result.words));
        self.results.push(result);
        match &recipe.work {
            Work::Stages(stages) => {
                let group = self.group(recipe, call);
                group.add(recipe, stages, (call, part), (inputs, result.at));
            }
            Work::Sampled(sampling) => {
                let places = recipe.addresses(inputs, part.rows);
                let segment = sampled::segment(sampling, part.rows, (places, result.at));
                let group = self.sampled_group(recipes, call);
                group.stages[0].0.push(segment);
            }
            Work::Searched(searching, _) => {
                let mut places = recipe.addresses(inputs, part.rows);
                let places = std::array::from_fn(|_| places.next().unwrap_or(0));
                let queries = searched::segments(searching, part.rows, (places, result.at));
                let group = self.searched_group(recipes, (searching, call));
                group.stages[0].0.extend(queries);
            }
            Work::Fused(shaped) => {
                let operand = |operand| recipe.address(operand, inputs, part.rows);
                let numbers = self.numbers(recipe, call, &operand);
                let cut = match part.rows == call.rows {
                    true => None,
                    false => shaped.of_rows(part.rows),
                };
                let group = self.fused_group(recipes, (shaped, call));
                group.enter(
                    cut.as_deref().unwrap_or(shaped),
                    &Placed {
                        operand: &operand,
                        numbers,
                        before,
                        part,
                        result: result.at,
                    },
                );
            }
        }
    }

    /// Where a call's numbers are: with the call before, if they are the same.
    fn numbers(&mut self, recipe: &Recipe, call: &Call, operand: &dyn Fn(usize) -> u32) -> u32 {
        if recipe.numbers() == 0 {
            return 0; // Nobody asks.
        }
        let known = self.numbers.filter(|(id, _)| *id == call.numbers);
        let (_, at) = *(self.numbers)
            .insert(known.unwrap_or_else(|| (call.numbers, operand(recipe.operands.len() - 1))));
        at
    }

    /// The group that a call of an op belongs to.
    fn group(&mut self, recipe: &Recipe, call: &Call) -> &mut Group {
        let known = &mut self.group_of[call.recipe.0 as usize];
        let index = known.unwrap_or_else(|| {
            self.groups.push(Group::new(recipe, call));
            self.groups.len() - 1
        });
        // What is computed as a whole has no company.
        *known = (recipe.class() != OpClass::Whole).then_some(index);
        &mut self.groups[index]
    }

    /// The group that a call of a chain belongs to: all those of equal programs
    /// that read the same tensors on the device, whatever their shapes.
    fn fused_group(&mut self, recipes: &[Recipe], (shaped, call): (&Shaped, &Call)) -> &mut Group {
        self.shared_group(
            recipes,
            call,
            |work| matches!(work, Work::Fused(other) if shaped.merges(other)),
        )
    }

    /// The group that a sampling of clips belongs to: all those of the same
    /// store and target.
    fn sampled_group(&mut self, recipes: &[Recipe], call: &Call) -> &mut Group {
        self.shared_group(recipes, call, |work| matches!(work, Work::Sampled(_)))
    }

    /// The group that a search belongs to: all those of the same index that want as
    /// many results.
    fn searched_group(
        &mut self,
        recipes: &[Recipe],
        (searching, call): (&Searching, &Call),
    ) -> &mut Group {
        self.shared_group(
            recipes,
            call,
            |work| matches!(work, Work::Searched(other, _) if other == searching),
        )
    }

    /// The group of calls that read the same tensors and whose work `merges`.
    fn shared_group(
        &mut self,
        recipes: &[Recipe],
        call: &Call,
        merges: impl Fn(&Work) -> bool,
    ) -> &mut Group {
        let belongs =
            |group: &Group| group.set == call.set && merges(&recipes[group.recipe.0 as usize].work);
        let known = match self.group_of[call.recipe.0 as usize] {
            Some(index) if belongs(&self.groups[index]) => Some(index),
            _ => self.groups.iter().position(belongs),
        };
        let index = known.unwrap_or_else(|| {
            self.groups
                .push(Group::new(&recipes[call.recipe.0 as usize], call));
            self.groups.len() - 1
        });
        self.group_of[call.recipe.0 as usize] = Some(index);
        &mut self.groups[index]
    }
}

impl Group {
    fn new(recipe: &Recipe, call: &Call) -> Group {
        let (stages, buffers) = match &recipe.work {
            Work::Stages(stages) => (stages.len(), 0),
            Work::Fused(shaped) => shaped.counts(),
            Work::Sampled(_) | Work::Searched(..) => (1, 0),
        };
        Group {
            recipe: call.recipe,
            set: call.set,
            calls: 0,
            stages: vec![Default::default(); stages],
            rows: 0,
            filled: vec![0; buffers],
            homes: Vec::new(),
        }
    }

    /// Adds a part of a call, its operands and its result at these addresses.
    fn add(
        &mut self,
        recipe: &Recipe,
        stages: &[Stage],
        (call, part): (&Call, Part),
        (inputs, result): (u32, u32),
    ) {
        let last = stages.len() - 1;
        for (index, stage) in stages.iter().enumerate() {
            let mut operands = [0; MAX_OPERANDS];
            for (address, source) in operands.iter_mut().zip(&stage.operands) {
                *address = match source {
                    Source::Input(operand) => recipe.address(*operand, inputs, part.rows),
                    Source::Scalar => call.scalar,
                    Source::Stage(made) => stages[*made].scratch(self.rows),
                };
            }
            self.stages[index].0.push(Segment {
                rows: part.rows,
                result: if index == last {
                    result
                } else {
                    stage.scratch(self.rows)
                },
                operands,
            });
        }
        self.rows += part.rows;
        self.calls += 1;
    }

    /// Adds a call of a program, or a part of one.
    fn enter(&mut self, shaped: &Shaped, placed: &Placed<'_>) {
        // Intermediates lie end to end, call after call.
        self.homes.clone_from(&self.filled);
        let homes = &self.homes;
        shaped.fill(&mut self.filled);
        for (run, (segments, entries)) in shaped.runs().zip(&mut self.stages) {
            let start = entries.len();
            shaped.enter(run, placed, homes, entries);
            let call = Segment {
                rows: shaped.threads(run, placed.part),
                result: shaped.target(run, placed, homes),
                operands: [0; MAX_OPERANDS],
            };
            shaped.fused.joints[run.stage].push(call, (segments, entries), start);
        }
        self.calls += 1;
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
        let is_stored = |group: &Group| {
            let work = &recipes[group.recipe.0 as usize].work;
            matches!(work, Work::Sampled(sampling) if sampling.is_stored)
        };
        let (first, rest): (Vec<Group>, Vec<Group>) =
            collected.groups.into_iter().partition(is_stored);
        for group in first.into_iter().chain(rest) {
            let recipe = &recipes[group.recipe.0 as usize];
            match &recipe.work {
                Work::Stages(stages) => self.group(recipe, stages, group),
                Work::Fused(shaped) => {
                    let set = sets.get(group.set.0 as usize).map_or(&[][..], |set| set);
                    self.fused(shaped, group, set);
                }
                Work::Searched(searching, _) => {
                    let set = sets.get(group.set.0 as usize).map_or(&[][..], |set| set);
                    self.searched(searching, &group, set);
                }
                Work::Sampled(_) => {
                    let set = sets.get(group.set.0 as usize).map_or(&[][..], |set| set);
                    for (segments, _) in group.stages {
                        let dispatch = sampled::dispatch(segments, set);
                        self.plan.steps.push(Step::Dispatch(dispatch));
                    }
                }
            }
        }
        self.plan.steps.push(Step::Download {
            slot: Slot::RESULTS,
            words: collected.result_words,
        });
        self.plan
    }

    fn group(&mut self, recipe: &Recipe, stages: &[Stage], group: Group) {
        let last = stages.len() - 1;
        let mut homes: Vec<Slot> = Vec::with_capacity(stages.len());
        for (index, (segments, entries)) in group.stages.into_iter().enumerate() {
            let stage = &stages[index];
            homes.push(if index == last {
                Slot::RESULTS
            } else {
                self.scratch(stage.scratch(group.rows))
            });
            let operand = |source: &Source| operand((recipe, stages), *source, &homes);
            self.plan.steps.push(Step::Dispatch(Dispatch {
                kernel: stage.kernel.clone(),
                settings: stage.settings,
                operands: stage.operands.iter().map(operand).collect(),
                output: homes[index],
                row_words: stage.row_words,
                calls: group.calls,
                segments,
                entries,
            }));
            self.free_unused(stages, index, &homes);
        }
    }

    /// The steps of a program, for all its calls; `set` are their tensors.
    fn fused(&mut self, shaped: &Shaped, group: Group, set: &[u32]) {
        let program = &shaped.fused.program;
        let mut homes = vec![Slot::RESULTS; group.filled.len()];
        let mut is_made = vec![false; homes.len()];
        let runs = shaped.runs().zip(group.stages);
        for (at, (run, (segments, entries))) in runs.enumerate() {
            let buffer = program.stages[run.stage].buffer;
            let index = buffer.0 as usize;
            if run.output.is_none() && !is_made[index] {
                homes[index] = self.scratch(group.filled[index]);
            }
            is_made[index] = true;
            let rows = |slot| Operand::Rows { slot, words: 0 };
            let slots = shaped.slots(run, &homes, set);
            self.plan.steps.push(Step::Dispatch(Dispatch {
                kernel: shaped.fused.kernel(run.stage, (&segments, &entries)),
                settings: Settings::default(),
                operands: slots.into_iter().map(rows).collect(),
                output: homes[index],
                row_words: 0,
                calls: group.calls,
                segments,
                entries,
            }));
            for (buffer, home) in (0..).map(BufferId).zip(&homes) {
                if *home != Slot::RESULTS && shaped.fused.is_last_reader(at, buffer) {
                    self.plan.steps.push(Step::Free { slot: *home });
                    self.idle.push(*home);
                }
            }
        }
    }

    /// The steps of searches of one index.
    fn searched(&mut self, searching: &Searching, group: &Group, set: &[u32]) {
        let steps = searched::Steps {
            searching,
            queries: &group.stages[0].0,
            set,
        };
        let slot = self.scratch(steps.scratch());
        let dispatches = steps.dispatches(slot);
        (self.plan.steps).extend(dispatches.into_iter().map(Step::Dispatch));
        self.plan.steps.push(Step::Free { slot });
        self.idle.push(slot);
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
    fn free_unused(&mut self, stages: &[Stage], done: usize, homes: &[Slot]) {
        for (made, home) in homes.iter().enumerate().take(done) {
            let reads = |stage: &Stage| stage.operands.contains(&Source::Stage(made));
            let later = stages[done + 1..].iter().any(reads);
            if reads(&stages[done]) && !later {
                self.plan.steps.push(Step::Free { slot: *home });
                self.idle.push(*home);
            }
        }
    }
}

fn operand((recipe, stages): (&Recipe, &[Stage]), source: Source, homes: &[Slot]) -> Operand {
    match source {
        Source::Input(index) => Operand::Rows {
            slot: Slot::INPUTS,
            words: recipe.operands[index].per_row,
        },
        Source::Scalar => Operand::Scalar,
        Source::Stage(made) => Operand::Rows {
            slot: homes[made],
            words: stages[made].row_words,
        },
    }
}
