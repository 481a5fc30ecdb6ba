//! What one kernel may hold, and where a stage that holds more is cut.

use super::draft::{Context, Draft, DraftTerm, place};
use super::lower::Primitive;
use super::stages::Root;
use crate::program::{MAX_OPERANDS, Source};

/// A stage is more than one kernel may hold; this value should have a stage of its own.
pub(super) struct StageTooLarge(pub(super) usize);

/// The most loads of one stage, each of which takes words of every entry.
const MAX_LOADS: usize = 24;

/// The most terms of one stage: kernels of more spill registers and take long to compile.
const MAX_TERMS: usize = 128;

/// What a term takes of a kernel, with all terms that it is made of.
#[derive(Clone, Default)]
struct Weight {
    bindings: Vec<Option<Source>>,
    loads: usize,
    terms: usize,
}

impl Weight {
    /// Whether one kernel holds this much; of loads and terms so many times this much.
    fn fits(&self, times: usize) -> bool {
        self.bindings.len() <= MAX_OPERANDS
            && self.loads <= MAX_LOADS / times
            && self.terms <= MAX_TERMS / times
    }

    fn add(&mut self, other: &Weight) {
        for binding in &other.bindings {
            place(&mut self.bindings, *binding);
        }
        self.loads += other.loads;
        self.terms = self.terms.saturating_add(other.terms);
    }
}

/// Passes a stage that one kernel can compute. Of a stage that is too large, the error names
/// the value that takes most and still leaves half for the rest.
pub(super) fn check(
    context: &Context<'_>,
    root: &Root,
    draft: &Draft,
) -> Result<(), StageTooLarge> {
    let mut all = Weight {
        loads: draft.loads.len(),
        terms: draft.terms.len(),
        ..Weight::default()
    };
    for load in &draft.loads {
        place(&mut all.bindings, binding(load.source));
    }
    if all.fits(1) {
        return Ok(());
    }
    let weights = weigh(draft);
    let is_candidate = |value: usize, term: usize| {
        let primitive = &context.lowered.values[value].primitive;
        value != root.value
            && !primitive.is_leaf()
            && reads_more_than_itself(primitive, &draft.terms[term])
            && weights[term].fits(2)
    };
    let candidates = draft.computed.iter();
    let heaviest = candidates
        .filter(|own| is_candidate(own.value, own.term))
        .max_by_key(|own| (weights[own.term].bindings.len(), weights[own.term].terms));
    match heaviest {
        Some(own) => Err(StageTooLarge(own.value)),
        // A stage of one op has few operands, and fits.
        None => {
            debug_assert!(all.bindings.len() <= MAX_OPERANDS);
            Ok(())
        }
    }
}

/// Whether a stage of its own takes bindings off the stage that uses the value: it is one
/// binding there, where it was those of its operands, or of a table and of indexes.
fn reads_more_than_itself(primitive: &Primitive, term: &DraftTerm) -> bool {
    matches!(primitive, Primitive::Gather(_)) || term.operands().next().is_some()
}

fn weigh(draft: &Draft) -> Vec<Weight> {
    let mut weights: Vec<Weight> = Vec::with_capacity(draft.terms.len());
    for term in &draft.terms {
        let mut weight = Weight {
            terms: 1,
            ..Weight::default()
        };
        if let DraftTerm::Load(load) = term {
            let load = draft.loads[*load];
            weight.loads = 1;
            weight.bindings.push(binding(load.source));
            if let Some(index) = load.index {
                weight.loads = 2;
                place(
                    &mut weight.bindings,
                    binding(draft.loads[index.load as usize].source),
                );
            }
        }
        for operand in term.operands() {
            weight.add(&weights[operand]);
        }
        weights.push(weight);
    }
    weights
}

/// What the binding of a source is known by; all inputs in the arena share a binding.
fn binding(source: Source) -> Option<Source> {
    (!matches!(source, Source::Input(_))).then_some(source)
}
