//! Random chains with values for their inputs, made from a list of random
//! words, so that a shorter list is a smaller chain.

use framebatch::graph::NodeId;
use framebatch::graph::chain::{Axes, Chain, Heads, Home, Norm, Op, Reduction};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, UnaryFn};
use framebatch::tensor::{DType, Packing};

use crate::cpu::Call;
use crate::oracle::Tensor;

/// A chain, and a call of it.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) chain: Chain,
    pub(crate) call: Call,
}

/// A list of random words that ends in zeros.
pub(crate) struct Words<'a>(pub(crate) std::slice::Iter<'a, u32>);

impl Words<'_> {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let word = self.0.next().copied().unwrap_or(0);
        (word as usize) % limit.max(1)
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// The chain that some words stand for. `rows` is the first dimension of most
/// inputs.
pub(crate) fn sample(words: &[u32], rows: u32) -> Sample {
    let mut words = Words(words.iter());
    let mut chain = Chain::default();
    let columns = words.pick(&[5, 8, 1, 3, 33, 40]);
    let shapes: [&[u32]; 7] = [
        &[rows, columns],
        &[columns],
        &[rows, 1],
        &[2, rows, columns],
        &[],
        &[columns, rows],
        &[1, columns],
    ];
    let mut nodes = Vec::new();
    for _ in 0..2 + words.below(3) {
        let shape = Shape::new(words.pick(&shapes)).unwrap();
        // A third of them on the device.
        let home = match words.below(13) {
            at @ 0..4 => Home::Packed(Packing::ALL[at]),
            4 => Home::Resident,
            _ => Home::Call,
        };
        nodes.push(chain.input(shape, DType::F32, home).unwrap());
    }
    for _ in 0..2 {
        nodes.push(chain.constant().unwrap());
    }
    let steps = 1 + words.below(14);
    for _ in 0..steps {
        // Later values more often, so that chains grow long.
        let recent = nodes.len().saturating_sub(5);
        let a = match words.below(3) {
            0 => words.pick(&nodes),
            _ => words.pick(&nodes[recent..]),
        };
        let b = words.pick(&nodes);
        let made = step(
            &mut chain,
            &mut words,
            Candidates {
                a,
                b,
                nodes: &nodes,
            },
        );
        nodes.extend(made.filter(|node| chain.node(*node).shape.count() <= 4000));
    }
    let mut last: Vec<NodeId> = nodes
        .iter()
        .rev()
        .take(1 + words.below(3))
        .copied()
        .collect();
    last.reverse();
    for node in last {
        chain.output(node).unwrap();
    }
    let call = values(&chain, u64::from(rows) << 32 | words.below(1 << 16) as u64);
    Sample { chain, call }
}

/// Values to record operations on: two that were picked, and all of them in order.
#[derive(Clone, Copy)]
struct Candidates<'a> {
    a: NodeId,
    b: NodeId,
    nodes: &'a [NodeId],
}

/// Records one operation, if the operands suit it.
fn step(chain: &mut Chain, words: &mut Words<'_>, candidates: Candidates<'_>) -> Option<NodeId> {
    let Candidates { a, b, .. } = candidates;
    let shape = chain.node(a).shape;
    let rank = shape.rank();
    let axis = words.below(rank) as i32;
    let made = match words.below(25) {
        0..=2 => chain.unary(words.pick(&UnaryFn::OF_TENSORS), a),
        3..=6 => chain.binary(words.pick(&BinaryFn::OF_TENSORS), a, b),
        7 | 8 => {
            let reduction = words.pick(&Reduction::ALL);
            let axes = if words.below(4) == 0 {
                vec![]
            } else {
                vec![axis]
            };
            let over = Axes::of(&axes);
            let over = if words.below(2) == 0 {
                over.kept()
            } else {
                over
            };
            chain.reduce(reduction, a, over)
        }
        9 | 10 => {
            let norm = words.pick(&Norm::ALL);
            let epsilon = chain.nodes().iter().position(|node| node.shape.rank() == 0);
            let epsilon = epsilon.and_then(|_| chain.constant().ok());
            chain.norm(norm, a, axis, epsilon.filter(|_| norm != Norm::Softmax))
        }
        11 => {
            let mut order: Vec<i32> = (0..rank as i32).collect();
            order.rotate_left(words.below(rank));
            chain.transpose(a, &order)
        }
        12 => {
            let parts: Vec<(i32, i32, i32)> = (0..rank)
                .map(|_| {
                    words.pick(&[
                        (0, i32::MAX, 1),
                        (1, i32::MAX, 2),
                        (-1, i32::MIN, -1),
                        (0, -1, 1),
                    ])
                })
                .collect();
            chain.slice(a, &parts)
        }
        13 => {
            let count = shape.count();
            let dims = words.pick(&[[count, 1], [1, count], [count / 2, 2]]);
            chain.reshape(a, Shape::new(&dims).ok()?)
        }
        14 => {
            let indexes = Shape::new(&[3]).ok()?;
            let indexes = match words.below(2) {
                0 if rank > 0 => chain.reduce(Reduction::Argmax, a, Axes::of(&[axis])).ok()?,
                _ => chain.input(indexes, DType::U32, Home::Call).ok()?,
            };
            chain.gather(a, indexes, axis)
        }
        15 => chain.matmul(a, b),
        16 => {
            let turned = turned(chain, a)?;
            chain.matmul(turned, a)
        }
        17 => {
            let turned = turned(chain, a)?;
            chain.matmul(a, turned)
        }
        18 => return layer(chain, words, a),
        19..=21 => return attention(chain, words, candidates),
        22 => return condition(chain, words, candidates),
        23 => chain.clamp(a, b, words.pick(candidates.nodes)),
        _ => chain.concat(&[a, b, a][..1 + words.below(3)], axis),
    };
    let made = made.ok()?;
    let is_float = chain.node(made).dtype == DType::F32;
    is_float.then_some(made)
}

/// One of two values, by a comparison or by any value as the condition.
fn condition(
    chain: &mut Chain,
    words: &mut Words<'_>,
    candidates: Candidates<'_>,
) -> Option<NodeId> {
    let Candidates { a, b, nodes } = candidates;
    let compared = chain.binary(BinaryFn::Less, a, b);
    let condition = [compared.unwrap_or(a), a, b][words.below(3)];
    chain.select(condition, b, words.pick(nodes)).ok()
}

/// The last two axes the other way around.
fn turned(chain: &mut Chain, x: NodeId) -> Option<NodeId> {
    let rank = chain.node(x).shape.rank();
    let mut order: Vec<i32> = (0..rank as i32).collect();
    if rank >= 2 {
        order.swap(rank - 2, rank - 1);
    }
    chain.transpose(x, &order).ok()
}

/// A layer of a network: weights and a bias that stay on the device, an
/// activation, and what went in once more where it fits.
fn layer(chain: &mut Chain, words: &mut Words<'_>, x: NodeId) -> Option<NodeId> {
    let inner = *chain.node(x).shape.dims().last()?;
    let columns = words.pick(&[inner, 5, 8, 33, 70]);
    let mut parameter = |dims: &[u32]| {
        let shape = Shape::new(dims).ok()?;
        chain.input(shape, DType::F32, Home::Resident).ok()
    };
    let (weights, bias) = (parameter(&[inner, columns])?, parameter(&[columns])?);
    let y = chain.matmul(x, weights).ok()?;
    let y = chain.binary(BinaryFn::Add, y, bias).ok()?;
    let y = chain.unary(words.pick(&UnaryFn::OF_TENSORS), y).ok()?;
    match columns == inner {
        true => chain.binary(BinaryFn::Add, y, x).ok(),
        false => Some(y),
    }
}

/// Attention to itself, to its rows backwards, to another value where that fits,
/// or of parts of one value.
fn attention(
    chain: &mut Chain,
    words: &mut Words<'_>,
    candidates: Candidates<'_>,
) -> Option<NodeId> {
    let Candidates { a, b, nodes } = candidates;
    let scale = chain.constant().ok()?;
    // Where `a` has no rows, the last value before it that has rows.
    let mut values = [a].into_iter().chain(nodes.iter().rev().copied());
    let a = values.find(|node| chain.node(*node).shape.rank() >= 2)?;
    let rank = chain.node(a).shape.rank();
    let width = *chain.node(a).shape.dims().last()?;
    let whole = vec![(0, i32::MAX, 1); rank];
    let mut part = |axis: usize, range| {
        let mut parts = whole.clone();
        *parts.get_mut(axis)? = range;
        chain.slice(a, &parts).ok()
    };
    let operands = match words.below(4) {
        0 => [a, a, a],
        1 => {
            let rows = part(rank.checked_sub(2)?, (-1, i32::MIN, -1))?;
            [a, rows, rows]
        }
        2 => {
            let third = (width / 3) as i32;
            let mut next = |at: i32| part(rank - 1, (at * third, (at + 1) * third, 1));
            [next(0)?, next(1)?, next(2)?]
        }
        _ => [a, b, b],
    };
    let width = *chain.node(operands[0]).shape.dims().last()?;
    let divisors: Vec<u32> = (1..=width).filter(|count| width % count == 0).collect();
    let heads = Heads {
        count: *divisors.get(words.below(divisors.len()))?,
        is_causal: words.below(3) == 0,
        window: [None, None, Some(0), Some(1), Some(5)][words.below(5)],
    };
    chain.attention(heads, operands, scale).ok()
}

/// Values between -2 and 2 for all inputs, by a small generator; of packed ones
/// those that are kept.
pub(crate) fn values(chain: &Chain, seed: u64) -> Call {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u32
    };
    let mut call = Call::default();
    for input in chain.inputs() {
        let words = (0..input.shape.count()).map(|_| match input.dtype {
            DType::U32 => next() % 3,
            _ => (next() as f32 / 4_194_304.0 - 2.0).to_bits(),
        });
        let mut words: Vec<u32> = words.collect();
        if let Op::Input {
            home: Home::Packed(packing),
            ..
        } = input.op
        {
            let count = words.len();
            words = packing.unpack(&packing.pack(&words).unwrap());
            words.truncate(count);
        }
        call.inputs.push(words);
    }
    for _ in 0..chain.constants() {
        call.constants
            .push((next() as f32 / 8_388_608.0 + 0.01).to_bits());
    }
    call
}

/// The inputs as the oracle takes them.
pub(crate) fn tensors(chain: &Chain, call: &Call) -> (Vec<Tensor>, Vec<f32>) {
    let inputs = chain.inputs().zip(&call.inputs).map(|(node, words)| {
        let values = words.iter().map(|word| match node.dtype {
            DType::U32 => f64::from(*word),
            _ => f64::from(f32::from_bits(*word)),
        });
        Tensor::of(node.shape, values)
    });
    let constants = call.constants.iter().map(|word| f32::from_bits(*word));
    (inputs.collect(), constants.collect())
}
