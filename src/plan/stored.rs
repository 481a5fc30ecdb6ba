//! The recipe of a chain whose results stay on the device, in resident tensors.

use std::sync::Arc;

use super::cost::of_program;
use super::fuse::fuse_stored;
use super::lowering::Inputs;
use super::recipe::Extent;
use super::schedule::Schedule;
use super::{Call, Recipe};
use crate::error::Error;
use crate::graph::chain::{Chain, StoreExtent};
use crate::program::{Program, Sizes, Source, Target};
use crate::tensor::{Span, aligned};

/// What calls of a recipe write of tensors.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// What a call computes where a target shares its buffer with another tensor that the writing
    /// stage reads; `None` where the recipe's own form is right for that too.
    pub(super) by_scratch: Option<Form>,
    /// The elements of a part; `None` where calls write whole tensors.
    part: Option<Part>,
}

/// A part of a target.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Elements that a call writes.
    elements: u32,
    /// Elements of the target.
    target: u32,
}

/// A program, and the sizes of a call of it.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) schedule: Arc<Schedule>,
    pub(super) sizes: Sizes,
}

impl Form {
    /// The form of a program. A known recipe whose program is equal shares that program, so that
    /// calls of both are computed together.
    fn shared((program, sizes): (Program, Sizes), known: &[Recipe]) -> Form {
        let others = known.iter().flat_map(|recipe| {
            let by_scratch = recipe.store.iter().flat_map(|store| &store.by_scratch);
            let by_scratch = by_scratch.map(|form| &form.schedule);
            [&recipe.schedule].into_iter().chain(by_scratch)
        });
        let schedule = Schedule::shared(program, others);
        Form { schedule, sizes }
    }
}

impl Recipe {
    /// The recipe of a chain whose results are stored. A call is computed as a whole, because
    /// its targets are written once.
    pub(super) fn store(chain: &Chain, known: &[Recipe]) -> Recipe {
        let programs = fuse_stored(chain);
        let by_scratch = Form::shared(programs.by_scratch, known);
        let direct = programs.direct.map(|direct| Form::shared(direct, known));
        let (own, by_scratch) = match direct {
            Some(direct) => (direct, Some(by_scratch)),
            None => (by_scratch, None),
        };
        let inputs = Inputs::of(chain);
        let carried = inputs.carried.iter();
        let mut operands: Vec<Extent> = carried.map(|count| Extent::fixed(*count)).collect();
        operands.push(Extent::fixed(chain.constants()));
        Recipe {
            effort: of_program(&own.schedule, &own.sizes, 1),
            operands,
            tensors: vec![0; inputs.ordinals.len() - inputs.carried.len()],
            ordinals: inputs.ordinals,
            numbers: chain.constants(),
            rows: Some(1),
            schedule: own.schedule,
            sizes: own.sizes,
            store: Some(Stored {
                by_scratch,
                part: part_of(chain),
            }),
            ..Recipe::default()
        }
    }

    /// The words of its targets that a call writes, by what lies in the call's room: the operands,
    /// the numbers of the tensors, and the offset, in elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a part that its target does not have.
    pub(super) fn stored_span(&self, room: &[u32]) -> Result<Span, Error> {
        let Some(part) = self.store.as_ref().and_then(|store| store.part) else {
            return Ok(Span {
                at: 0,
                words: u32::MAX,
            });
        };
        let before: u32 = self.operands.iter().map(|own| aligned(own.words(1))).sum();
        let offset = room.get(before as usize + self.tensors.len());
        let end = offset.and_then(|offset| offset.checked_add(part.elements));
        match (offset, end) {
            (Some(at), Some(end)) if end <= part.target => Ok(Span {
                at: *at,
                words: part.elements,
            }),
            _ => Err(Error::InvalidInput(format!(
                "write: {} elements from {} on do not fit the tensor's {}; give fewer, or a smaller offset",
                part.elements,
                offset.copied().unwrap_or(u32::MAX),
                part.target
            ))),
        }
    }

    /// The word of its target that a call's first stored element goes to. The kernel of a sampling
    /// reads that word among the call's operands.
    pub(super) fn offset(&self, call: &Call) -> u32 {
        match self.store {
            Some(_) => call.stored.at,
            None => 0,
        }
    }

    /// The form by scratch, if calls that name these tensors need it: where a stage would write to
    /// a buffer that it reads.
    pub(super) fn form_by_scratch(&self, set: &[u32]) -> Option<&Form> {
        let form = self.store.as_ref()?.by_scratch.as_ref()?;
        let home = |input: u32| set.get(self.ordinals[input as usize]);
        let mut stages = self.schedule.program.stages.iter();
        let conflicts = stages.any(|stage| {
            let Target::Resident(target) = stage.target else {
                return false;
            };
            let mut loads = stage.loads.iter().filter(|load| !load.is_in_place());
            loads.any(|load| match load.source {
                Source::Resident(input) => home(input) == home(target),
                _ => false,
            })
        });
        conflicts.then_some(form)
    }
}

/// The part of its target that a call of the chain writes, if the call does not write all.
fn part_of(chain: &Chain) -> Option<Part> {
    let [store] = chain.stores() else {
        return None;
    };
    let count = |id| chain.node(id).shape.count();
    match store.extent {
        StoreExtent::Whole => None,
        StoreExtent::Part => Some(Part {
            elements: count(chain.outputs()[0]),
            target: count(store.target),
        }),
    }
}
