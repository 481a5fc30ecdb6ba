//! Makes a stage of a draft: numbers go to its sizes, the rest is program.

use super::attention;
use super::lower::{Primitive, along};
use super::partition::{Domain, Root, Target};
use super::places::Numbers;
use super::stage::{Context, Draft, DraftTerm, place};
use crate::graph::shape::{MAX_RANK, Shape};
use crate::graph::{Expr, ExprBuilder, Term, TermId};
use crate::program::Layout;
use crate::program::tiles;
use crate::program::{
    self, Access, Body, BufferId, LANES, Load, Map, NARROW, RowResult, RowStep, Rows, STRIP,
    Scalar, Source, Stage, StageSizes, TALL, Tile, Width,
};

/// A stage and its numbers, writing to a buffer.
pub(super) fn build(
    context: &Context<'_>,
    root: &Root,
    (draft, buffer): (&Draft, u32),
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
    let numbers = Numbers {
        draft,
        result,
        is_part,
    };
    let (body, accesses, mut sizes) = match root.domain {
        Domain::Each => match draft.terms[draft.top] {
            DraftTerm::Attention(loads) => attention::build(&numbers, context, (root.value, loads)),
            _ => numbers.map(shape),
        },
        Domain::Rows {
            shape,
            axes,
            is_element,
            is_product,
        } => {
            let is_cut = matches!(
                context.lowered.values[root.value].primitive,
                Primitive::Partial { .. }
            );
            let tile = is_product.then(|| numbers.tile(shape)).flatten();
            numbers.rows((shape, axes), tile, (is_element, is_cut))
        }
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
        target: program::Target::Buffer(BufferId(buffer)),
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

impl Numbers<'_> {
    fn map(&self, shape: Shape) -> (Body, Vec<Access>, StageSizes) {
        let is_strided = self.is_part;
        let natural = shape.strides();
        let accesses: Vec<Access> = (self.draft.loads.iter())
            .map(|load| match load.index {
                Some(index) => Access::Indexed(index.load),
                // Addresses of whole tensors are multiples of four words, and so is this.
                None if load.strides == natural && load.offset % 4 == 0 => Access::Flat,
                None => Access::Strided,
            })
            .collect();
        let mut sizes = StageSizes {
            threads: shape.count().div_ceil(4),
            ..StageSizes::default()
        };
        let mut rank = 0;
        if is_strided {
            sizes.words.push(shape.count());
        }
        if is_strided || accesses.iter().any(|access| *access != Access::Flat) {
            let mut places = self.places(|_| true, shape);
            places.collapse(0);
            rank = places.dims.len();
            sizes.words.extend(&places.dims[1..]);
            for (load, access) in accesses.iter().enumerate() {
                if *access != Access::Flat {
                    sizes.words.extend(&places.strides[load][..rank]);
                    self.index(load, &mut sizes.words);
                }
            }
            if is_strided {
                sizes.words.extend(&places.strides[accesses.len()][..rank]);
            }
        }
        let value = self.extract(self.draft.top, &[]);
        let body = Body::Map(Map {
            rank: rank as u32,
            value,
            is_strided,
        });
        (body, accesses, sizes)
    }

    fn rows(
        &self,
        (shape, axes): (Shape, u8),
        tile: Option<Tile>,
        (is_element, is_cut): (bool, bool),
    ) -> (Body, Vec<Access>, StageSizes) {
        let is_inner = |axis: usize| axes >> axis & 1 == 1;
        let mut outer = self.places(|axis| !is_inner(axis), shape);
        let mut inner = self.places(is_inner, shape);
        let loads = &self.draft.loads;
        let is_row = inner.strides.iter().take(loads.len());
        let mut is_row: Vec<bool> = is_row.map(|strides| *strides == [0; MAX_RANK]).collect();
        for (load, of) in loads.iter().enumerate() {
            // A gather follows its index.
            if let Some(index) = of.index {
                is_row[load] &= is_row[index.load as usize];
            }
        }
        if tile.is_some() {
            outer.add_stack();
        }
        outer.collapse(if tile.is_some() { 2 } else { 0 });
        inner.collapse(0);
        let count = along(shape, axes);
        let rows = along(shape, !axes);
        let strips = count.div_ceil(STRIP);
        let has_last = u32::from(axes) >> shape.rank().saturating_sub(1) != 0;
        let narrow = if has_last { NARROW } else { TALL };
        let width = match tile {
            Some(tile) => Width::Tile(tile),
            None if count <= narrow => Width::Thread,
            None => Width::Group,
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
            self.index(load, &mut words);
        }
        if !is_cut {
            words.extend(&outer.strides[loads.len()][..outer.dims.len()]);
        }
        if is_element {
            words.extend(&inner.strides[loads.len()][..inner.dims.len()]);
        }
        let (steps, result) = self.steps((&is_row, is_element));
        let accesses = loads.iter().map(|load| match load.index {
            Some(index) => Access::Indexed(index.load),
            None => Access::Strided,
        });
        let groups = match width {
            Width::Tile(_) => {
                let [stack @ .., rows, columns] = &outer.dims[..] else {
                    unreachable!("a product has rows and columns");
                };
                let stack = stack.iter().product::<u32>();
                stack.saturating_mul(tiles(*rows, *columns))
            }
            Width::Thread | Width::Group => rows.saturating_mul(if is_cut { strips } else { 1 }),
        };
        let lanes = if width == Width::Thread { 1 } else { LANES };
        let sizes = StageSizes {
            threads: groups.saturating_mul(lanes),
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

    /// How the product of this domain is computed in tiles; `None` where it is
    /// not, like a factor that is a number of the call and not in memory.
    fn tile(&self, shape: Shape) -> Option<Tile> {
        let terms = &self.draft.terms;
        let product = terms.iter().find_map(|term| match term {
            DraftTerm::Fold(_, product) => Some(terms[*product]),
            _ => None,
        });
        let Some(DraftTerm::Binary(_, a, b)) = product else {
            return None;
        };
        let (DraftTerm::Load(a), DraftTerm::Load(b)) = (terms[a], terms[b]) else {
            return None;
        };
        let inner = shape.rank() - 1;
        // Only what holds nothing lies so; its rows are none, whatever computes them.
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
        })
    }

    fn index(&self, load: usize, words: &mut Vec<u32>) {
        if let Some(index) = self.draft.loads[load].index {
            words.extend([index.stride, index.limit]);
        }
    }

    /// What is computed once a row, in order, and the row's result.
    fn steps(&self, (is_row, is_element): (&[bool], bool)) -> (Vec<RowStep>, RowResult) {
        let terms = &self.draft.terms;
        let mut varies = Vec::with_capacity(terms.len());
        for term in terms {
            varies.push(match term {
                DraftTerm::Load(load) => !is_row[*load],
                DraftTerm::Scalar(_) | DraftTerm::Fold(..) => false,
                _ => term.operands().any(|operand| varies[operand]),
            });
        }
        // What a loop over the elements needs of the row is computed in front of it.
        let mut is_needed = vec![false; terms.len()];
        for (id, term) in terms.iter().enumerate() {
            if varies[id] || matches!(term, DraftTerm::Fold(..)) {
                term.operands()
                    .for_each(|operand| is_needed[operand] = true);
            }
        }
        is_needed[self.draft.top] |= is_element;
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
        match is_element {
            true => (steps, RowResult::Element(result)),
            false => (steps, RowResult::Row(result)),
        }
    }

    /// The expression of a term; what is known already is a variable.
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
            let term = match (variable(id), terms[id]) {
                (Some(variable), _) => Term::Variable(variable),
                (None, DraftTerm::Unary(function, a)) => Term::Unary(function, to[a]),
                (None, DraftTerm::Binary(function, a, b)) => Term::Binary(function, to[a], to[b]),
                (None, _) => unreachable!("folds are known before they are used"),
            };
            to[id] = made.push(term);
        }
        made.finish(to[top])
    }
}
