//! WHAT was asked: operations on named inputs, as plain data.
//!
//! A graph has no lengths and no values, so all calls of one structure share
//! one graph. It does not know how, when or where it will be computed.

pub mod chain;
mod expr;
mod op;
pub mod sampling;
pub mod searching;
pub mod shape;

#[cfg(not(target_arch = "wasm32"))]
#[path = "refuse_native.rs"]
mod refuse;
#[cfg(target_arch = "wasm32")]
#[path = "refuse_web.rs"]
mod refuse;

pub use expr::{BinaryFn, Expr, ExprBuilder, Term, TermId, UnaryFn};
pub use op::{Measure, Mode, Op, OpClass, QUATERNION, STATE, STEPS, Timing};

use crate::error::Error;
use crate::tensor::Format;

/// A node of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// The node's place in [`Graph::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a node's value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// One row of the call's operand for each of its rows.
    Input {
        /// Which operand, counted over the inputs.
        index: usize,
        /// Format of a row.
        format: Format,
    },
    /// One value for the whole call.
    Scalar {
        /// Format of the value, one word wide.
        format: Format,
    },
    /// The result of an operation.
    Op {
        /// The operation.
        op: Op,
        /// Its operands, earlier nodes.
        operands: Vec<NodeId>,
        /// Format of the result's rows.
        format: Format,
    },
}

impl Node {
    /// The format of the node's rows.
    pub fn format(&self) -> Format {
        match self {
            Node::Input { format, .. } | Node::Scalar { format } | Node::Op { format, .. } => {
                *format
            }
        }
    }
}

/// The structure of a call. Equal graphs merge.
///
/// Invariant: operands come before the nodes that use them, and the last node
/// is the result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Graph {
    nodes: Vec<Node>,
    inputs: usize,
}

impl Graph {
    /// Adds an operand with one row for each row of the call.
    pub fn input(&mut self, format: Format) -> NodeId {
        let index = self.inputs;
        self.inputs += 1;
        self.push(Node::Input { index, format })
    }

    /// Adds the call's scalar.
    pub fn scalar(&mut self, format: Format) -> NodeId {
        self.push(Node::Scalar { format })
    }

    /// Adds an operation.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when the operands do not suit the op.
    pub fn apply(&mut self, op: Op, operands: &[NodeId]) -> Result<NodeId, Error> {
        let formats: Vec<Format> = operands.iter().map(|id| self.node(*id).format()).collect();
        let format = op.infer(&formats)?;
        let operands = operands.to_vec();
        Ok(self.push(Node::Op {
            op,
            operands,
            format,
        }))
    }

    /// The nodes, operands before users.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// Formats of the operands, in order.
    pub fn inputs(&self) -> impl Iterator<Item = Format> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Input { format, .. } => Some(*format),
            Node::Scalar { .. } | Node::Op { .. } => None,
        })
    }

    /// Format of the call's scalar, if it has one.
    pub fn scalar_format(&self) -> Option<Format> {
        self.nodes.iter().find_map(|node| match node {
            Node::Scalar { format } => Some(*format),
            Node::Input { .. } | Node::Op { .. } => None,
        })
    }

    fn push(&mut self, node: Node) -> NodeId {
        let id = u32::try_from(self.nodes.len()).expect("a graph has fewer than 2^32 nodes");
        self.nodes.push(node);
        NodeId(id)
    }
}
