//! What stages compute: expressions of elements, folds of rows, products and attention.
//!
//! Expressions are defined in `graph`. How a stage is printed or run is not said here.

use super::{Named, Settings};
use crate::graph::searching::Searching;
use crate::graph::{Expr, Precision, Term};
use crate::tensor::DType;

/// Values of a strip: the most that one fold takes. Longer rows are folded strip by strip, and
/// the results of the strips are folded again.
pub const STRIP: u32 = 4096;

/// The most values of a row that one thread folds; a workgroup folds a longer row.
pub const NARROW: u32 = 32;

/// The same as [`NARROW`] for rows that do not run along the last axis: neighboring threads then read
/// neighboring words. Sums over a call's own rows, such as the tokens of a text, are one
/// program for all lengths up to here.
pub const TALL: u32 = 512;

/// Threads that share a row, a tile of a product or a group of queries.
pub const LANES: u32 = 64;

/// Queries of a head that a workgroup computes, and keys that the workgroup reads at a time.
pub const QUERIES: u32 = 32;

/// What a stage computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// One value for each element.
    Map(Map),
    /// Rows, each of which is folded to values that the row's elements may use.
    Rows(Rows),
    /// Attention, for several heads.
    Attention(Attention),
    /// A kernel that is written by hand.
    Named(Named, Settings),
    /// The vectors of an index that are nearest to queries, which takes several dispatches.
    Search(Searching),
}

impl Body {
    /// Visits the expressions of maps and rows.
    pub(crate) fn each_expr<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            Body::Map(map) => visit(&map.value),
            Body::Rows(rows) => {
                for step in &rows.steps {
                    let (RowStep::Fold(_, value) | RowStep::Let(value)) = step;
                    visit(value);
                }
                let (RowResult::Row(value) | RowResult::Element(value)) = &rows.result;
                visit(value);
            }
            Body::Attention(_) | Body::Named(..) | Body::Search(_) => {}
        }
    }
}

/// `result[i] = value(loads of i, scalars)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Map {
    /// Dimensions that loads and result have strides for; 0 where every load is flat.
    pub rank: u32,
    /// The value of an element.
    pub value: Expr,
    /// Whether the result has strides of its own, as a part of a concat has.
    pub is_strided: bool,
}

impl Map {
    /// Whether the entry says how many elements there are. Threads compute four each; what lies
    /// behind the last element must not be stored where the result has strides, and a caller's
    /// function must not be asked for it.
    pub fn is_counted(&self) -> bool {
        self.is_strided || self.has_calls()
    }

    /// Whether the value applies functions of callers.
    pub fn has_calls(&self) -> bool {
        let mut terms = self.value.terms().iter();
        terms.any(|term| matches!(term, Term::Call(..)))
    }
}

/// Rows: steps that each give one value for a row, and a result. In expressions, the variables
/// behind the scalars are the values of the steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Dimensions that tell rows apart.
    pub outer: u32,
    /// Dimensions within a row.
    pub inner: u32,
    /// The threads that compute a row.
    pub width: Width,
    /// What is computed once for each row, in order.
    pub steps: Vec<RowStep>,
    /// What is computed at last.
    pub result: RowResult,
    /// Whether a row is cut into strips, with a result for each.
    pub is_cut: bool,
    /// Marks the loads that read one value for a whole row.
    pub is_row: Vec<bool>,
}

/// The threads that compute a row: chosen by the row's length alone, because the order of
/// summation depends on the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// One thread, value by value.
    Thread,
    /// A workgroup, or a thread of the CPU that sums in the same order: thread `l` folds the
    /// values `l`, `l + 64`, ..., and the threads' results are folded in pairs, those 32
    /// threads apart first.
    Group,
    /// A workgroup for each tile of a matrix product. A row of [`Rows`] is then one element of
    /// the product, summed from the first term to the last.
    Tile(Tile),
}

/// A product of matrices. The outer dimensions of the stage are at least three: those of the
/// stack of matrices, rows, and columns. The inner dimension is the one that is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// The loads of the two factors.
    pub factors: [u32; 2],
    /// For each factor, whether neighboring words are neighbors along rows or columns, and not
    /// along the dimension that is summed.
    pub is_across: [bool; 2],
    /// What products are computed in.
    pub precision: Precision,
    /// Where every four columns of the result are a vector of four words: the loads behind the sums
    /// that are read so too, a bit each.
    pub vectors: Option<u32>,
}

/// A step that gives one value for a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowStep {
    /// The fold of an expression over the row.
    Fold(Fold, Expr),
    /// An expression of earlier values.
    Let(Expr),
}

/// What a row gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowResult {
    /// One value.
    Row(Expr),
    /// A value for each element of the row.
    Element(Expr),
}

/// How several values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// The sum.
    Sum,
    /// The largest; NaN if any value is.
    Max,
    /// The smallest; NaN if any value is.
    Min,
    /// The place of the first value that is not 0.
    First,
    /// The smallest of integers.
    Least,
}

impl Fold {
    /// The fold's name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Fold::Sum => "sum",
            Fold::Max => "max",
            Fold::Min => "min",
            Fold::First => "first",
            Fold::Least => "least",
        }
    }

    /// The type of the result.
    pub(crate) const fn dtype(self) -> DType {
        match self {
            Fold::Sum | Fold::Max | Fold::Min => DType::F32,
            Fold::First | Fold::Least => DType::U32,
        }
    }

    /// The fold that makes one result of the results of strips.
    pub(crate) const fn of_partials(self) -> Fold {
        match self {
            Fold::First => Fold::Least,
            other => other,
        }
    }
}

/// softmax(q·kᵀ · scale + bias)·v for each head of each row of queries, where the scale is the
/// stage's scalar. Scores are never in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attention {
    /// The loads of queries, keys and values. For each, an entry has the strides of the stack's
    /// dimensions, then the stride from row to row, then the stride from float to float.
    pub loads: [u32; 3],
    /// The load of the bias, if there is one. Its strides behind those of the stack are those from
    /// distance to distance and from head to head.
    pub bias: Option<u32>,
    /// Dimensions that tell queries apart: those of the stack, and rows.
    pub outer: u32,
    /// Heads that lie side by side in a row of queries.
    pub heads: u32,
    /// Neighboring heads of queries that share a head of keys and values.
    pub sharing: u32,
    /// Floats of a head.
    pub size: u32,
    /// Whether a query attends to no keys behind its own place.
    pub is_causal: bool,
    /// How far from its own place a query attends to keys; `None` is however far.
    pub window: Option<u32>,
    /// Whether a head's floats can be read and written in vectors of four words.
    pub is_quads: bool,
}

impl Attention {
    /// How many of so many keys a query attends to at most.
    pub(crate) fn keys_of_a_query(&self, keys: f64) -> f64 {
        let sides = if self.is_causal { 1.0 } else { 2.0 };
        let near = |window: u32| keys.min(sides * f64::from(window) + 1.0);
        self.window.map_or(keys, near)
    }
}
