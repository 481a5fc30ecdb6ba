//! What one kernel may hold, and where to cut what holds more.

use super::partition::Root;
use super::stage::{Context, Draft, DraftTerm, place};
use crate::program::MAX_OPERANDS;
use crate::program::Source;

/// A stage does more than one kernel may; this value should have its own.
pub(super) struct TooMuch(pub(super) usize);

/// Loads of one stage, which are words of each entry.
const MAX_LOADS: usize = 24;

/// Terms of one stage: kernels beyond this spill registers and take long to compile.
const MAX_TERMS: usize = 128;

/// What a term is made of.
#[derive(Clone, Default)]
struct Weight {
    bindings: Vec<Option<Source>>,
    loads: usize,
    terms: usize,
}

impl Weight {
    fn fits(&self, share: usize) -> bool {
        self.bindings.len() <= MAX_OPERANDS
            && self.loads <= MAX_LOADS / share
            && self.terms <= MAX_TERMS / share
    }

    fn add(&mut self, other: &Weight) {
        for binding in &other.bindings {
            place(&mut self.bindings, *binding);
        }
        self.loads += other.loads;
        self.terms = self.terms.saturating_add(other.terms);
    }
}

/// Passes a stage that one kernel can compute. Of one that is too large it
/// names the part that takes most and still leaves something for the rest.
pub(super) fn check(context: &Context<'_>, root: &Root, draft: &Draft) -> Result<(), TooMuch> {
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
            && draft.terms[term].operands().next().is_some()
            && weights[term].fits(2)
    };
    let candidates = draft.known.iter();
    let best = candidates
        .filter(|(value, _, term)| is_candidate(*value, *term))
        .max_by_key(|(_, _, term)| (weights[*term].bindings.len(), weights[*term].terms));
    match best {
        Some((value, ..)) => Err(TooMuch(*value)),
        // One op of few operands: whatever it is, it fits.
        None => Ok(()),
    }
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

/// Tensors of the arena share a binding.
fn binding(source: Source) -> Option<Source> {
    (!matches!(source, Source::Input(_))).then_some(source)
}
