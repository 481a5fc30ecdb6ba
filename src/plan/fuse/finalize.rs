//! Makes a stage of a draft: numbers go to the sizes of a call, the rest to the program.
//!
//! Where the words of the sizes lie in an entry is said in `program::Layout`.

use std::sync::Arc;

use super::attention;
use super::draft::{Context, Draft, DraftTerm, place};
use super::geometry::{Dimensions, Geometry, Strides};
use super::lower::{Primitive, along};
use super::stages::{Domain, Root, RowDomain, RowGives, Target};
use crate::graph::shape::{MAX_RANK, Shape};
use crate::graph::{Expr, ExprBuilder, Precision, Term, TermId};
use crate::program::{
    self, Access, Body, BufferId, LANES, Layout, Load, Map, NARROW, RowResult, RowStep, Rows,
    STRIP, Scalar, Source, Stage, StageSizes, TALL, Tile, Width, tiles,
};

/// The stage of a draft, which writes to a buffer, and its sizes.
pub(super) fn build(
    context: &Context<'_>,
    root: &Root,
    draft: &Draft,
    buffer: BufferId,
) -> (Stage, StageSizes) {
    let shape = context.lowered.values[root.value].shape;
    let (whole, start) = match root.target {
        Target::Value | Target::Output => (shape, 0),
        Target::Part { whole, start } => {
            let concat = &context.lowered.values[whole];
            let Primitive::Concat(axis) = concat.primitive else {
                unreachable!("only a concat has parts");
            };
            (concat.shape, start * concat.shape.strides()[axis])
        }
    };
    let view = draft.view.expect("every draft has a view");
    let (_, result) = view.partial(0..shape.rank(), &whole.strides());
    let is_part = matches!(root.target, Target::Part { .. });
    let geometry = Geometry {
        draft,
        result,
        is_part,
    };
    let (body, accesses, mut sizes) = match root.domain {
        Domain::Elements => match draft.terms[draft.top] {
            DraftTerm::Attention(loads, bias) => {
                attention::build(context, &geometry, root.value, loads, bias)
            }
            _ => geometry.map(shape),
        },
        Domain::Rows(rows) => geometry.rows(rows),
    };
    let mut bindings: Vec<Option<Source>> = Vec::new();
    let loads = draft.loads.iter().zip(accesses).map(|(load, access)| {
        let shared = !matches!(load.source, Source::Input(_));
        Load {
            source: load.source,
            binding: place(&mut bindings, shared.then_some(load.source)) as u32,
            access,
            packing: context.packing(load.source),
        }
    });
    let stage = Stage {
        body,
        loads: loads.collect(),
        scalars: draft.scalars.iter().map(|(scalar, _)| *scalar).collect(),
        target: program::Target::Buffer(buffer),
    };
    sizes.result = start;
    sizes.offsets = draft.loads.iter().map(|load| load.offset).collect();
    for (scalar, count) in &draft.scalars {
        if *scalar == Scalar::Count {
            #[expect(clippy::cast_precision_loss, reason = "a mean divides by a float")]
            sizes.words.push((*count as f32).to_bits());
        }
    }
    debug_assert_eq!(
        Layout::of(&stage).sizes as usize + sizes.words.len(),
        Layout::of(&stage).words as usize
    );
    (stage, sizes)
}

impl Geometry<'_> {
    fn map(&self, shape: Shape) -> (Body, Vec<Access>, StageSizes) {
        let is_strided = self.is_part;
        let natural = shape.strides();
        let accesses: Vec<Access> = (self.draft.loads.iter())
            .map(|load| match load.index {
                Some(index) => Access::Indexed(index.load),
                None if load.whole.is_some() => Access::Whole,
                // The address of a whole tensor is a multiple of four words, and so is this one.
                None if load.strides == natural && load.offset % 4 == 0 => Access::Flat,
                None => Access::Strided,
            })
            .collect();
        let mut sizes = StageSizes {
            threads: shape.count().div_ceil(4),
            elements: shape.count(),
            ..StageSizes::default()
        };
        let mut map = Map {
            rank: 0,
            value: self.extract(self.draft.top, &[]),
            is_strided,
        };
        if map.is_counted() {
            sizes.words.push(shape.count());
        }
        // What a function looks at any place of has no strides.
        let is_placed = |access: &Access| !matches!(access, Access::Flat | Access::Whole);
        if let [Access::Whole, ..] = accesses[..] {
            let wholes = self.draft.loads.iter().filter_map(|load| load.whole);
            sizes.words.extend(wholes.flatten());
        } else if is_strided || accesses.iter().any(is_placed) {
            let mut all = self.dimensions(shape, &|_| true);
            all.collapse(0);
            let rank = all.dims.len();
            map.rank = rank as u32;
            sizes.words.extend(&all.dims[1..]);
            for (load, access) in accesses.iter().enumerate() {
                if *access != Access::Flat {
                    sizes.words.extend(&all.strides[load][..rank]);
                    self.append_index(load, &mut sizes.words);
                }
            }
            if is_strided {
                sizes.words.extend(&all.strides[accesses.len()][..rank]);
            }
        }
        (Body::Map(map), accesses, sizes)
    }

    fn rows(&self, domain: RowDomain) -> (Body, Vec<Access>, StageSizes) {
        let RowDomain { shape, axes, gives } = domain;
        let is_cut = gives == RowGives::Strips;
        let is_each = gives == RowGives::Each;
        let tile = match gives {
            RowGives::Product(precision) => self.tile(shape, precision),
            _ => None,
        };
        let is_inner = |axis: usize| axes >> axis & 1 == 1;
        let mut outer = self.dimensions(shape, &|axis| !is_inner(axis));
        let mut inner = self.dimensions(shape, &is_inner);
        let loads = &self.draft.loads;
        let is_row = inner.strides.iter().take(loads.len());
        let mut is_row: Vec<bool> = is_row.map(|strides| *strides == [0; MAX_RANK]).collect();
        for (load, of) in loads.iter().enumerate() {
            // The load of a gather varies along a row if the load of its index does.
            if let Some(index) = of.index {
                is_row[load] &= is_row[index.load as usize];
            }
        }
        if tile.is_some() {
            outer.add_stack();
        }
        outer.collapse(if tile.is_some() { 2 } else { 0 });
        inner.collapse(0);
        let vectors = tile.and_then(|_| self.vectors(&outer));
        let tile = tile.map(|tile| Tile { vectors, ..tile });
        let count = along(shape, axes);
        let rows = along(shape, !axes);
        let strips = count.div_ceil(STRIP);
        let has_last = u32::from(axes) >> shape.rank().saturating_sub(1) != 0;
        let narrow = if has_last { NARROW } else { TALL };
        let (width, lanes) = match tile {
            Some(tile) => (Width::Tile(tile), LANES),
            None if count <= narrow => (Width::Thread, 1),
            None => (Width::Group, LANES),
        };
        let mut words = vec![count];
        if is_cut {
            words.push(strips);
        }
        words.extend(&outer.dims[1..]);
        words.extend(&inner.dims[1..]);
        for load in 0..loads.len() {
            words.extend(&outer.strides[load][..outer.dims.len()]);
            words.extend(&inner.strides[load][..inner.dims.len()]);
            self.append_index(load, &mut words);
        }
        if !is_cut {
            words.extend(&outer.strides[loads.len()][..outer.dims.len()]);
        }
        if is_each {
            words.extend(&inner.strides[loads.len()][..inner.dims.len()]);
        }
        let (steps, result) = self.steps(&is_row, gives);
        let accesses = loads.iter().map(|load| match load.index {
            Some(index) => Access::Indexed(index.load),
            None => Access::Strided,
        });
        let groups = match (tile, &outer.dims[..]) {
            (Some(_), [stack @ .., rows, columns]) => {
                let stack = stack.iter().product::<u32>();
                stack.saturating_mul(tiles(*rows, *columns))
            }
            _ => rows.saturating_mul(if is_cut { strips } else { 1 }),
        };
        let sizes = StageSizes {
            threads: groups.saturating_mul(lanes),
            elements: rows.saturating_mul(gives.results(count, strips)),
            words,
            ..StageSizes::default()
        };
        let body = Body::Rows(Rows {
            outer: outer.dims.len() as u32,
            inner: inner.dims.len() as u32,
            width,
            steps,
            result,
            is_cut,
            is_row,
        });
        (body, accesses.collect(), sizes)
    }

    /// How the product of this domain is computed in tiles; `None` where tiles do not apply,
    /// such as to a factor that is a number of the call and not in memory.
    fn tile(&self, shape: Shape, precision: Precision) -> Option<Tile> {
        let terms = &self.draft.terms;
        let product = terms.iter().find_map(|term| match term {
            DraftTerm::Fold(_, product) => Some(&terms[*product]),
            _ => None,
        });
        let Some(DraftTerm::Binary(_, a, b)) = product else {
            return None;
        };
        let (&DraftTerm::Load(a), &DraftTerm::Load(b)) = (&terms[*a], &terms[*b]) else {
            return None;
        };
        let inner = shape.rank() - 1;
        // A factor has a stride of 0 there only if it has no elements, and then there are no
        // rows to compute.
        if [a, b]
            .iter()
            .any(|load| self.draft.loads[*load].strides[inner] == 0)
        {
            return None;
        }
        let is_across = |load: usize, across: usize| {
            let strides = &self.draft.loads[load].strides;
            strides[across] == 1 && strides[inner] != 1
        };
        Some(Tile {
            factors: [a as u32, b as u32],
            is_across: [is_across(a, inner - 2), is_across(b, inner - 1)],
            precision,
            vectors: None,
        })
    }

    /// The loads of a product that read the words of four neighboring columns as one vector, if the
    /// result is written so.
    fn vectors(&self, outer: &Dimensions) -> Option<u32> {
        let last = outer.dims.len() - 1;
        let lies = |strides: &Strides| {
            strides[last] == 1 && strides[..last].iter().all(|words| words % 4 == 0)
        };
        let loads = &self.draft.loads;
        if self.is_part || !outer.dims[last].is_multiple_of(4) || !lies(&outer.strides[loads.len()])
        {
            return None;
        }
        let read = loads.iter().zip(&outer.strides).take(32).enumerate();
        let read = read.filter(|(_, (load, strides))| {
            load.index.is_none() && load.offset % 4 == 0 && lies(strides)
        });
        Some(read.fold(0, |bits, (at, _)| bits | 1 << at))
    }

    /// Appends the words of a load's index, if the load has one.
    fn append_index(&self, load: usize, words: &mut Vec<u32>) {
        if let Some(index) = self.draft.loads[load].index {
            words.extend([index.stride, index.limit]);
        }
    }

    /// What is computed once for each row, in order, and the row's result. `is_row` marks the
    /// loads that are the same for a whole row.
    fn steps(&self, is_row: &[bool], gives: RowGives) -> (Vec<RowStep>, RowResult) {
        let terms = &self.draft.terms;
        let mut varies = Vec::with_capacity(terms.len());
        for term in terms {
            varies.push(match term {
                DraftTerm::Load(load) => !is_row[*load],
                DraftTerm::Scalar(_) | DraftTerm::Fold(..) => false,
                _ => term.operands().any(|operand| varies[operand]),
            });
        }
        // A term that is the same for a whole row is computed in front of the loop that needs it.
        let mut is_needed = vec![false; terms.len()];
        for (id, term) in terms.iter().enumerate() {
            if varies[id] || matches!(term, DraftTerm::Fold(..)) {
                term.operands()
                    .for_each(|operand| is_needed[operand] = true);
            }
        }
        is_needed[self.draft.top] |= gives == RowGives::Each;
        let first = (self.draft.loads.len() + self.draft.scalars.len()) as u32;
        let mut known: Vec<Option<u32>> = vec![None; terms.len()];
        let mut steps = Vec::new();
        for (id, term) in terms.iter().enumerate() {
            let step = match term {
                DraftTerm::Load(_) | DraftTerm::Scalar(_) => continue,
                DraftTerm::Fold(fold, of) => RowStep::Fold(*fold, self.extract(*of, &known)),
                _ if !varies[id] && is_needed[id] => RowStep::Let(self.extract(id, &known)),
                _ => continue,
            };
            known[id] = Some(first + steps.len() as u32);
            steps.push(step);
        }
        let result = self.extract(self.draft.top, &known);
        match gives {
            RowGives::Each => (steps, RowResult::Element(result)),
            _ => (steps, RowResult::Row(result)),
        }
    }

    /// The expression of a term, in which every term with a number in `known` is the variable of
    /// that number.
    fn extract(&self, top: usize, known: &[Option<u32>]) -> Expr {
        let terms = &self.draft.terms;
        let variable = |id: usize| match terms[id] {
            DraftTerm::Load(load) => Some(load as u32),
            DraftTerm::Scalar(scalar) => Some((self.draft.loads.len() + scalar) as u32),
            _ => known.get(id).copied().flatten(),
        };
        let mut is_used = vec![false; top + 1];
        is_used[top] = true;
        for id in (0..=top).rev() {
            if is_used[id] && variable(id).is_none() {
                terms[id]
                    .operands()
                    .for_each(|operand| is_used[operand] = true);
            }
        }
        let mut to = vec![TermId::default(); top + 1];
        let mut made = ExprBuilder::default();
        for id in (0..=top).filter(|id| is_used[*id]) {
            let term = match (variable(id), &terms[id]) {
                (Some(variable), _) => Term::Variable(variable),
                (None, DraftTerm::Unary(function, a)) => Term::Unary(*function, to[*a]),
                (None, DraftTerm::Binary(function, a, b)) => {
                    Term::Binary(*function, to[*a], to[*b])
                }
                (None, DraftTerm::Where(operands)) => Term::Where(operands.map(|of| to[of])),
                (None, DraftTerm::Call(function, operands)) => {
                    let operands = operands.iter().map(|of| to[*of]).collect();
                    Term::Call(Arc::clone(function), operands)
                }
                (None, _) => unreachable!("a fold is known before a term uses it"),
            };
            to[id] = made.push(term);
        }
        made.finish(to[top])
    }
}
