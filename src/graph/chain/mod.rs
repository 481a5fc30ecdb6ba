//! Chains: operations on whole tensors of known shapes, recorded lazily.
//!
//! A chain holds shapes and no values: neither what tensors contain nor the numbers that come
//! with a call. How a chain is computed is not known here: softmax is one node, of which
//! `plan::fuse` makes stages.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a chain has few nodes of few dimensions, and no shape more than 2^30 elements"
)]

mod attention;
mod moved_shapes;
mod op;
mod product_shapes;
mod record;
mod rows;
mod shape_inference;
mod store;
mod wire;

pub use op::{Axes, Heads, Home, MAX_HEAD, Norm, Op, Range, Reduced, Reduction};
pub use product_shapes::{as_column, as_row};
pub use record::OPEN;
pub use rows::ByRows;
pub use store::{Store, StoreExtent};

use super::NodeId;
use super::refuse::refuse;
use super::shape::Shape;
use crate::error::Error;
use crate::tensor::DType;

/// The most nodes of a chain.
pub const MAX_NODES: usize = 4096;

/// A value of a chain: an operation, and the shape of its result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// The earlier nodes that the operation is applied to.
    pub operands: Vec<NodeId>,
    /// The shape of the result.
    pub shape: Shape,
    /// The type of the result's elements.
    pub dtype: DType,
}

/// What was asked: a graph of tensors with one or several results.
///
/// Invariant: operands come before the nodes that use them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Chain {
    nodes: Vec<Node>,
    outputs: Vec<NodeId>,
    /// For each result where it is stored; empty where results are read.
    stores: Vec<Store>,
    inputs: u32,
    constants: u32,
}

impl Chain {
    /// Adds an input: a tensor that comes with the call, or a resident tensor.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a full chain, and for packed indexes.
    pub fn input(&mut self, shape: Shape, dtype: DType, home: Home) -> Result<NodeId, Error> {
        if home.packing().is_some() && dtype != DType::F32 {
            return Err(refuse(|| ["tensor: only floats can be packed"].concat()));
        }
        let index = self.inputs;
        let id = self.push(Op::Input { index, home }, &[], shape, dtype)?;
        self.inputs += 1;
        Ok(id)
    }

    /// Adds a number that comes with the call, and so is in no kernel.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a full chain.
    pub fn constant(&mut self) -> Result<NodeId, Error> {
        let index = self.constants;
        let id = self.push(Op::Constant { index }, &[], Shape::SCALAR, DType::F32)?;
        self.constants += 1;
        Ok(id)
    }

    /// Adds an operation.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] where the operands do not suit the operation; the message names
    /// operation and shapes.
    pub fn apply(&mut self, op: Op, operands: &[NodeId]) -> Result<NodeId, Error> {
        for id in operands {
            if id.index() >= self.nodes.len() {
                return Err(refuse(|| {
                    [op.name(), ": an operand is not of this chain"].concat()
                }));
            }
        }
        let given: Vec<&Node> = operands.iter().map(|id| self.node(*id)).collect();
        let (shape, dtype) = shape_inference::infer(&op, &given)?;
        self.push(op, operands, shape, dtype)
    }

    /// Makes a node a result. Results come in the order in which they were named.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a node of another chain.
    pub fn output(&mut self, id: NodeId) -> Result<(), Error> {
        if !self.stores.is_empty() {
            return Err(refuse(|| {
                ["read: a chain whose results are stored gives none; read them apart"].concat()
            }));
        }
        self.push_output(id)
    }

    /// The nodes; operands come before the nodes that use them.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The results.
    pub fn outputs(&self) -> &[NodeId] {
        &self.outputs
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Node> {
        let is_input = |node: &&Node| matches!(node.op, Op::Input { .. });
        self.nodes.iter().filter(is_input)
    }

    /// How many numbers come with a call.
    pub fn constants(&self) -> u32 {
        self.constants
    }

    fn push_output(&mut self, id: NodeId) -> Result<(), Error> {
        if id.index() >= self.nodes.len() || self.outputs.len() >= MAX_NODES {
            return Err(refuse(|| ["read: a result is not of this chain"].concat()));
        }
        self.outputs.push(id);
        Ok(())
    }

    fn push(
        &mut self,
        op: Op,
        operands: &[NodeId],
        shape: Shape,
        dtype: DType,
    ) -> Result<NodeId, Error> {
        let id = match u32::try_from(self.nodes.len()) {
            Ok(id) if self.nodes.len() < MAX_NODES => id,
            _ => {
                return Err(refuse(|| {
                    [
                        op.name(),
                        ": a chain has at most 4096 nodes; read an intermediate result",
                    ]
                    .concat()
                }));
            }
        };
        self.nodes.push(Node {
            op,
            operands: operands.to_vec(),
            shape,
            dtype,
        });
        Ok(NodeId(id))
    }
}
