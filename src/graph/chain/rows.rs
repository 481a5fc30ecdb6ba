//! Which chains are computed row by row along the first axis, so that some of
//! their rows are a chain of their own.
//!
//! Shapes only: when rows are taken apart, and how many, the planner says.

use super::{Chain, Node, Op};
use crate::graph::shape::Shape;

/// What a chain has for each of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByRows {
    /// The rows.
    pub rows: u32,
    /// For each input the elements of a row; 0 where every row reads all of it.
    pub inputs: Vec<u32>,
    /// For each result the elements of a row.
    pub outputs: Vec<u32>,
    /// Which nodes have rows.
    has_rows: Vec<bool>,
}

/// How a node is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// Row by row.
    Rows,
    /// As a whole, by every row.
    Whole,
}

impl Chain {
    /// The rows of a chain whose results' rows need of each tensor either the
    /// same rows or all of it; `None` for any other, and for less than two rows.
    pub fn by_rows(&self) -> Option<ByRows> {
        let mut seen: Vec<Option<Seen>> = vec![None; self.nodes.len()];
        for output in &self.outputs {
            see(&mut seen, output.index(), Seen::Rows)?;
        }
        let mut rows = 0;
        for (id, node) in self.nodes.iter().enumerate().rev() {
            let Some(how) = seen[id] else {
                continue; // Nobody reads it.
            };
            if how == Seen::Rows {
                rows = divisor(rows, *node.shape.dims().first()?);
            }
            for (place, operand) in node.operands.iter().enumerate() {
                let how = match how {
                    Seen::Rows => self.operand(node, place)?,
                    Seen::Whole => Seen::Whole,
                };
                see(&mut seen, operand.index(), how)?;
            }
        }
        let has_rows: Vec<bool> = seen.iter().map(|how| *how == Some(Seen::Rows)).collect();
        let inputs = self.nodes.iter().zip(&has_rows);
        let inputs = inputs.filter(|(node, _)| matches!(node.op, Op::Input { .. }));
        let of_row = |node: &Node| node.shape.count().checked_div(rows).unwrap_or(0);
        let inputs = inputs.map(|(node, has_rows)| if *has_rows { of_row(node) } else { 0 });
        let outputs = self.outputs.iter().map(|id| of_row(self.node(*id)));
        let by_rows = ByRows {
            rows,
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            has_rows,
        };
        (rows > 1 && by_rows.outputs.iter().all(|words| *words > 0)).then_some(by_rows)
    }

    /// The chain of some of these rows.
    #[must_use]
    pub fn of_rows(&self, by: &ByRows, rows: u32) -> Chain {
        let scaled = |shape: Shape| {
            shape.map(|axis, dim| Some(if axis == 0 { dim / by.rows * rows } else { dim }))
        };
        let mut chain = self.clone();
        let nodes = chain.nodes.iter_mut().zip(&by.has_rows);
        for (node, _) in nodes.filter(|(_, has_rows)| **has_rows) {
            node.shape = scaled(node.shape);
            match &mut node.op {
                Op::Reshape { shape } => *shape = scaled(*shape),
                Op::Slice { ranges } => ranges[0].count = node.shape.dims()[0],
                _ => {}
            }
        }
        chain
    }

    /// How a node with rows looks at an operand; `None` where it is neither way.
    fn operand(&self, node: &Node, place: usize) -> Option<Seen> {
        let operand = self.node(node.operands[place]);
        let (own, shape) = (node.shape, operand.shape);
        // What broadcasts: its rows are those of the result, or it has none.
        let broadcast = |rank: usize| match shape.rank() == rank && shape.dims()[0] != 1 {
            true => Seen::Rows,
            false => Seen::Whole,
        };
        let only = |is_by_rows: bool| is_by_rows.then_some(Seen::Rows);
        match &node.op {
            Op::Input { .. } | Op::Constant { .. } => None,
            Op::Unary(_) => Some(Seen::Rows),
            Op::Binary(_) | Op::Clamp => Some(broadcast(own.rank())),
            Op::Dot => Some(broadcast(own.rank() + 1)),
            Op::Matmul => {
                // The rank that the result has where vectors are matrices.
                let ranks = [0, 1].map(|place| self.node(node.operands[place]).shape.rank());
                match own.rank() + ranks.iter().filter(|rank| **rank == 1).count() {
                    2 if ranks[0] == 1 => None, // Its first axis is that of the columns.
                    2 => Some([Seen::Rows, Seen::Whole][place]),
                    rank => Some(broadcast(rank)),
                }
            }
            Op::Attention(_) if own.rank() > 2 && place < 3 => Some(broadcast(own.rank())),
            // Where a causal query looks depends on its place among the others.
            Op::Attention(heads) if place == 0 => only(!heads.is_causal),
            Op::Attention(_) => Some(Seen::Whole),
            Op::Reduce { axes, .. } => only(axes & 1 == 0),
            Op::Norm { axis, .. } if place == 0 => only(*axis != 0),
            Op::Norm { .. } => Some(Seen::Whole),
            Op::Transpose { order } => only(order[0] == 0),
            Op::Slice { ranges } => {
                let all = ranges.first()?;
                only((all.start, all.step, all.count) == (0, 1, shape.dims()[0]))
            }
            Op::Reshape { .. } => only(shape.rank() > 0),
            Op::Gather { axis: 0 } if place == 0 => Some(Seen::Whole),
            Op::Gather { axis: 0 } => only(shape.rank() > 0),
            Op::Gather { .. } => Some([Seen::Rows, Seen::Whole][place]),
            Op::Concat { axis } => only(*axis != 0),
        }
    }
}

/// Notes how a node is looked at; `None` where it is looked at otherwise too.
fn see(seen: &mut [Option<Seen>], id: usize, how: Seen) -> Option<()> {
    match seen[id].replace(how) {
        Some(other) if other != how => None,
        _ => Some(()),
    }
}

fn divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
