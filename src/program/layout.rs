//! The order of a stage's numbers in the entries of its segment table.
//!
//! No other file knows the order: the planner writes entries by a [`Layout`], and kernels and
//! their twins read entries by the same one.

use super::{Access, Body, Rows, Scalar, Stage};

/// Where each word of an entry lies, counted behind the address of the result. The addresses of
/// the loads come first, then the address of the call's constants if the stage reads any, then
/// the words of [`StageSizes`](super::StageSizes).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The word with the address of the call's constants.
    pub constants: u32,
    /// The first of the words that [`StageSizes`](super::StageSizes) holds.
    pub sizes: u32,
    /// The word with the elements of a map that is counted, the values of a row, or the keys of a
    /// query.
    pub count: u32,
    /// The word with the strips of a row.
    pub strips: u32,
    /// The words with all dimensions but the first of a map, or of what tells rows apart.
    pub outer: u32,
    /// The words with all dimensions but the first within a row.
    pub inner: u32,
    /// For each load the words with the strides along the outer dimensions, then along the inner
    /// ones, then the stride of an index and the index's limit.
    pub strides: Vec<u32>,
    /// The words with the result's strides.
    pub result: u32,
    /// For each scalar the word that holds the scalar, if the entry holds it.
    pub scalars: Vec<u32>,
    /// How many words there are behind the address of the result.
    pub words: u32,
}

/// How many dimensions a stage's loads have strides for.
#[derive(Clone, Copy, Debug)]
struct Ranks {
    outer: u32,
    inner: u32,
}

impl Layout {
    /// The word with the rows of a product's matrices, where `rank` dimensions tell elements
    /// apart. The next word has the columns.
    pub fn matrix(&self, rank: u32) -> u32 {
        self.outer + rank - 3
    }

    /// The layout of a stage's entries.
    pub fn of(stage: &Stage) -> Layout {
        let mut layout = Layout::default();
        let mut next = stage.loads.len() as u32;
        let mut take = |words: u32| {
            let at = next;
            next += words;
            at
        };
        layout.constants = take(u32::from(stage.has_constants()));
        layout.sizes = take(0);
        let (ranks, result) = match &stage.body {
            Body::Map(map) => {
                layout.count = take(u32::from(map.is_counted()));
                let ranks = Ranks {
                    outer: map.rank,
                    inner: 0,
                };
                (ranks, if map.is_strided { map.rank } else { 0 })
            }
            Body::Rows(rows) => {
                layout.count = take(1);
                layout.strips = take(u32::from(rows.is_cut));
                let ranks = Ranks {
                    outer: rows.outer,
                    inner: rows.inner,
                };
                (ranks, result_strides(rows))
            }
            Body::Attention(attention) => {
                layout.count = take(1);
                let ranks = Ranks {
                    outer: attention.outer,
                    inner: 1,
                };
                (ranks, 0)
            }
            Body::Named(..) | Body::Search(_) => (Ranks { outer: 0, inner: 0 }, 0),
        };
        layout.outer = take(ranks.outer.saturating_sub(1));
        layout.inner = take(ranks.inner.saturating_sub(1));
        for load in &stage.loads {
            let words = match load.access {
                Access::Flat | Access::Found => 0,
                Access::Whole => 2,
                Access::Strided => ranks.outer + ranks.inner,
                Access::Indexed(_) => ranks.outer + ranks.inner + 2,
            };
            layout.strides.push(take(words));
        }
        layout.result = take(result);
        for scalar in &stage.scalars {
            layout.scalars.push(match scalar {
                Scalar::Constant(_) => 0,
                Scalar::Count => take(1),
            });
        }
        layout.words = next;
        layout
    }
}

/// How many strides the result of rows has. The results of strips lie end to end, and have none.
fn result_strides(rows: &Rows) -> u32 {
    match (&rows.result, rows.is_cut) {
        (_, true) => 0,
        (super::RowResult::Row(_), false) => rows.outer,
        (super::RowResult::Element(_), false) => rows.outer + rows.inner,
    }
}
