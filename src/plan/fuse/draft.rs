//! Drafts of stages: the loads, scalars and terms of a stage with all numbers still in place.
//!
//! `finalize` takes the numbers out and makes expressions of terms.

use std::sync::Arc;

use super::lower::{Lowered, Primitive};
use super::operand_view::operand_view;
use super::stages::{Domain, Root, Stages, Target};
use super::view::View;
use crate::graph::chain::Home;
use crate::graph::shape::MAX_RANK;
use crate::graph::{BinaryFn, CallerFn, UnaryFn};
use crate::program::{BufferId, Fold, Scalar, Source};
use crate::tensor::Packing;

/// What all stages of a program are made from.
pub(super) struct Context<'a> {
    pub(super) lowered: &'a Lowered,
    pub(super) stages: &'a Stages<'a>,
    /// Where each input lies.
    pub(super) homes: &'a [Home],
    /// For each value that is kept in a buffer, the buffer's number.
    pub(super) buffers: &'a [Option<u32>],
}

impl Context<'_> {
    /// How a source's elements are packed, if they are packed.
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
    /// How the stage's domain looks at the stage's value.
    pub(super) view: Option<View>,
    /// The values of the chain that the stage computes.
    pub(super) computed: Vec<Computed>,
}

/// A value of the chain as a stage computes it.
pub(super) struct Computed {
    pub(super) value: usize,
    view: View,
    pub(super) term: usize,
}

/// A load, and the address that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DraftLoad {
    pub(super) source: Source,
    pub(super) offset: u32,
    /// The stride along each dimension of the domain.
    pub(super) strides: [u32; MAX_RANK],
    pub(super) index: Option<Index>,
    /// Elements and columns, where a function looks at any place.
    pub(super) whole: Option<[u32; 2]>,
}

/// What the load of a gather adds to its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index {
    /// The load that gives the index.
    pub(super) load: u32,
    /// Elements from one index to the next.
    pub(super) stride: u32,
    /// Indexes from here on are out of range.
    pub(super) limit: u32,
}

/// A term of a stage: a term of an expression, a fold, or an attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DraftTerm {
    Load(usize),
    Scalar(usize),
    Unary(UnaryFn, usize),
    Binary(BinaryFn, usize, usize),
    Where([usize; 3]),
    Call(Arc<CallerFn>, Box<[usize]>),
    Fold(Fold, usize),
    /// An attention, by its loads of queries, keys and values, and that of its bias.
    Attention([usize; 3], Option<usize>),
}

impl DraftTerm {
    pub(super) fn operands(&self) -> impl Iterator<Item = usize> {
        let (few, many): (_, &[usize]) = match self {
            DraftTerm::Load(_) | DraftTerm::Scalar(_) | DraftTerm::Attention(..) => {
                ([None; 2], &[])
            }
            DraftTerm::Unary(_, a) | DraftTerm::Fold(_, a) => ([Some(*a), None], &[]),
            DraftTerm::Binary(_, a, b) => ([Some(*a), Some(*b)], &[]),
            DraftTerm::Where(operands) => ([None; 2], operands),
            DraftTerm::Call(_, operands) => ([None; 2], operands),
        };
        few.into_iter().flatten().chain(many.iter().copied())
    }
}

/// Drafts the stage of a root.
pub(super) fn draft(context: &Context<'_>, root: &Root) -> Draft {
    let mut draft = Draft::default();
    let values = &context.lowered.values;
    for (id, value) in values.iter().enumerate().take(root.value + 1) {
        let is_own = id == root.value && root.target == Target::Value;
        if value.primitive.is_leaf() || context.stages.is_kept[id] && !is_own {
            continue; // Loaded where a term needs the value.
        }
        let uses = context.stages.uses[id].iter();
        for used in uses.filter(|used| used.stage == root.id) {
            let term = draft.compute(context, id, used.view);
            draft.computed.push(Computed {
                value: id,
                view: used.view,
                term,
            });
        }
    }
    let mut computed = draft.computed.iter();
    match computed.find(|computed| computed.value == root.value) {
        Some(own) => {
            draft.view = Some(own.view);
            draft.top = own.term;
        }
        None => {
            let view = View::identity(values[root.value].shape);
            draft.view = Some(view);
            draft.top = draft.term(context, root.value, view);
        }
    }
    debug_assert!(
        root.domain != Domain::Elements
            || !draft
                .terms
                .iter()
                .any(|term| matches!(term, DraftTerm::Fold(..)))
    );
    draft
}

impl Draft {
    /// Adds the term of a value that this stage computes.
    fn compute(&mut self, context: &Context<'_>, id: usize, view: View) -> usize {
        let value = &context.lowered.values[id];
        let operand = |draft: &mut Draft, place: usize| {
            let view = operand_view(context.lowered, id, place, view);
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
            Primitive::Where => {
                let operands = [0, 1, 2].map(|place| operand(self, place));
                self.push(DraftTerm::Where(operands))
            }
            Primitive::Call(function) => {
                let places = 0..value.operands.len();
                let operands = places.map(|place| operand(self, place)).collect();
                self.push(DraftTerm::Call(Arc::clone(function), operands))
            }
            Primitive::At(function, seen) => {
                let inputs = value.operands.iter().zip(seen);
                let inputs = inputs.map(|(input, seen)| {
                    self.load(DraftLoad {
                        source: source(context, *input),
                        offset: 0,
                        strides: [0; MAX_RANK],
                        index: None,
                        whole: Some([seen.count(), seen.dims().last().map_or(1, |dim| *dim)]),
                    })
                });
                let mut terms = inputs.collect::<Vec<_>>();
                for place in seen.len()..value.operands.len() {
                    terms.push(operand(self, place));
                }
                self.push(DraftTerm::Call(Arc::clone(function), terms.into()))
            }
            Primitive::Reduce { fold, .. } | Primitive::Partial { fold, .. } => {
                let a = operand(self, 0);
                self.push(DraftTerm::Fold(*fold, a))
            }
            Primitive::Product(..) => {
                let (a, b) = (operand(self, 0), operand(self, 1));
                let product = self.push(DraftTerm::Binary(BinaryFn::Mul, a, b));
                self.push(DraftTerm::Fold(Fold::Sum, product))
            }
            Primitive::Attention(_) => {
                let load = |draft: &mut Draft, place: usize| {
                    let term = operand(draft, place);
                    draft.load_of(term)
                };
                let loads = [0, 1, 2].map(|place| load(self, place));
                let bias = (value.operands.len() > 4).then(|| load(self, 4));
                operand(self, 3); // The scale becomes the stage's only scalar.
                self.push(DraftTerm::Attention(loads, bias))
            }
            Primitive::Gather(axis) => self.gather(context, id, *axis, view),
            // Views move nothing. A concat has no term: its parts are stages.
            _ => operand(self, 0),
        }
    }

    /// The term of a value: of one that the stage computes, or of a new load.
    fn term(&mut self, context: &Context<'_>, id: usize, view: View) -> usize {
        match context.lowered.values[id].primitive {
            Primitive::Constant(index) => return self.scalar(Scalar::Constant(index), 0),
            Primitive::Count(count) => return self.scalar(Scalar::Count, count),
            _ => {}
        }
        let mut computed = self.computed.iter().rev();
        if let Some(own) = computed.find(|own| own.value == id && own.view == view) {
            return own.term;
        }
        let (offset, strides) = view.strides();
        self.load(DraftLoad {
            source: source(context, id),
            offset,
            strides,
            index: None,
            whole: None,
        })
    }

    /// Adds the load of a gather along an axis.
    fn gather(&mut self, context: &Context<'_>, id: usize, axis: usize, view: View) -> usize {
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
            whole: None,
        })
    }

    /// The load that a term is.
    fn load_of(&self, term: usize) -> usize {
        let DraftTerm::Load(load) = self.terms[term] else {
            unreachable!("the value was forced to memory");
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

/// The place of an item among others, to which it is added if it is new.
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
