//! Chains as words: how TypeScript hands a chain over, and how equal structures are found.
//!
//! The words are `[nodes, outputs]`, then for each node `op | operands << 8 | attributes << 16`,
//! its operands and its attributes, then the outputs. An output that is stored is
//! `node | part << 15 | (target + 1) << 16`. Axes and ranges are as [`Op`] holds them,
//! counted from the front and within bounds. Decoding applies the operations as callers do, so
//! that words which make no sense are an error like any other.

use std::iter::repeat;

use super::op::{Heads, Home, Norm, Op, Range, Reduced, Reduction};
use super::{Chain, NodeId, Store, StoreExtent, refuse};
use crate::error::Error;
use crate::graph::shape::{MAX_RANK, Shape};
use crate::graph::{BinaryFn, CallerFn, Precision, UnaryFn};
use crate::tensor::DType;

/// Numbers of the ops on the wire.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Code {
    Input = 0,
    Constant = 1,
    Unary = 2,
    Binary = 3,
    Clamp = 4,
    Dot = 5,
    Reduce = 6,
    Norm = 7,
    Transpose = 8,
    Slice = 9,
    Reshape = 10,
    Gather = 11,
    Concat = 12,
    Matmul = 13,
    Attention = 14,
    Where = 15,
    Call = 16,
}

const CODES: [Code; 17] = [
    Code::Input,
    Code::Constant,
    Code::Unary,
    Code::Binary,
    Code::Clamp,
    Code::Dot,
    Code::Reduce,
    Code::Norm,
    Code::Transpose,
    Code::Slice,
    Code::Reshape,
    Code::Gather,
    Code::Concat,
    Code::Matmul,
    Code::Attention,
    Code::Where,
    Code::Call,
];

impl Chain {
    /// The chain as words. Equal chains have equal words, and different chains different ones.
    pub fn encode(&self) -> Vec<u32> {
        let mut words = vec![self.nodes.len() as u32, self.outputs.len() as u32];
        for node in &self.nodes {
            let head = words.len();
            words.push(0);
            words.extend(node.operands.iter().map(|id| id.0));
            let code = attributes(&node.op, node.shape, node.dtype, &mut words);
            let operands = node.operands.len() as u32;
            let attributes = (words.len() - head - 1) as u32 - operands;
            words[head] = code as u32 | operands << 8 | attributes << 16;
        }
        let stores = self.stores.iter().map(Some).chain(repeat(None));
        for (id, store) in self.outputs.iter().zip(stores) {
            words.push(id.0 | store.map_or(0, encode_store));
        }
        words
    }

    /// The chain that words stand for.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for words that no chain has.
    pub fn decode(words: &[u32]) -> Result<Chain, Error> {
        read(words).ok_or_else(|| refuse(|| "these words are no chain".into()))
    }
}

fn read(words: &[u32]) -> Option<Chain> {
    let mut chain = Chain::default();
    let mut reader = Reader(words);
    let (nodes, outputs) = (reader.next()?, reader.next()?);
    for _ in 0..nodes {
        let head = reader.next()?;
        let operands = reader.take(head >> 8 & 0xff)?;
        let operands: Vec<NodeId> = operands.iter().map(|id| NodeId(*id)).collect();
        let attributes = Reader(reader.take(head >> 16)?);
        record(&mut chain, head & 0xff, &operands, attributes)?;
    }
    for _ in 0..outputs {
        let word = reader.next()?;
        let id = NodeId(word & (PART - 1));
        match word >> 16 {
            0 if word & PART == 0 => chain.output(id).ok()?,
            target => chain.store(id, decode_store(word, target)).ok()?,
        }
    }
    reader.0.is_empty().then_some(chain)
}

/// The types of inputs, in the order of their numbers on the wire.
const DTYPES: [DType; 3] = [DType::F32, DType::U32, DType::I32];

/// Set in the word of an output that is a part of its target.
const PART: u32 = 1 << 15;

fn encode_store(store: &Store) -> u32 {
    let is_part = store.extent == StoreExtent::Part;
    (store.target.0 + 1) << 16 | u32::from(is_part) << 15
}

/// Where an output is stored; `target` is the number of the target's node, and 1 more.
fn decode_store(word: u32, target: u32) -> Store {
    Store {
        // Node 0 less 1 is no node, and so is refused.
        target: NodeId(target.wrapping_sub(1)),
        extent: match word & PART {
            0 => StoreExtent::Whole,
            _ => StoreExtent::Part,
        },
    }
}

/// Appends the attributes of an operation, and returns the operation's number.
fn attributes(op: &Op, shape: Shape, dtype: DType, words: &mut Vec<u32>) -> Code {
    match op {
        Op::Input { home, .. } => {
            let number = DTYPES.iter().position(|known| *known == dtype);
            words.extend([number.unwrap_or_default() as u32, home.code()]);
            words.extend(shape.dims());
            Code::Input
        }
        Op::Constant { .. } => Code::Constant,
        Op::Unary(function) => {
            words.push(*function as u32);
            Code::Unary
        }
        Op::Binary(function) => {
            words.push(*function as u32);
            Code::Binary
        }
        Op::Clamp => Code::Clamp,
        Op::Where => Code::Where,
        Op::Call(function) => {
            words.push(function.number());
            Code::Call
        }
        Op::Dot => Code::Dot,
        Op::Matmul(precision) => {
            words.push(*precision as u32);
            Code::Matmul
        }
        Op::Attention(heads) => {
            words.extend([heads.count, u32::from(heads.is_causal)]);
            words.extend(heads.window);
            Code::Attention
        }
        Op::Reduce { reduction, over } => {
            words.extend([*reduction as u32, u32::from(over.keep)]);
            words.extend((0..8).filter(|axis| over.has(*axis as usize)));
            Code::Reduce
        }
        Op::Norm { norm, axis } => {
            words.extend([*norm as u32, u32::from(*axis)]);
            Code::Norm
        }
        Op::Transpose { order } => {
            words.extend(order[..shape.rank()].iter().map(|axis| u32::from(*axis)));
            Code::Transpose
        }
        Op::Slice { ranges } => {
            for range in ranges {
                words.extend([range.start, range.step as u32, range.count]);
            }
            Code::Slice
        }
        Op::Reshape { shape } => {
            words.extend(shape.dims());
            Code::Reshape
        }
        Op::Gather { axis } => {
            words.push(u32::from(*axis));
            Code::Gather
        }
        Op::Concat { axis } => {
            words.push(u32::from(*axis));
            Code::Concat
        }
    }
}

/// Adds one node to a chain.
fn record(
    chain: &mut Chain,
    code: u32,
    operands: &[NodeId],
    mut attributes: Reader<'_>,
) -> Option<NodeId> {
    let op = match *CODES.get(code as usize)? {
        Code::Input => {
            let dtype = attributes.pick(&DTYPES)?;
            let home = attributes.pick(&Home::ALL)?;
            return chain
                .input(Shape::new(attributes.0).ok()?, dtype, home)
                .ok();
        }
        Code::Constant => return chain.constant().ok(),
        Code::Unary => Op::Unary(attributes.pick(&UnaryFn::OF_TENSORS)?),
        Code::Binary => Op::Binary(attributes.pick(&BinaryFn::OF_TENSORS)?),
        Code::Clamp => Op::Clamp,
        Code::Where => Op::Where,
        Code::Call => Op::Call(CallerFn::numbered(attributes.next()?)?),
        Code::Dot => Op::Dot,
        Code::Matmul => Op::Matmul(attributes.pick(&Precision::ALL)?),
        Code::Attention => Op::Attention(Heads {
            count: attributes.next()?,
            is_causal: attributes.pick(&[false, true])?,
            window: attributes.next(),
        }),
        Code::Reduce => Op::Reduce {
            reduction: attributes.pick(&Reduction::ALL)?,
            over: Reduced {
                keep: attributes.pick(&[false, true])?,
                axes: attributes.axes()?,
            },
        },
        Code::Norm => Op::Norm {
            norm: attributes.pick(&Norm::ALL)?,
            axis: attributes.axis()?,
        },
        Code::Transpose => {
            let x = operands.first().and_then(|x| chain.nodes.get(x.index()));
            let rank = x.map_or(0, |x| x.shape.rank());
            let mut order = [0; MAX_RANK];
            for axis in &mut order[..rank] {
                *axis = attributes.axis()?;
            }
            Op::Transpose { order }
        }
        Code::Slice => {
            let mut ranges = Vec::new();
            while !attributes.0.is_empty() {
                ranges.push(Range {
                    start: attributes.next()?,
                    step: attributes.next()? as i32,
                    count: attributes.next()?,
                });
            }
            let ranges = ranges.into();
            Op::Slice { ranges }
        }
        Code::Reshape => Op::Reshape {
            shape: Shape::new(attributes.0).ok()?,
        },
        Code::Gather => Op::Gather {
            axis: attributes.axis()?,
        },
        Code::Concat => Op::Concat {
            axis: attributes.axis()?,
        },
    };
    chain.apply(op, operands).ok()
}

/// The words that are still to be read.
struct Reader<'a>(&'a [u32]);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<u32> {
        self.take(1).map(|words| words[0])
    }

    fn take(&mut self, count: u32) -> Option<&'a [u32]> {
        let (taken, rest) = self.0.split_at_checked(count as usize)?;
        self.0 = rest;
        Some(taken)
    }

    fn axis(&mut self) -> Option<u8> {
        let axis = self.next()?;
        (axis < MAX_RANK as u32).then_some(axis as u8)
    }

    /// The axes in all words that are left, which must rise, as a bit each.
    fn axes(&mut self) -> Option<u8> {
        let mut axes = 0;
        while !self.0.is_empty() {
            let axis = self.axis()?;
            if axes >> axis != 0 {
                return None;
            }
            axes |= 1 << axis;
        }
        Some(axes)
    }

    /// The item that the next word numbers.
    fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        let number = self.next()?;
        items.get(number as usize).copied()
    }
}
