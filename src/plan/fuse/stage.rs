//! One stage of a cut chain: its loads, scalars and terms, before they become
//! expressions.

use super::lower::{Lowered, Primitive};
use super::partition::{Cut, Domain, Root, Target, operand_view};
use super::view::View;
use crate::graph::chain::Home;
use crate::graph::shape::MAX_RANK;
use crate::graph::{BinaryFn, UnaryFn};
use crate::program::{BufferId, Fold, Scalar, Source};
use crate::tensor::Packing;

/// What all stages of a program are made from.
pub(super) struct Context<'a> {
    pub(super) lowered: &'a Lowered,
    pub(super) cut: &'a Cut,
    /// Where each input lies.
    pub(super) homes: &'a [Home],
    /// For each value that is kept the buffer it is kept in.
    pub(super) buffers: &'a [Option<u32>],
}

impl Context<'_> {
    /// How what a source holds is packed, if it is.
    pub(super) fn packing(&self, source: Source) -> Option<Packing> {
        match source {
            Source::Resident(index) => self.homes[index as usize].packing(),
            Source::Input(_) | Source::Scalar | Source::Buffer(_) => None,
        }
    }
}

/// A stage with all numbers still in place.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) loads: Vec<DraftLoad>,
    pub(super) scalars: Vec<(Scalar, u32)>,
    pub(super) terms: Vec<DraftTerm>,
    /// The term of the stage's value.
    pub(super) top: usize,
    /// What the stage's value looks like from its domain.
    pub(super) view: Option<View>,
    /// Which value of the chain each term came from.
    pub(super) known: Vec<(usize, View, usize)>,
}

/// A load and where it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DraftLoad {
    pub(super) source: Source,
    pub(super) offset: u32,
    /// Along each dimension of the domain.
    pub(super) strides: [u32; MAX_RANK],
    pub(super) index: Option<Index>,
}

/// What a gathering load adds to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index {
    /// The load that gives the index.
    pub(super) load: u32,
    /// Elements from one index to the next.
    pub(super) stride: u32,
    /// How many indexes there are.
    pub(super) limit: u32,
}

/// A term of a stage: like those of expressions, and folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DraftTerm {
    Load(usize),
    Scalar(usize),
    Unary(UnaryFn, usize),
    Binary(BinaryFn, usize, usize),
    Fold(Fold, usize),
    /// The loads of queries, keys and values.
    Attention([usize; 3]),
}

impl DraftTerm {
    pub(super) fn operands(self) -> impl Iterator<Item = usize> {
        let (first, second) = match self {
            DraftTerm::Load(_) | DraftTerm::Scalar(_) | DraftTerm::Attention(_) => (None, None),
            DraftTerm::Unary(_, a) | DraftTerm::Fold(_, a) => (Some(a), None),
            DraftTerm::Binary(_, a, b) => (Some(a), Some(b)),
        };
        first.into_iter().chain(second)
    }
}

/// Collects what a stage computes.
pub(super) fn draft(context: &Context<'_>, root: &Root) -> Draft {
    let mut draft = Draft::default();
    let values = &context.lowered.values;
    for (id, value) in values.iter().enumerate().take(root.value + 1) {
        let is_own = id == root.value && root.target == Target::Value;
        if value.primitive.is_leaf() || context.cut.is_kept[id] && !is_own {
            continue; // Read where it is needed.
        }
        let uses = context.cut.uses[id].iter();
        for used in uses.filter(|used| used.stage == root.id) {
            let term = draft.compute(context, id, used.view);
            draft.known.push((id, used.view, term));
        }
    }
    let own = draft.known.iter().find(|(id, ..)| *id == root.value);
    match own {
        Some((_, view, term)) => {
            draft.view = Some(*view);
            draft.top = *term;
        }
        None => {
            let view = View::identity(values[root.value].shape);
            draft.view = Some(view);
            draft.top = draft.term(context, root.value, view);
        }
    }
    debug_assert!(
        root.domain != Domain::Each
            || !draft
                .terms
                .iter()
                .any(|term| matches!(term, DraftTerm::Fold(..)))
    );
    draft
}

impl Draft {
    /// The term of a value that this stage computes.
    fn compute(&mut self, context: &Context<'_>, id: usize, view: View) -> usize {
        let value = &context.lowered.values[id];
        let operand = |draft: &mut Draft, place: usize| {
            let view = operand_view(context.lowered, id, (place, view));
            draft.term(context, value.operands[place], view)
        };
        match &value.primitive {
            Primitive::Unary(function) => {
                let a = operand(self, 0);
                self.push(DraftTerm::Unary(*function, a))
            }
            Primitive::Binary(function) => {
                let (a, b) = (operand(self, 0), operand(self, 1));
                self.push(DraftTerm::Binary(*function, a, b))
            }
            Primitive::Reduce { fold, .. } | Primitive::Partial { fold, .. } => {
                let a = operand(self, 0);
                self.push(DraftTerm::Fold(*fold, a))
            }
            Primitive::Product(_) => {
                let (a, b) = (operand(self, 0), operand(self, 1));
                let product = self.push(DraftTerm::Binary(BinaryFn::Mul, a, b));
                self.push(DraftTerm::Fold(Fold::Sum, product))
            }
            Primitive::Attention(_) => {
                let loads = [0, 1, 2].map(|place| {
                    let term = operand(self, place);
                    self.load_of(term)
                });
                operand(self, 3); // The scale, its only scalar.
                self.push(DraftTerm::Attention(loads))
            }
            Primitive::Gather(axis) => self.gather(context, id, (*axis, view)),
            // Views, which move nothing. (Concats are kept, their parts are stages.)
            _ => operand(self, 0),
        }
    }

    /// The term of a value, computed before or read now.
    fn term(&mut self, context: &Context<'_>, id: usize, view: View) -> usize {
        match context.lowered.values[id].primitive {
            Primitive::Constant(index) => return self.scalar(Scalar::Constant(index), 0),
            Primitive::Count(count) => return self.scalar(Scalar::Count, count),
            _ => {}
        }
        let known = self.known.iter();
        if let Some((.., term)) = known
            .rev()
            .find(|(known, seen, _)| *known == id && *seen == view)
        {
            return *term;
        }
        let (offset, strides) = view.strides();
        self.load(DraftLoad {
            source: source(context, id),
            offset,
            strides,
            index: None,
        })
    }

    fn gather(&mut self, context: &Context<'_>, id: usize, (axis, view): (usize, View)) -> usize {
        let value = &context.lowered.values[id];
        let (from, by) = (value.operands[0], value.operands[1]);
        let indexes = context.lowered.values[by].shape;
        let index = self.term(context, by, view.indexes(axis, indexes));
        let load = self.load_of(index);
        let shape = context.lowered.values[from].shape;
        let natural = shape.strides();
        let (before, outer) = view.partial(0..axis, &natural[..axis]);
        let behind = axis + indexes.rank()..value.shape.rank();
        let (after, inner) = view.partial(behind, &natural[axis + 1..shape.rank()]);
        let mut strides = outer;
        for (stride, more) in strides.iter_mut().zip(inner) {
            *stride = stride.wrapping_add(more);
        }
        self.load(DraftLoad {
            source: source(context, from),
            offset: before.wrapping_add(after),
            strides,
            index: Some(Index {
                load: load as u32,
                stride: natural[axis],
                limit: shape.dims()[axis],
            }),
        })
    }

    /// The load that a term is.
    fn load_of(&self, term: usize) -> usize {
        let DraftTerm::Load(load) = self.terms[term] else {
            unreachable!("it was forced to memory");
        };
        load
    }

    fn load(&mut self, load: DraftLoad) -> usize {
        let place = place(&mut self.loads, load);
        self.push(DraftTerm::Load(place))
    }

    fn scalar(&mut self, scalar: Scalar, count: u32) -> usize {
        let place = place(&mut self.scalars, (scalar, count));
        self.push(DraftTerm::Scalar(place))
    }

    fn push(&mut self, term: DraftTerm) -> usize {
        place(&mut self.terms, term)
    }
}

/// The place of an item among others, added if it is new.
pub(super) fn place<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    let known = items.iter().position(|known| *known == item);
    known.unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}

fn source(context: &Context<'_>, id: usize) -> Source {
    match context.lowered.values[id].primitive {
        Primitive::Input(index) => match context.homes[index as usize] {
            Home::Call => Source::Input(index),
            Home::Resident | Home::Packed(_) => Source::Resident(index),
        },
        _ => {
            let buffer = context.buffers[id].expect("a value is kept before it is read");
            Source::Buffer(BufferId(buffer))
        }
    }
}
