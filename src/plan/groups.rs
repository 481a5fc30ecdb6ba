//! The calls of a chunk by program and tensors, each with the words of its entries.
//!
//! One entry a call and stage; calls whose rows lie end to end may share one. In which
//! slots all of it lies is not decided here.

use std::sync::Arc;

use super::call::Shares;
use super::copy_runs::Gather;
use super::schedule::Run;
use super::slicing::Slicing;
use super::{Call, NumbersId, Part, Recipe, RecipeId, Segment, SetId};
use crate::program::{Access, Body, Sizes, Source, Stage, StageSizes, Target};
use crate::tensor::{Span, aligned};

/// What plans are made of.
pub(super) struct Batch<'a, C> {
    pub(super) recipes: &'a [Recipe],
    pub(super) calls: &'a [C],
    /// The sets of tensors that calls name.
    pub(super) sets: &'a [Box<[u32]>],
    /// Where tensors begin so many words behind the first row of their call, each by its
    /// place in the only set; 0 where there is no number for one.
    pub(super) before: &'a [u32],
}

/// The calls of a chunk, with their addresses.
pub(super) struct Collected<'a> {
    recipes: &'a [Recipe],
    /// Words of each tensor of the calls that are in parts before, none where it is empty.
    before: &'a [u32],
    pub(super) gather: Gather,
    pub(super) groups: Vec<Group>,
    /// The group of each recipe that has one.
    group_of: Vec<Option<usize>>,
    /// Where the result of each call lies.
    pub(super) results: Vec<Span>,
    /// The numbers of the last call that has some, and their address.
    numbers: Option<(NumbersId, u32)>,
    /// Words of results laid out so far.
    pub(super) result_words: u32,
}

/// Calls that are computed together.
pub(super) struct Group {
    /// The recipe of the first of them.
    pub(super) recipe: RecipeId,
    pub(super) set: SetId,
    /// How many calls so far.
    pub(super) calls: u32,
    /// For each run of the program the calls' shares.
    pub(super) stages: Vec<Shares>,
    /// Words so far of each buffer of the program.
    pub(super) filled: Vec<u32>,
    /// The same before the last call.
    homes: Vec<u32>,
}

/// A part of a call, and where its data lies.
struct Placed<'a> {
    recipe: &'a Recipe,
    sizes: &'a Sizes,
    part: Part,
    scalar: u32,
    /// The word where its operands begin.
    inputs: u32,
    /// The address of its numbers.
    numbers: u32,
    /// As in [`Collected`].
    before: &'a [u32],
    /// The word where its result begins.
    result: u32,
}

impl<'a> Collected<'a> {
    /// Room for so many calls.
    pub(super) fn new<C>(batch: &Batch<'a, C>, calls: usize) -> Collected<'a> {
        Collected {
            recipes: batch.recipes,
            before: batch.before,
            gather: Gather::default(),
            groups: Vec::new(),
            group_of: vec![None; batch.recipes.len()],
            results: Vec::with_capacity(calls),
            numbers: None,
            result_words: 0,
        }
    }

    /// Adds a part of a call.
    pub(super) fn add(&mut self, call: &Call, part: Part) {
        let (recipes, before) = (self.recipes, self.before);
        let recipe = &recipes[call.recipe.0 as usize];
        let inputs = self.gather.place(recipe, call, part);
        let result = Span {
            at: self.result_words,
            words: recipe.words_of(part.rows),
        };
        self.result_words = self.result_words.saturating_add(aligned(result.words));
        self.results.push(result);
        let own = match part.rows == call.rows {
            true => None,
            false => recipe.sizes_of(part.rows),
        };
        let numbers = self.numbers(recipe, call, inputs, part.rows);
        self.group(call).add(&Placed {
            recipe,
            sizes: own.as_deref().unwrap_or(&recipe.sizes),
            part,
            scalar: call.scalar,
            inputs,
            numbers,
            before,
            result: result.at,
        });
    }

    /// Where a call's numbers are: with the call before, if they are the same.
    fn numbers(&mut self, recipe: &Recipe, call: &Call, inputs: u32, rows: u32) -> u32 {
        if recipe.numbers() == 0 {
            return 0; // Nobody asks.
        }
        let known = self.numbers.filter(|(id, _)| *id == call.numbers);
        let own = || recipe.address(recipe.operands.len() - 1, inputs, rows);
        let (_, at) = *(self.numbers).insert(known.unwrap_or_else(|| (call.numbers, own())));
        at
    }

    /// The group that a call belongs to: all those of equal programs that name the same
    /// tensors, whatever their shapes.
    fn group(&mut self, call: &Call) -> &mut Group {
        let recipes = self.recipes;
        let schedule = |recipe: RecipeId| &recipes[recipe.0 as usize].schedule;
        let own = schedule(call.recipe);
        let belongs =
            |group: &Group| group.set == call.set && Arc::ptr_eq(schedule(group.recipe), own);
        let known = match self.group_of[call.recipe.0 as usize] {
            Some(index) if belongs(&self.groups[index]) => Some(index),
            _ => self.groups.iter().position(belongs),
        };
        let index = known.unwrap_or_else(|| {
            self.groups.push(Group {
                recipe: call.recipe,
                set: call.set,
                calls: 0,
                stages: vec![Shares::default(); own.runs.len()],
                filled: vec![0; own.program.buffers as usize],
                homes: Vec::new(),
            });
            self.groups.len() - 1
        });
        self.group_of[call.recipe.0 as usize] = Some(index);
        &mut self.groups[index]
    }
}

impl Group {
    /// Adds a part of a call.
    fn add(&mut self, call: &Placed<'_>) {
        // Intermediates lie end to end, call after call. More words than have
        // addresses are as many as have, which no device holds: such a plan is halved.
        self.homes.clone_from(&self.filled);
        for (filled, words) in self.filled.iter_mut().zip(&call.sizes.buffers) {
            *filled = filled.saturating_add(aligned(*words));
        }
        let schedule = &call.recipe.schedule;
        for (run, shares) in schedule.runs.iter().zip(&mut self.stages) {
            let start = shares.entries.len();
            call.enter(*run, &self.homes, &mut shares.entries);
            let segment = call.segment(*run, &self.homes);
            schedule.joints[run.stage].push(segment, shares, start);
        }
        self.calls += 1;
    }
}

impl Placed<'_> {
    /// The call's share of a run; `homes` are the words where its buffers begin.
    fn segment(&self, run: Run, homes: &[u32]) -> Segment {
        let stage = &self.recipe.schedule.program.stages[run.stage];
        let sizes = &self.sizes.stages[run.stage];
        let start = match (run.output, stage.target) {
            (Some(output), _) => self.result.saturating_add(self.start(output)),
            (None, Target::Buffer(buffer)) => homes[buffer.0 as usize],
            // The call's own data says where in the tensor.
            (None, Target::Resident(_)) => 0,
        };
        Segment {
            rows: self.threads(stage, sizes),
            // Only of a plan that no device holds does an address wrap.
            result: start.wrapping_add(sizes.result),
        }
    }

    /// What a stage counts: threads, or rows of a named kernel.
    fn threads(&self, stage: &Stage, sizes: &StageSizes) -> u32 {
        match (&stage.body, &self.recipe.slicing) {
            (Body::Named(..) | Body::Search(_), _) => self.part.rows.saturating_mul(sizes.threads),
            (_, Slicing::Elements) => self.part.rows.div_ceil(4),
            _ => sizes.threads,
        }
    }

    /// Where an output begins in the call's result.
    fn start(&self, output: usize) -> u32 {
        let before = &self.recipe.schedule.program.outputs[..output];
        before.iter().fold(0, |next, output| {
            aligned(self.sizes.buffers[output.0 as usize]).saturating_add(next)
        })
    }

    /// Appends the call's entry of a run, behind the address of its result.
    fn enter(&self, run: Run, homes: &[u32], entries: &mut Vec<u32>) {
        let recipe = self.recipe;
        let stage = &recipe.schedule.program.stages[run.stage];
        let sizes = &self.sizes.stages[run.stage];
        for (load, offset) in stage.loads.iter().zip(&sizes.offsets) {
            let base = match load.source {
                _ if load.access == Access::Found => continue,
                Source::Input(input) => {
                    let operand = recipe.places[input as usize];
                    recipe.address(operand, self.inputs, self.part.rows)
                }
                Source::Scalar => self.scalar,
                Source::Resident(input) => {
                    let place = recipe.places[input as usize];
                    let before = self.before.get(place).unwrap_or(&0);
                    self.part.first * recipe.tensors[place] - before
                }
                Source::Buffer(buffer) => homes[buffer.0 as usize],
            };
            // Strides may be negative, and offsets then wrap.
            entries.push(base.wrapping_add(*offset));
        }
        if stage.has_constants() {
            entries.push(self.numbers);
        }
        entries.extend_from_slice(&sizes.words);
    }
}
