//! The stages of a chain while they grow: the values that each computes, and on which domain.
//!
//! `cuts` decides which values get stages of their own; what a stage computes is put
//! together in `draft`.

use super::lower::Lowered;
use super::view::View;
use crate::graph::Precision;
use crate::graph::chain::Reduced;
use crate::graph::shape::{MAX_RANK, Shape};

/// The stages of a chain.
pub(super) struct Stages<'a> {
    pub(super) lowered: &'a Lowered,
    /// The root of each stage, in the order of computation once all are known.
    pub(super) roots: Vec<Root>,
    /// For each value, the stages that compute it, and how each looks at it.
    pub(super) uses: Vec<Vec<Use>>,
    /// For each value, whether stages read it from a buffer.
    pub(super) is_kept: Vec<bool>,
}

/// The value that a stage is for, and where the stage writes it.
pub(super) struct Root {
    pub(super) value: usize,
    pub(super) target: Target,
    pub(super) domain: Domain,
    /// The stage's number in [`Use::stage`].
    pub(super) id: usize,
}

/// Where a stage writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To the buffer that other stages read the value from.
    Value,
    /// To the buffer of one of the chain's results.
    Output,
    /// To the buffer of a concat, from `start` along the concat's axis on.
    Part { whole: usize, start: u32 },
}

/// The places that a stage computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// The elements of the stage's value.
    Elements,
    /// The rows of another value.
    Rows(RowDomain),
}

/// Rows along some axes of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowDomain {
    pub(super) shape: Shape,
    /// The axes along a row, a bit each.
    pub(super) axes: u8,
    pub(super) gives: RowGives,
}

/// What a stage of rows computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowGives {
    /// One value for each row.
    One,
    /// A value for each element of a row.
    Each,
    /// One value for each strip of a row.
    Strips,
    /// One value for each row, where the rows are those of a matrix product.
    Product(Precision),
}

impl RowGives {
    /// Results of a row of so many values, which are so many strips.
    pub(super) fn results(self, count: u32, strips: u32) -> u32 {
        match self {
            RowGives::Each => count,
            RowGives::Strips => strips,
            RowGives::One | RowGives::Product(_) => 1,
        }
    }
}

/// One way in which a stage looks at a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) stage: usize,
    pub(super) view: View,
}

impl Stages<'_> {
    /// Adds a stage for a value, seen by this view. Returns the stage's number.
    pub(super) fn add(&mut self, value: usize, target: Target, view: View) -> usize {
        let stage = self.roots.len();
        self.roots.push(Root {
            value,
            target,
            domain: Domain::Elements,
            id: stage,
        });
        self.uses[value].push(Use { stage, view });
        stage
    }

    /// Adds a use of a value, once.
    pub(super) fn add_use(&mut self, value: usize, used: Use) {
        let uses = &mut self.uses[value];
        if !uses.contains(&used) {
            uses.push(used);
        }
    }

    /// Makes a reduction part of the stage that uses it, if that stage computes the same rows
    /// or can. Returns whether the reduction is part of the stage now.
    pub(super) fn join_reduction(&mut self, id: usize, used: Use, over: Reduced) -> bool {
        let value = &self.lowered.values[id];
        let shape = self.lowered.values[value.operands[0]].shape;
        let whole = self.lowered.values[self.roots[used.stage].value].shape;
        let is_row = used.view.is_same(&View::of_reduced(shape, over));
        let is_own = whole == value.shape && used.view.is_same(&View::identity(whole));
        // Where a row has one value, the reduction and what is reduced have one shape, and the
        // stage may be of either.
        let is_own = is_own
            && !(whole == shape && is_row && self.computes_of(value.operands[0], used.stage));
        let rows = |gives| {
            Domain::Rows(RowDomain {
                shape,
                axes: over.axes,
                gives,
            })
        };
        let root = &mut self.roots[used.stage];
        match root.domain {
            Domain::Elements if is_own => {
                root.domain = rows(RowGives::One);
                self.move_to_rows(used.stage, shape, over);
                true
            }
            Domain::Elements if whole == shape && is_row => {
                root.domain = rows(RowGives::Each);
                true
            }
            Domain::Rows(own) if !matches!(own.gives, RowGives::Product(_)) => {
                own.shape == shape && own.axes == over.axes && is_row
            }
            Domain::Elements | Domain::Rows(_) => false,
        }
    }

    /// Makes a matrix product part of the stage that uses it, if that stage computes each
    /// element of the product in its place. Returns whether the product is part of the stage
    /// now.
    pub(super) fn join_product(
        &mut self,
        id: usize,
        used: Use,
        (domain, precision): (Shape, Precision),
    ) -> bool {
        let root = &mut self.roots[used.stage];
        let whole = self.lowered.values[root.value].shape;
        let is_own = whole == self.lowered.values[id].shape && used.view == View::identity(whole);
        let joins = is_own && root.domain == Domain::Elements;
        if joins {
            root.domain = Domain::Rows(RowDomain {
                shape: domain,
                axes: 1 << whole.rank(),
                gives: RowGives::Product(precision),
            });
        }
        joins
    }

    /// Whether a stage uses this value, or one that the value is computed of element by
    /// element, so that the stage works on what is reduced and not on the reduction.
    fn computes_of(&self, reduced: usize, stage: usize) -> bool {
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
            if self.uses[id].contains(&used) {
                return true;
            }
            if value.primitive.is_elementwise() {
                value
                    .operands
                    .iter()
                    .for_each(|operand| is_part[*operand] = true);
            }
        }
        false
    }

    /// Turns the views of a stage whose domain was the elements of a reduction to the rows that
    /// are reduced.
    fn move_to_rows(&mut self, stage: usize, shape: Shape, over: Reduced) {
        let mut to = [None; MAX_RANK];
        let mut next = 0;
        for axis in 0..shape.rank() {
            let is_reduced = over.has(axis);
            if !is_reduced {
                to[next] = Some(axis as u8);
            }
            next += usize::from(over.keep || !is_reduced);
        }
        let uses = self.uses.iter_mut().flatten();
        for used in uses.filter(|used| used.stage == stage) {
            used.view = used.view.with_domain(&to);
        }
    }
}
