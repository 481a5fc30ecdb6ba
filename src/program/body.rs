//! What stages compute: expressions of elements, folds of rows, products and attention.
//!
//! Expressions are of `graph`. How a stage is printed or run is not said here.

use super::{Named, Settings};
use crate::graph::Expr;
use crate::graph::searching::Searching;
use crate::tensor::DType;

/// Values of a strip: the most that one fold takes. Longer rows are folded strip by strip, and
/// the results of the strips are folded again.
pub const STRIP: u32 = 4096;

/// Rows of up to this many values take one thread, longer ones a workgroup.
pub const NARROW: u32 = 32;

/// The same where the last axis is not among those of the rows: then neighbors of
/// a thread read beside it. What is summed over a call's own rows, such as the
/// tokens of texts, is one program up to here.
pub const TALL: u32 = 512;

/// Threads that share a row, a tile of a product or a block of queries.
pub const LANES: u32 = 64;

/// Queries of a head that a workgroup computes, and keys that it looks at at a time.
pub const QUERIES: u32 = 32;

/// What a stage computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// One value for each place.
    Map(Map),
    /// Rows, each folded to values that may be used for its elements.
    Rows(Rows),
    /// Heads of an attention.
    Attention(Attention),
    /// What a kernel that is written by hand computes.
    Named(Named, Settings),
    /// The best of an index for queries, which takes several dispatches.
    Search(Searching),
}

/// `result[i] = value(loads of i, scalars)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Map {
    /// Dimensions that strides are counted in; 0 where every load is flat.
    pub rank: u32,
    /// What is computed.
    pub value: Expr,
    /// Whether results lie apart, as the parts of a concat do.
    pub is_strided: bool,
}

/// Reductions of rows, in order, and what is made of them. The variables
/// behind the scalars are what the steps gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Dimensions of the places of rows.
    pub outer: u32,
    /// Dimensions of the places within a row.
    pub inner: u32,
    /// Who computes a row.
    pub width: Width,
    /// What is known of a row, step by step.
    pub steps: Vec<RowStep>,
    /// The result.
    pub result: RowResult,
    /// Whether a row is cut into strips, with a result for each.
    pub is_cut: bool,
    /// Marks the loads that read the same value for a whole row.
    pub is_row: Vec<bool>,
}

/// Who computes a row: chosen by its length alone, because the order of
/// summation depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// One thread, value by value.
    Thread,
    /// A workgroup (or a thread that sums like one): thread `l` takes the values `l`, `l + 64`, ..., and the
    /// partial results are folded pairwise, those 32 apart first.
    Group,
    /// A workgroup computes a tile of a matrix product: a row of `Rows` is one
    /// of its elements, summed from the first product to the last.
    Tile(Tile),
}

/// A product of matrices. The outer dimensions of its stage are at least
/// three: those in front, rows and columns; the inner one is what both share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// The loads of the two factors.
    pub factors: [u32; 2],
    /// Whether the neighbors in a factor are those along its rows or columns,
    /// and not along the dimension that is summed.
    pub is_across: [bool; 2],
}

/// One value for a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowStep {
    /// The fold of an expression over the row.
    Fold(Fold, Expr),
    /// A value made of earlier ones.
    Let(Expr),
}

/// What a row gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowResult {
    /// One value.
    Row(Expr),
    /// A value for each of its elements.
    Element(Expr),
}

/// How values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Their sum.
    Sum,
    /// The largest; NaN if any is.
    Max,
    /// The smallest; NaN if any is.
    Min,
    /// The place of the first that is not 0.
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

    /// The type of what it gives.
    pub(crate) const fn dtype(self) -> DType {
        match self {
            Fold::Sum | Fold::Max | Fold::Min => DType::F32,
            Fold::First | Fold::Least => DType::U32,
        }
    }

    /// The fold that makes one result of several.
    pub(crate) const fn of_partials(self) -> Fold {
        match self {
            Fold::First => Fold::Least,
            other => other,
        }
    }
}

/// softmax(q·kᵀ · scale)·v for each head of each row of queries, where the scale
/// is the stage's scalar. Scores are never in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attention {
    /// The loads of queries, keys and values. Behind the strides of the outer
    /// dimensions but the last an entry has that from row to row, and that from
    /// float to float.
    pub loads: [u32; 3],
    /// Dimensions of the places of queries: those in front and their rows.
    pub outer: u32,
    /// Heads that share a row.
    pub heads: u32,
    /// Floats of a head.
    pub size: u32,
    /// Whether a query looks at no keys behind its own.
    pub is_causal: bool,
    /// Whether four neighbors of a head lie in one vector of four words, those
    /// of the result too.
    pub is_quads: bool,
}
