//! Calls whose results stay on the device: what they write of resident tensors, and which form
//! of their program they need where tensors share buffers.

use super::form::Form;
use super::schedule::Schedule;
use super::{Call, Recipe};
use crate::error::Error;
use crate::program::{Program, Sizes, Source, Target};
use crate::tensor::{Span, aligned};

/// The form of a program. A known recipe whose program is equal shares that program, so that
/// calls of both are computed together.
pub(super) fn shared_form(program: Program, sizes: Sizes, known: &[Recipe]) -> Form {
    let others = known.iter().flat_map(|recipe| {
        let by_scratch = recipe.store.iter().flat_map(|store| &store.by_scratch);
        let by_scratch = by_scratch.map(|form| &form.schedule);
        [&recipe.schedule].into_iter().chain(by_scratch)
    });
    let schedule = Schedule::shared(program, others);
    Form { schedule, sizes }
}

impl Recipe {
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
