//! Where a stage's numbers lie in the entries of its segment table.
//!
//! The one place that knows their order: what writes entries, the printer of
//! WGSL and the processor all ask it.

use super::{Access, Body, Rows, Scalar, Stage};

/// Places of words behind the result's address in an entry. The addresses of
/// the loads come first, then that of the constants if the stage has any,
/// then the words of [`StageSizes`](super::StageSizes).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The address of the call's constants.
    pub constants: u32,
    /// The first of the words that [`StageSizes`](super::StageSizes) holds.
    pub sizes: u32,
    /// Elements of the call (a strided map), values in a row, or keys.
    pub count: u32,
    /// Chunks of a row that is cut.
    pub strips: u32,
    /// Dimensions but the first: of a map's places, or of the places of rows.
    pub outer: u32,
    /// Dimensions but the first of the places within a row.
    pub inner: u32,
    /// For each load its strides along the outer dimensions, then along the
    /// inner ones, then the index' stride and its limit.
    pub strides: Vec<u32>,
    /// The result's strides.
    pub result: u32,
    /// For each scalar the word that holds it, if the entry does.
    pub scalars: Vec<u32>,
    /// Words behind the result's address.
    pub words: u32,
}

/// Dimensions that a stage counts its loads' strides in.
#[derive(Clone, Copy, Debug)]
struct Ranks {
    outer: u32,
    inner: u32,
}

impl Layout {
    /// The word with the rows of a product's matrices, of places of so many dimensions.
    /// The columns are the next.
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
                layout.count = take(u32::from(map.is_strided));
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

/// Words of the strides of the result of rows: those of strips lie end to end.
fn result_strides(rows: &Rows) -> u32 {
    match (&rows.result, rows.is_cut) {
        (_, true) => 0,
        (super::RowResult::Row(_), false) => rows.outer,
        (super::RowResult::Element(_), false) => rows.outer + rows.inner,
    }
}
