//! The part of a recorded chain that some values need, with what comes with a call of that part.
//!
//! A batch that stores some values and reads others is two calls. Each has its own part, so that
//! nothing goes up twice that one of both needs, and no call waits for tensors that it does not
//! name.

use super::Batch;
use super::record::Upload;
use crate::error::Error;
use crate::graph::NodeId;
use crate::graph::chain::{Chain, Home, Op};
use crate::graph::shape::Shape;
use crate::native::request::{Chained, Request, Structure, Written};
use crate::tensor::DType;

/// A part of a batch's chain.
pub(super) struct Selection<'a> {
    pub(super) chain: Chain,
    pub(super) uploads: Vec<&'a Upload<'a>>,
    /// The numbers of the tensors.
    pub(super) tensors: Vec<u32>,
    pub(super) constants: Vec<f32>,
    /// The node of the part for each node of the whole.
    nodes: Vec<Option<NodeId>>,
    /// The nodes of the tensors.
    inputs: Vec<NodeId>,
}

impl<'a> Selection<'a> {
    /// What these nodes need.
    ///
    /// # Errors
    ///
    /// None for nodes of the batch: its chain was checked when it was recorded.
    pub(super) fn of<G>(batch: &'a Batch<'_, G>, results: &[NodeId]) -> Result<Self, Error> {
        let whole = &batch.chain;
        let mut selection = Selection {
            chain: Chain::default(),
            uploads: Vec::new(),
            tensors: Vec::new(),
            constants: Vec::new(),
            nodes: vec![None; whole.nodes().len()],
            inputs: Vec::new(),
        };
        let needed = needed(whole, results);
        let mut uploads = batch.uploads.iter();
        let mut tensors = batch.tensors.iter().map(|named| named.number);
        let mut constants = batch.constants.iter();
        for (at, node) in whole.nodes().iter().enumerate() {
            let is_needed = needed[at];
            let own = match &node.op {
                Op::Input {
                    home: Home::Call, ..
                } => {
                    let upload = uploads.next().expect("one for each input");
                    if !is_needed {
                        continue;
                    }
                    selection.uploads.push(upload);
                    let chain = &mut selection.chain;
                    chain.input(node.shape, node.dtype, Home::Call)?
                }
                Op::Input { home, .. } => {
                    let number = tensors.next().expect("one for each tensor");
                    if !is_needed {
                        continue;
                    }
                    selection.add_tensor(node.shape, *home, number)?
                }
                Op::Constant { .. } => {
                    let number = constants.next().expect("one for each constant");
                    if !is_needed {
                        continue;
                    }
                    selection.constants.push(*number);
                    selection.chain.constant()?
                }
                _ if !is_needed => continue,
                op => {
                    let operands = node.operands.iter().map(|id| selection.node(*id));
                    let operands: Vec<NodeId> = operands.collect();
                    selection.chain.apply(op.clone(), &operands)?
                }
            };
            selection.nodes[at] = Some(own);
        }
        Ok(selection)
    }

    /// A call that reads these nodes of the whole, which are so many floats end to end.
    pub(super) fn read(&mut self, results: &[NodeId], floats: usize) -> Result<Request<'_>, Error> {
        for id in results {
            let own = self.node(*id);
            self.chain.output(own)?;
        }
        Ok(self.request(floats, Vec::new()))
    }

    /// A call that stores what the part's chain says in these tensors.
    pub(super) fn store(&self, written: Vec<Written>) -> Request<'_> {
        self.request(written.len(), written)
    }

    /// A call of this part; the answer of one with `elements` of 0 is known.
    fn request(&self, elements: usize, written: Vec<Written>) -> Request<'_> {
        let uploads = self.uploads.iter().map(|upload| upload.bytes(&[]));
        let constants = bytemuck::cast_slice(&self.constants);
        Request {
            structure: Structure::Chain(self.chain.clone()),
            rows: usize::from(elements > 0),
            scalar: 0,
            operands: Default::default(),
            chained: Chained {
                operands: uploads.chain([constants]).collect(),
                tensors: self.tensors.clone(),
                // What is stored whole begins where its tensor does.
                offset: (!written.is_empty()).then_some(0),
                written,
            },
        }
    }

    /// The part's node for a node of the whole that the part needs.
    pub(super) fn node(&self, of_whole: NodeId) -> NodeId {
        self.nodes[of_whole.index()].expect("operands come first")
    }

    /// The node of the tensor of this number, if the part has it.
    pub(super) fn tensor(&self, number: u32) -> Option<NodeId> {
        let at = self.tensors.iter().position(|own| *own == number)?;
        Some(self.inputs[at])
    }

    /// Adds a tensor of floats.
    pub(super) fn add_tensor(
        &mut self,
        shape: Shape,
        home: Home,
        number: u32,
    ) -> Result<NodeId, Error> {
        let node = self.chain.input(shape, DType::F32, home)?;
        self.inputs.push(node);
        self.tensors.push(number);
        Ok(node)
    }
}

/// For each node whether one of the results is computed from it.
fn needed(chain: &Chain, results: &[NodeId]) -> Vec<bool> {
    let mut needed = vec![false; chain.nodes().len()];
    for id in results {
        needed[id.index()] = true;
    }
    for (at, node) in chain.nodes().iter().enumerate().rev() {
        if needed[at] {
            for id in &node.operands {
                needed[id.index()] = true;
            }
        }
    }
    needed
}
