//! Views of views: transposes, slices, reshapes and gathers upon each other,
//! in front of maps and of rows.

use framebatch::Error;
use framebatch::device::{Cpu, Device};
use framebatch::graph::NodeId;
use framebatch::graph::chain::{Axes, Chain, Home, Norm, Reduction};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, UnaryFn};
use framebatch::tensor::DType;

use crate::by_example::hold;
use crate::engines;
use crate::gpu::Harness;
use crate::random::{Sample, values};
use crate::sessions::Sent;

type Record = fn(&mut Chain, NodeId) -> Result<NodeId, Error>;

/// What moves the elements of a tensor of shape [6, 10, 4].
const VIEWS: [(&str, Record); 8] = [
    ("slice of a slice", |g, x| {
        let x = g.slice(x, &[(1, 6, 2), (9, 0, -2)])?;
        g.slice(x, &[(-1, i32::MIN, -1), (1, 5, 3)])
    }),
    ("slice of a transpose", |g, x| {
        let x = g.transpose(x, &[2, 0, 1])?;
        g.slice(x, &[(1, 3, 1), (5, 0, -2), (2, 9, 3)])
    }),
    ("transpose of a slice of a transpose", |g, x| {
        let x = g.transpose(x, &[1, 2, 0])?;
        let x = g.slice(x, &[(3, 9, 2), (0, 4, 3), (4, i32::MIN, -1)])?;
        g.transpose(x, &[2, 0, 1])
    }),
    ("transpose of a reshape", |g, x| {
        let x = g.reshape(x, Shape::new(&[8, 30])?)?;
        let x = g.transpose(x, &[])?;
        g.reshape(x, Shape::new(&[5, 6, 8])?)
    }),
    ("slice of a gather of a slice", |g, x| {
        let places = g.reduce(Reduction::Argmax, x, Axes::of(&[1]))?;
        let x = g.slice(x, &[(0, 6, 1), (0, 10, 1), (3, i32::MIN, -1)])?;
        let x = g.gather(x, places, 1)?;
        g.slice(x, &[(1, 5, 2), (2, 6, 3), (1, 4, 2), (0, 3, 1)])
    }),
    ("transpose of a broadcast", |g, x| {
        let row = g.slice(x, &[(2, 3, 1), (0, 10, 1), (1, 2, 1)])?;
        let x = g.binary(BinaryFn::Mul, x, row)?;
        g.transpose(x, &[1, 0, 2])
    }),
    ("concat of views", |g, x| {
        let a = g.slice(x, &[(0, 6, 1), (9, 4, -1)])?;
        let b = g.slice(x, &[(5, i32::MIN, -1), (0, 3, 2)])?;
        g.concat(&[a, x, b], 1)
    }),
    ("slice of a concat", |g, x| {
        let x = g.concat(&[x, x], 2)?;
        g.slice(x, &[(0, 6, 4), (0, 10, 3), (7, 1, -3)])
    }),
];

/// What reads them.
const READERS: [(&str, Record); 6] = [
    ("exp", |g, x| g.unary(UnaryFn::Exp, x)),
    ("softmax", |g, x| g.norm(Norm::Softmax, x, 1, None)),
    ("sum", |g, x| g.reduce(Reduction::Sum, x, Axes::of(&[0, 2]))),
    ("gelu twice", |g, x| {
        let y = g.unary(UnaryFn::Gelu, x)?;
        let z = g.reduce(Reduction::Max, y, Axes::of(&[-1]).kept())?;
        g.binary(BinaryFn::Sub, y, z)
    }),
    // A row's own sum is part of its kernel, another row's largest is not.
    ("values of other rows", |g, x| {
        let largest = g.reduce(Reduction::Max, x, Axes::of(&[1]).kept())?;
        let largest = g.slice(largest, &[(-1, i32::MIN, -1)])?;
        let sum = g.reduce(Reduction::Sum, x, Axes::of(&[1]).kept())?;
        let x = g.binary(BinaryFn::Sub, x, sum)?;
        g.binary(BinaryFn::Mul, x, largest)
    }),
    ("buffers that are written over", written_over),
];

/// A chain with two readers of gelu(x), the last of which writes over it.
pub(crate) fn written_over(g: &mut Chain, x: NodeId) -> Result<NodeId, Error> {
    let flip = |g: &mut Chain, x| g.slice(x, &[(-1, i32::MIN, -1)]);
    let y = g.unary(UnaryFn::Gelu, x)?;
    let flipped = flip(g, y)?;
    let a = g.unary(UnaryFn::Tanh, flipped)?;
    let b = g.unary(UnaryFn::Exp, y)?;
    let (a_flipped, b_flipped) = (flip(g, a)?, flip(g, b)?);
    let a = g.binary(BinaryFn::Sub, a, a_flipped)?;
    let b = g.binary(BinaryFn::Mul, b, b_flipped)?;
    g.binary(BinaryFn::Sub, a, b)
}

#[test]
fn views_compose() {
    let mut harness = Harness::open();
    for (name, view) in VIEWS {
        for (reader, read) in READERS {
            let mut chain = Chain::default();
            let shape = Shape::new(&[6, 10, 4]).unwrap();
            let x = chain.input(shape, DType::F32, Home::Call).unwrap();
            let seen = view(&mut chain, x).unwrap();
            let y = read(&mut chain, seen).unwrap();
            chain.output(y).unwrap();
            let call = values(&chain, 11);
            let what = format!("{reader} of {name}");
            hold(&mut harness, &what, &Sample { chain, call });
        }
    }
}

/// Results of four elements and of none, whose second part would begin at the
/// fifth.
fn none_beside_some(device: impl Device) {
    let mut chain = Chain::default();
    let mut input = |dims: &[u32]| {
        let shape = Shape::new(dims).unwrap();
        chain.input(shape, DType::F32, Home::Call).unwrap()
    };
    let (some, none) = (input(&[4]), input(&[0, 5]));
    let none = chain.concat(&[none, none], 1).unwrap();
    chain.output(none).unwrap();
    let some = chain.unary(UnaryFn::Neg, some).unwrap();
    chain.output(some).unwrap();
    let call = values(&chain, 1);
    let negated: Vec<u32> = call.inputs[0].iter().map(|word| word ^ 1 << 31).collect();
    let sample = Sample { chain, call };
    let (results, _) = Sent::to(device).run(&[&sample]);
    assert_eq!(results, [[vec![], negated]]);
}

#[test]
fn parts_without_elements_lie_nowhere() {
    none_beside_some(Cpu::default());
    none_beside_some(engines::device());
}
