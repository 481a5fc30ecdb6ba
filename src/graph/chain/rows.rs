//! Chains that are computed row by row along the first axis, so that some rows are a chain of
//! their own.
//!
//! Only shapes decide. The planner decides when a chain is sliced, and where.

use super::{Chain, Node, Op};
use crate::graph::shape::Shape;

/// What a chain has for each of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByRows {
    /// How many rows there are.
    pub rows: u32,
    /// For each input the elements of a row; 0 where every row reads the whole input.
    pub inputs: Vec<u32>,
    /// For each result the elements of a row.
    pub outputs: Vec<u32>,
    /// Whether each node has rows.
    has_rows: Vec<bool>,
}

/// How later nodes read a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Each row reads the same row.
    Rows,
    /// Every row reads the whole node.
    Whole,
}

impl Chain {
    /// The rows of a chain in which each row of a result needs, of each tensor, either the same row
    /// or the whole; `None` for any other chain, and for fewer than two rows.
    pub fn by_rows(&self) -> Option<ByRows> {
        let mut seen: Vec<Option<Reading>> = vec![None; self.nodes.len()];
        for output in &self.outputs {
            note(&mut seen, output.index(), Reading::Rows)?;
        }
        let mut rows = 0;
        for (id, node) in self.nodes.iter().enumerate().rev() {
            let Some(how) = seen[id] else {
                continue; // No result depends on this node.
            };
            if how == Reading::Rows {
                rows = divisor(rows, *node.shape.dims().first()?);
            }
            for (place, operand) in node.operands.iter().enumerate() {
                let how = match how {
                    Reading::Rows => self.operand(node, place)?,
                    Reading::Whole => Reading::Whole,
                };
                note(&mut seen, operand.index(), how)?;
            }
        }
        let has_rows: Vec<bool> = seen.iter().map(|how| *how == Some(Reading::Rows)).collect();
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

    /// The chain of so many of these rows.
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

    /// How a node that is computed by rows reads an operand; `None` where it reads neither the same
    /// row nor the whole.
    fn operand(&self, node: &Node, place: usize) -> Option<Reading> {
        let operand = self.node(node.operands[place]);
        let (own, shape) = (node.shape, operand.shape);
        // An operand that broadcasts has the rows of the result, or is read whole.
        let broadcast = |rank: usize| match shape.rank() == rank && shape.dims()[0] != 1 {
            true => Reading::Rows,
            false => Reading::Whole,
        };
        let only = |is_by_rows: bool| is_by_rows.then_some(Reading::Rows);
        match &node.op {
            Op::Input { .. } | Op::Constant { .. } => None,
            Op::Unary(_) => Some(Reading::Rows),
            Op::Call(function) if !function.content.is_fused() => None,
            Op::Binary(_) | Op::Clamp | Op::Where | Op::Call(_) => Some(broadcast(own.rank())),
            Op::Dot => Some(broadcast(own.rank() + 1)),
            Op::Matmul(_) => {
                // A vector counts as a matrix here, so that the result has more axes.
                let ranks = [0, 1].map(|place| self.node(node.operands[place]).shape.rank());
                match own.rank() + ranks.iter().filter(|rank| **rank == 1).count() {
                    2 if ranks[0] == 1 => None, // The first axis of the result is that of columns.
                    2 => Some([Reading::Rows, Reading::Whole][place]),
                    rank => Some(broadcast(rank)),
                }
            }
            Op::Attention(_) if own.rank() > 2 && place < 3 => Some(broadcast(own.rank())),
            // A causal query attends to other keys at another place among all queries, one with a
            // window too, and a bias is that of the place.
            Op::Attention(heads) if place == 0 => {
                let is_placed = heads.is_causal || heads.window.is_some();
                only(!is_placed && node.operands.len() == 4)
            }
            Op::Attention(_) => Some(Reading::Whole),
            Op::Reduce { over, .. } => only(!over.has(0)),
            Op::Norm { axis, .. } if place == 0 => only(*axis != 0),
            Op::Norm { .. } => Some(Reading::Whole),
            Op::Transpose { order } => only(order[0] == 0),
            Op::Slice { ranges } => {
                let all = ranges.first()?;
                only((all.start, all.step, all.count) == (0, 1, shape.dims()[0]))
            }
            Op::Reshape { .. } => only(shape.rank() > 0),
            Op::Gather { axis: 0 } if place == 0 => Some(Reading::Whole),
            Op::Gather { axis: 0 } => only(shape.rank() > 0),
            Op::Gather { .. } => Some([Reading::Rows, Reading::Whole][place]),
            Op::Concat { axis } => only(*axis != 0),
        }
    }
}

/// Notes how a node is read; `None` where other nodes read it in the other way.
fn note(seen: &mut [Option<Reading>], id: usize, how: Reading) -> Option<()> {
    match seen[id].replace(how) {
        Some(other) if other != how => None,
        _ => Some(()),
    }
}

/// The greatest common divisor.
fn divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
