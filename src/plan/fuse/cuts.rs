//! Where a chain is cut into stages.
//!
//! Values are visited from the results back. A value that one stage uses becomes part of that
//! stage. A value that several stages use gets a stage and a buffer of its own, unless it
//! costs no more than [`CHEAP`] simple operations on at most one tensor: then each stage
//! computes it again, which takes less time than writing and reading it. A reduction joins
//! the stage that uses it where that stage works on the same rows. How much one kernel can
//! hold is checked later, in `limit`.

use super::colocate::{Bound, bounds};
use super::lower::{Lowered, Primitive, Value, base};
use super::operand_view::operand_view;
use super::recomputation::{Recomputation, recomputations};
use super::stages::{Domain, RowDomain, RowGives, Stages, Target, Use};
use super::view::View;
use crate::graph::UnaryFn;

/// The most simple operations that are repeated rather than their result kept.
const CHEAP: u32 = 4;

/// Cuts a chain; values that are `forced` get stages of their own.
pub(super) fn cut<'a>(lowered: &'a Lowered, forced: &[bool]) -> Stages<'a> {
    let count = lowered.values.len();
    let mut cutter = Cutter {
        lowered,
        forced: forced.to_vec(),
        recomputations: recomputations(lowered),
        bounds: bounds(lowered),
        stages: Stages {
            lowered,
            roots: Vec::new(),
            uses: vec![Vec::new(); count],
            is_kept: vec![false; count],
        },
        is_gathered: vec![false; count],
    };
    cutter.force();
    for value in (0..count).rev() {
        cutter.visit(value);
    }
    cutter.stages.roots.reverse();
    cutter.stages
}

struct Cutter<'a> {
    lowered: &'a Lowered,
    forced: Vec<bool>,
    recomputations: Vec<Recomputation>,
    bounds: Vec<Bound>,
    stages: Stages<'a>,
    /// For each value, whether a gather picks elements of it.
    is_gathered: Vec<bool>,
}

impl Cutter<'_> {
    /// Marks values that must lie in memory: operands of gathers, products and attention, and
    /// what is moved or reshaped although it is bound to a stage or cannot be seen as of
    /// another shape.
    fn force(&mut self) {
        let values = &self.lowered.values;
        let is_reshapable = reshapable(values);
        for value in values {
            match value.primitive {
                Primitive::Gather(_) => {
                    self.forced[value.operands[0]] = true;
                    self.forced[base(values, value.operands[1])] = true;
                }
                Primitive::Product(..) | Primitive::Attention(_) => {
                    for operand in &value.operands {
                        self.forced[base(values, *operand)] = true;
                    }
                }
                Primitive::At(ref function, _) => {
                    for operand in &value.operands[..function.content.inputs.len()] {
                        self.forced[*operand] = true;
                    }
                }
                // What says that loops were stopped must be the bits that were computed.
                Primitive::Unary(UnaryFn::Stopped) => self.forced[value.operands[0]] = true,
                // The values that are bound are the same whatever the dimensions of a call.
                Primitive::Transpose(_) | Primitive::Slice(_) | Primitive::Reshape => {
                    let moved = value.operands[0];
                    let is_reshape = value.primitive == Primitive::Reshape;
                    self.forced[moved] |=
                        self.bounds[moved].is_tight() || is_reshape && !is_reshapable[moved];
                }
                _ => {}
            }
        }
    }

    /// Decides which stages compute a value, when all values that use it have been visited.
    fn visit(&mut self, id: usize) {
        let value = &self.lowered.values[id];
        let is_output = self.lowered.outputs.contains(&id);
        let is_used = !self.stages.uses[id].is_empty() || self.is_gathered[id];
        if value.primitive.is_leaf() {
            if is_output {
                (self.stages).add(id, Target::Output, View::identity(value.shape));
            }
            return;
        }
        if !is_used && !is_output {
            return; // No result depends on this value.
        }
        let joins = !self.forced[id] && !self.is_gathered[id] && self.join(id);
        if is_used && !joins {
            // Stages read the value from a buffer of its own, and never from the buffer of a
            // result: a value that is a result too gets a stage that copies it there.
            self.stages.is_kept[id] = true;
            if is_output {
                (self.stages).add(id, Target::Output, View::identity(value.shape));
            }
            self.stages.uses[id].clear();
            self.add_stages(id, Target::Value);
        } else if is_output {
            self.add_stages(id, Target::Output);
        }
        let uses = std::mem::take(&mut self.stages.uses[id]);
        for used in &uses {
            self.use_operands(id, *used);
        }
        self.stages.uses[id] = uses;
    }

    /// Makes a value part of every stage that uses it, if these may compute it themselves.
    /// Returns whether the value is part of these stages now.
    fn join(&mut self, id: usize) -> bool {
        let value = &self.lowered.values[id];
        let is_output = self.lowered.outputs.contains(&id);
        let uses = &self.stages.uses[id];
        let is_one = !is_output && uses.iter().all(|used| used == &uses[0]);
        let only = uses.first().copied().filter(|_| is_one);
        match &value.primitive {
            Primitive::Concat(_)
            | Primitive::Partial { .. }
            | Primitive::Attention(_)
            | Primitive::At(..) => false,
            Primitive::Reduce { over, .. } => {
                only.is_some_and(|used| self.stages.join_reduction(id, used, *over))
            }
            Primitive::Product(domain, precision) => {
                only.is_some_and(|used| (self.stages).join_product(id, used, (*domain, *precision)))
            }
            Primitive::Transpose(_) | Primitive::Slice(_) | Primitive::Reshape => true,
            _ if self.bounds[id].is_tight() => is_one && self.is_computed_where_bound(id),
            _ => {
                let Recomputation { work, tensors, .. } = self.recomputations[id];
                is_one || work <= CHEAP && tensors <= 1
            }
        }
    }

    /// Whether the stage that uses a bound value computes what the value is bound to.
    fn is_computed_where_bound(&self, id: usize) -> bool {
        let Some(used) = self.stages.uses[id].first() else {
            return false;
        };
        let root = &self.stages.roots[used.stage];
        let own = self.lowered.values[id].shape;
        used.view.is_same(&View::identity(own))
            && match root.domain {
                Domain::Elements => self.lowered.values[root.value].shape == own,
                Domain::Rows(rows) if matches!(rows.gives, RowGives::Product(_)) => false,
                Domain::Rows(rows) => {
                    matches!(self.bounds[id], Bound::Rows { shape, axes, .. } if (shape, axes) == (rows.shape, rows.axes))
                }
            }
    }

    /// Adds the stage of a value; those of its parts, if it is a concat.
    fn add_stages(&mut self, id: usize, target: Target) {
        let value = &self.lowered.values[id];
        let Primitive::Concat(axis) = value.primitive else {
            let view = View::identity(value.shape);
            let stage = self.stages.add(id, target, view);
            let used = Use { stage, view };
            match value.primitive {
                Primitive::Reduce { over, .. } => {
                    self.stages.join_reduction(id, used, over);
                }
                Primitive::Product(domain, precision) => {
                    self.stages.join_product(id, used, (domain, precision));
                }
                _ => {}
            }
            return;
        };
        let mut start = value.shape.dims()[axis];
        for part in value.operands.iter().rev() {
            let shape = self.lowered.values[*part].shape;
            start -= shape.dims()[axis];
            let target = Target::Part { whole: id, start };
            self.stages.add(*part, target, View::identity(shape));
        }
    }

    /// Adds the uses of a value's operands by a stage that computes the value.
    fn use_operands(&mut self, id: usize, used: Use) {
        let value = &self.lowered.values[id];
        if let Primitive::Gather(axis) = value.primitive {
            self.is_gathered[value.operands[0]] = true;
            let shape = self.lowered.values[value.operands[1]].shape;
            let view = used.view.indexes(axis, shape);
            self.stages.add_use(value.operands[1], Use { view, ..used });
            return;
        }
        if let Primitive::At(function, _) = &value.primitive {
            for operand in &value.operands[..function.content.inputs.len()] {
                self.is_gathered[*operand] = true;
            }
            return;
        }
        if let Primitive::Partial { axes, .. } = value.primitive {
            let shape = self.lowered.values[value.operands[0]].shape;
            self.stages.roots[used.stage].domain = Domain::Rows(RowDomain {
                shape,
                axes,
                gives: RowGives::Strips,
            });
        }
        for (place, operand) in value.operands.iter().enumerate() {
            let view = operand_view(self.lowered, id, place, used.view);
            self.stages.add_use(*operand, Use { view, ..used });
        }
    }
}

/// For each value, whether it can be seen as of another shape without being computed first.
fn reshapable(values: &[Value]) -> Vec<bool> {
    let mut is_reshapable = Vec::with_capacity(values.len());
    for value in values {
        let is_whole_or_one = |operand: &usize| {
            let count = values[*operand].shape.count();
            match value.shape.count() {
                whole if whole == count => is_reshapable[*operand],
                _ => count == 1,
            }
        };
        is_reshapable.push(match &value.primitive {
            Primitive::Reshape => value.operands.iter().all(is_whole_or_one),
            own if own.is_elementwise() => value.operands.iter().all(is_whole_or_one),
            Primitive::Transpose(_) | Primitive::Slice(_) | Primitive::Gather(_) => false,
            // Everything else lies in memory, or is one number.
            _ => true,
        });
    }
    is_reshapable
}
