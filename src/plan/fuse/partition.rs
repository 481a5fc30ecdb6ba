//! Where a chain is cut into stages.
//!
//! Values are visited from the results back. One that is used by one stage
//! becomes part of it; one that is used by several gets a stage and a buffer
//! of its own, unless it costs no more than [`CHEAP`] simple operations on at
//! most one tensor: then each stage computes it again, which takes less time
//! than writing and reading it. A reduction joins the stage that uses it where
//! that stage works on the same rows.

use super::colocate::{Bound, bounds};
use super::cost::{Cost, costs};
use super::lower::{Lowered, Primitive, Value, base};
use super::view::View;
use crate::graph::shape::Shape;

/// Simple operations that are rather repeated than kept.
const CHEAP: u32 = 4;

/// A chain cut into stages.
pub(super) struct Cut {
    /// The stages in order of computation.
    pub(super) roots: Vec<Root>,
    /// For each value, the stages that compute it, and what they see of it.
    pub(super) uses: Vec<Vec<Use>>,
    /// For each value, whether stages read it from a buffer.
    pub(super) is_kept: Vec<bool>,
}

/// One stage: a value of the chain and where it goes.
pub(super) struct Root {
    pub(super) value: usize,
    pub(super) target: Target,
    pub(super) domain: Domain,
    /// The number that `uses` know the stage by.
    pub(super) id: usize,
}

/// Where a stage writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To the buffer that other stages read the value from.
    Value,
    /// To a result of its own.
    Output,
    /// To its part of a concat, from this place along the axis on.
    Part { whole: usize, start: u32 },
}

/// The places that a stage computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// Those of the value.
    Each,
    /// Rows along some axes of this shape.
    Rows {
        shape: Shape,
        axes: u8,
        /// Whether the value has one element for each of a row.
        is_element: bool,
        /// Whether the rows are those of a matrix product.
        is_product: bool,
    },
}

/// One way in which a stage looks at a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) stage: usize,
    pub(super) view: View,
}

/// Cuts a chain; `forced` values get stages of their own.
pub(super) fn cut(lowered: &Lowered, forced: &[bool]) -> Cut {
    let count = lowered.values.len();
    let mut cutter = Cutter {
        lowered,
        forced: forced.to_vec(),
        costs: costs(lowered),
        bounds: bounds(lowered),
        cut: Cut {
            roots: Vec::new(),
            uses: vec![Vec::new(); count],
            is_kept: vec![false; count],
        },
        is_read: vec![false; count],
    };
    cutter.force();
    for value in (0..count).rev() {
        cutter.visit(value);
    }
    cutter.cut.roots.reverse();
    cutter.cut
}

struct Cutter<'a> {
    lowered: &'a Lowered,
    forced: Vec<bool>,
    costs: Vec<Cost>,
    bounds: Vec<Bound>,
    cut: Cut,
    /// Values that a gather reads.
    is_read: Vec<bool>,
}

impl Cutter<'_> {
    /// Marks what must lie in memory: what gathers read, and what is reshaped
    /// while it is broadcast, moved or cut.
    fn force(&mut self) {
        let values = &self.lowered.values;
        let composes = composes(values);
        for value in values {
            match value.primitive {
                Primitive::Gather(_) => {
                    self.forced[value.operands[0]] = true;
                    self.forced[base(values, value.operands[1])] = true;
                }
                Primitive::Product(_) | Primitive::Attention(_) => {
                    for operand in &value.operands {
                        self.forced[base(values, *operand)] = true;
                    }
                }
                // What is bound is so whatever dimensions a call happens to have.
                Primitive::Transpose(_) | Primitive::Slice(_) | Primitive::Reshape => {
                    let moved = value.operands[0];
                    let is_reshape = value.primitive == Primitive::Reshape;
                    self.forced[moved] |=
                        self.bounds[moved].is_tight() || is_reshape && !composes[moved];
                }
                _ => {}
            }
        }
    }

    fn visit(&mut self, id: usize) {
        let value = &self.lowered.values[id];
        let is_output = self.lowered.outputs.contains(&id);
        let is_used = !self.cut.uses[id].is_empty() || self.is_read[id];
        if value.primitive.is_leaf() {
            if is_output {
                self.root(id, Target::Output, View::identity(value.shape));
            }
            return;
        }
        if !is_used && !is_output {
            return; // Nobody asked for it.
        }
        let joins = !self.forced[id] && !self.is_read[id] && self.joins(id);
        if is_used && !joins {
            // Others read it from memory, and a result is read by nobody.
            self.cut.is_kept[id] = true;
            if is_output {
                self.root(id, Target::Output, View::identity(value.shape));
            }
            self.cut.uses[id].clear();
            self.compute(id, Target::Value);
        } else if is_output {
            self.compute(id, Target::Output);
        }
        let uses = std::mem::take(&mut self.cut.uses[id]);
        for used in &uses {
            self.descend(id, *used);
        }
        self.cut.uses[id] = uses;
    }

    /// Whether every stage that uses the value computes it itself.
    fn joins(&mut self, id: usize) -> bool {
        let value = &self.lowered.values[id];
        let is_output = self.lowered.outputs.contains(&id);
        let uses = &self.cut.uses[id];
        let is_one = !is_output && uses.iter().all(|used| used == &uses[0]);
        match &value.primitive {
            Primitive::Concat(_) | Primitive::Partial { .. } | Primitive::Attention(_) => false,
            Primitive::Reduce { axes, keep, .. } => {
                is_one
                    && uses
                        .first()
                        .copied()
                        .is_some_and(|used| self.joins_rows(id, used, (*axes, *keep)))
            }
            Primitive::Product(domain) => {
                is_one
                    && uses
                        .first()
                        .copied()
                        .is_some_and(|used| self.joins_product(id, used, *domain))
            }
            Primitive::Transpose(_) | Primitive::Slice(_) | Primitive::Reshape => true,
            _ if self.bounds[id].is_tight() => is_one && self.computes(id),
            _ => is_one || self.costs[id].work <= CHEAP && self.costs[id].tensors <= 1,
        }
    }

    /// Whether the stage that uses a bound value can compute what it is bound to.
    fn computes(&self, id: usize) -> bool {
        let Some(used) = self.cut.uses[id].first() else {
            return false;
        };
        let root = &self.cut.roots[used.stage];
        let own = self.lowered.values[id].shape;
        let is_bound_to = |rows: Shape, along: u8| matches!(self.bounds[id], Bound::Rows { shape, axes, .. } if (shape, axes) == (rows, along));
        used.view.is_same(&View::identity(own))
            && match root.domain {
                Domain::Each => self.lowered.values[root.value].shape == own,
                Domain::Rows {
                    shape,
                    axes,
                    is_product: false,
                    ..
                } => is_bound_to(shape, axes),
                Domain::Rows { .. } => false,
            }
    }

    /// Makes a reduction part of the stage that uses it, if that works on the
    /// same rows, or can.
    fn joins_rows(&mut self, id: usize, used: Use, over: (u8, bool)) -> bool {
        let value = &self.lowered.values[id];
        let shape = self.lowered.values[value.operands[0]].shape;
        let whole = self.lowered.values[self.cut.roots[used.stage].value].shape;
        let is_row = used.view.is_same(&View::of_reduced(shape, over));
        let is_own = whole == value.shape && used.view.is_same(&View::identity(whole));
        // Of rows with one value the stage may have either.
        let is_own =
            is_own && !(whole == shape && is_row && self.is_beside(value.operands[0], used.stage));
        let root = &mut self.cut.roots[used.stage];
        match root.domain {
            Domain::Each if is_own => {
                root.domain = Domain::Rows {
                    shape,
                    axes: over.0,
                    is_element: false,
                    is_product: false,
                };
                self.recount(used.stage, shape, over);
                true
            }
            Domain::Each if whole == shape && is_row => {
                root.domain = Domain::Rows {
                    shape,
                    axes: over.0,
                    is_element: true,
                    is_product: false,
                };
                true
            }
            Domain::Rows {
                shape: rows,
                axes,
                is_product: false,
                ..
            } => rows == shape && axes == over.0 && is_row,
            Domain::Each | Domain::Rows { .. } => false,
        }
    }

    /// Whether a stage uses the value that a reduction is of, or one that this is
    /// computed of element by element: then it works on what is reduced.
    fn is_beside(&self, reduced: usize, stage: usize) -> bool {
        let shape = self.lowered.values[reduced].shape;
        let used = Use {
            stage,
            view: View::identity(shape),
        };
        let mut is_part = vec![false; reduced + 1];
        is_part[reduced] = true;
        for id in (0..=reduced).rev() {
            let value = &self.lowered.values[id];
            if !is_part[id] || value.shape != shape {
                continue;
            }
            if self.cut.uses[id].contains(&used) {
                return true;
            }
            if let Primitive::Unary(_) | Primitive::Binary(_) = value.primitive {
                value
                    .operands
                    .iter()
                    .for_each(|operand| is_part[*operand] = true);
            }
        }
        false
    }

    /// Makes a matrix product part of the stage that uses it, element by element.
    fn joins_product(&mut self, id: usize, used: Use, domain: Shape) -> bool {
        let root = &mut self.cut.roots[used.stage];
        let whole = self.lowered.values[root.value].shape;
        let is_own = whole == self.lowered.values[id].shape && used.view == View::identity(whole);
        let joins = is_own && root.domain == Domain::Each;
        if joins {
            root.domain = Domain::Rows {
                shape: domain,
                axes: 1 << whole.rank(),
                is_element: false,
                is_product: true,
            };
        }
        joins
    }

    /// Tells a stage that its domain is not the places of its value any more,
    /// but those that the value was reduced from.
    fn recount(&mut self, stage: usize, shape: Shape, (axes, keep): (u8, bool)) {
        let mut to = [None; crate::graph::shape::MAX_RANK];
        let mut next = 0;
        for axis in 0..shape.rank() {
            let is_reduced = axes >> axis & 1 == 1;
            if !is_reduced {
                to[next] = Some(axis as u8);
            }
            next += usize::from(keep || !is_reduced);
        }
        let uses = self.cut.uses.iter_mut().flatten();
        for used in uses.filter(|used| used.stage == stage) {
            used.view = used.view.with_domain(&to);
        }
    }

    /// Gives a value's stage, or those of its parts.
    fn compute(&mut self, id: usize, target: Target) {
        let value = &self.lowered.values[id];
        let Primitive::Concat(axis) = value.primitive else {
            let view = View::identity(value.shape);
            let stage = self.cut.roots.len();
            self.root(id, target, view);
            let used = Use { stage, view };
            match value.primitive {
                Primitive::Reduce { axes, keep, .. } => {
                    self.joins_rows(id, used, (axes, keep));
                }
                Primitive::Product(domain) => {
                    self.joins_product(id, used, domain);
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
            self.root(*part, target, View::identity(shape));
        }
    }

    fn root(&mut self, value: usize, target: Target, view: View) {
        let id = self.cut.roots.len();
        self.cut.roots.push(Root {
            value,
            target,
            domain: Domain::Each,
            id,
        });
        self.cut.uses[value].push(Use { stage: id, view });
    }

    /// What a stage that computes a value uses of its operands.
    fn descend(&mut self, id: usize, used: Use) {
        let value = &self.lowered.values[id];
        if let Primitive::Gather(axis) = value.primitive {
            self.is_read[value.operands[0]] = true;
            let shape = self.lowered.values[value.operands[1]].shape;
            let view = used.view.indexes(axis, shape);
            self.use_once(value.operands[1], Use { view, ..used });
            return;
        }
        if let Primitive::Partial { axes, .. } = value.primitive {
            let shape = self.lowered.values[value.operands[0]].shape;
            self.cut.roots[used.stage].domain = Domain::Rows {
                shape,
                axes,
                is_element: false,
                is_product: false,
            };
        }
        for place in 0..value.operands.len() {
            let operand = value.operands[place];
            let view = operand_view(self.lowered, id, (place, used.view));
            self.use_once(operand, Use { view, ..used });
        }
    }

    fn use_once(&mut self, value: usize, used: Use) {
        let uses = &mut self.cut.uses[value];
        if !uses.contains(&used) {
            uses.push(used);
        }
    }
}

/// What a stage sees of an operand, given what it sees of the value.
pub(super) fn operand_view(lowered: &Lowered, id: usize, (place, view): (usize, View)) -> View {
    let value = &lowered.values[id];
    let operand = lowered.values[value.operands[place]].shape;
    match &value.primitive {
        Primitive::Transpose(order) => view.transpose(order),
        Primitive::Slice(ranges) => view.slice(ranges, operand),
        Primitive::Reshape => view,
        Primitive::Reduce { .. } | Primitive::Partial { .. } => View::identity(operand),
        Primitive::Product(_) => {
            let (rows, columns, inner) = matrix_axes(value.shape);
            let axes = [[rows, inner], [inner, columns]][place];
            View::of_matrix(value.shape, operand, axes)
        }
        Primitive::Attention(_) if place < 3 => {
            let (queries, columns, keys) = matrix_axes(value.shape);
            let rows = if place == 0 { queries } else { keys };
            View::of_matrix(value.shape, operand, [rows, columns])
        }
        _ => view
            .operand(value.shape, operand)
            .expect("what does not compose is kept in memory"),
    }
}

/// Rows and columns of a matrix, and the axis behind them that the stage has.
fn matrix_axes(shape: Shape) -> (usize, usize, usize) {
    let rank = shape.rank();
    (rank - 2, rank - 1, rank)
}

/// Which values can be seen as of another shape without being computed first.
fn composes(values: &[Value]) -> Vec<bool> {
    let mut composes = Vec::with_capacity(values.len());
    for value in values {
        let whole_or_one = |operand: &usize| {
            let count = values[*operand].shape.count();
            match value.shape.count() {
                whole if whole == count => composes[*operand],
                _ => count == 1,
            }
        };
        composes.push(match value.primitive {
            Primitive::Unary(_) | Primitive::Binary(_) | Primitive::Reshape => {
                value.operands.iter().all(whole_or_one)
            }
            Primitive::Transpose(_) | Primitive::Slice(_) | Primitive::Gather(_) => false,
            // They lie in memory, or are one number.
            _ => true,
        });
    }
    composes
}
