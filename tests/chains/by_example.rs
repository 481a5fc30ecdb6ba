//! What chains give by example: every function over its range, long rows,
//! what IEEE leaves open, and what is refused.

use framebatch::graph::NodeId;
use framebatch::graph::chain::{Axes, Chain, Home, Norm, Reduction};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, UnaryFn};
use framebatch::plan::fuse::fuse;
use framebatch::tensor::DType;
use framebatch::{Code, Error};

use crate::cpu::{Call, compute};
use crate::gpu::Harness;
use crate::random::{Sample, values};
use crate::under_random::{Tally, check};

fn input(chain: &mut Chain, dims: &[u32]) -> NodeId {
    chain
        .input(Shape::new(dims).unwrap(), DType::F32, Home::Call)
        .unwrap()
}

/// The results of a call on both devices.
pub(crate) fn both(harness: &mut Harness, sample: &Sample) -> [Vec<Vec<u32>>; 2] {
    let (program, sizes) = fuse(&sample.chain);
    let cpu = compute(&program, &sizes, &sample.call);
    let gpu = harness.run(&program, &[(&sizes, &sample.call)]).remove(0);
    [cpu, gpu]
}

/// Holds a chain to the oracle on both devices.
pub(crate) fn hold(harness: &mut Harness, what: &str, sample: &Sample) {
    for (device, results) in ["cpu", "gpu"].iter().zip(both(harness, sample)) {
        let mut tally = Tally::default();
        check(sample, &results, &mut tally)
            .unwrap_or_else(|error| panic!("{what} on {device}: {error}"));
        assert!(tally.is_mostly_held(), "{what} on {device}");
    }
}

#[test]
fn every_function_keeps_its_bound_over_its_range() {
    let mut harness = Harness::open();
    let small = (-4000..=4000).map(|i| i as f32 / 1000.0);
    let large = (-400..=400).map(|i| i as f32 / 4.0);
    let tiny = (-30..30).map(|i| 2_f32.powi(i)).flat_map(|x| [x, -x]);
    let xs: Vec<f32> = small.chain(large).chain(tiny).collect();
    for function in UnaryFn::OF_TENSORS {
        let mut chain = Chain::default();
        let x = input(&mut chain, &[xs.len() as u32]);
        let y = chain.unary(function, x).unwrap();
        chain.output(y).unwrap();
        // Logarithms and roots of negative numbers are NaN, which is another test.
        let only_positive = matches!(function, UnaryFn::Log | UnaryFn::Sqrt);
        let xs = xs
            .iter()
            .map(|x| if only_positive { x.abs().max(1e-9) } else { *x });
        let call = Call {
            inputs: vec![xs.map(f32::to_bits).collect()],
            constants: vec![],
        };
        hold(&mut harness, function.name(), &Sample { chain, call });
    }
}

#[test]
fn pow_keeps_its_bound() {
    let mut harness = Harness::open();
    let mut chain = Chain::default();
    let bases = input(&mut chain, &[60, 1]);
    let exponents = input(&mut chain, &[41]);
    let y = chain.binary(BinaryFn::Pow, bases, exponents).unwrap();
    chain.output(y).unwrap();
    let bases = (0..60).map(|i| (1.35_f32.powi(i - 30)).to_bits());
    let exponents = (-20..=20).map(|i| (i as f32 / 2.0).to_bits());
    let call = Call {
        inputs: vec![bases.collect(), exponents.collect()],
        constants: vec![],
    };
    hold(&mut harness, "the chain", &Sample { chain, call });
}

#[test]
fn long_rows_are_trees() {
    let mut harness = Harness::open();
    // Around the borders of what a thread and what a workgroup takes, and far beyond.
    for count in [1, 32, 33, 64, 65, 4096, 4097, 8192, 100_003] {
        let mut chain = Chain::default();
        let x = input(&mut chain, &[2, count]);
        for reduction in Reduction::ALL {
            let y = chain.reduce(reduction, x, Axes::of(&[-1])).unwrap();
            chain.output(y).unwrap();
        }
        let y = chain.norm(Norm::Softmax, x, -1, None).unwrap();
        chain.output(y).unwrap();
        let call = values(&chain, u64::from(count));
        let sample = Sample { chain, call };
        hold(&mut harness, &format!("rows of {count}"), &sample);
    }
}

#[test]
fn a_sum_of_a_million_is_two_levels_deep() {
    let mut harness = Harness::open();
    let mut chain = Chain::default();
    let x = input(&mut chain, &[1_000_000]);
    let y = chain.dot(x, x).unwrap();
    chain.output(y).unwrap();
    let call = values(&chain, 3);
    assert_eq!(fuse(&chain).0.stages.len(), 2);
    hold(&mut harness, "the chain", &Sample { chain, call });
}

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

/// What functions of one value give.
type Pairs = &'static [(f32, f32)];
const OF_ONE: [(UnaryFn, Pairs); 10] = [
    (
        UnaryFn::Relu,
        &[
            (NAN, NAN),
            (-NAN, NAN),
            (-INF, 0.0),
            (INF, INF),
            (-0.0, 0.0),
        ],
    ),
    (UnaryFn::Abs, &[(NAN, NAN), (-INF, INF), (-0.0, 0.0)]),
    (UnaryFn::Neg, &[(NAN, NAN), (INF, -INF)]),
    (
        UnaryFn::Sigmoid,
        &[(NAN, NAN), (-INF, 0.0), (INF, 1.0), (-1000.0, 0.0)],
    ),
    (
        UnaryFn::Tanh,
        &[
            (NAN, NAN),
            (-INF, -1.0),
            (INF, 1.0),
            (1000.0, 1.0),
            (-0.0, 0.0),
        ],
    ),
    (
        UnaryFn::Silu,
        &[(NAN, NAN), (-INF, 0.0), (INF, INF), (-1e30, 0.0)],
    ),
    (
        UnaryFn::Gelu,
        &[
            (NAN, NAN),
            (-INF, 0.0),
            (INF, INF),
            (-1e30, 0.0),
            (1e30, 1e30),
        ],
    ),
    (
        UnaryFn::GeluTanh,
        &[
            (NAN, NAN),
            (-INF, 0.0),
            (INF, INF),
            (-1e30, 0.0),
            (1e30, 1e30),
        ],
    ),
    (
        UnaryFn::Exp,
        &[
            (NAN, NAN),
            (-INF, 0.0),
            (INF, INF),
            (100.0, INF),
            (-200.0, 0.0),
        ],
    ),
    (
        UnaryFn::Log,
        &[(NAN, NAN), (-1.0, NAN), (INF, INF), (0.0, -INF), (1.0, 0.0)],
    ),
];

/// What functions of two values give.
type Triples = &'static [(f32, f32, f32)];
const OF_TWO: [(BinaryFn, Triples); 4] = [
    (
        BinaryFn::Maximum,
        &[
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
            (-INF, 1.0, 1.0),
            (INF, 1.0, INF),
        ],
    ),
    (
        BinaryFn::Minimum,
        &[
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
            (-INF, 1.0, -INF),
            (INF, 1.0, 1.0),
        ],
    ),
    (
        BinaryFn::Div,
        &[
            (1.0, 0.0, INF),
            (-1.0, 0.0, -INF),
            (0.0, 0.0, NAN),
            (1.0, INF, 0.0),
        ],
    ),
    (
        BinaryFn::Pow,
        &[
            (-2.0, 3.0, -8.0),
            (-2.0, 2.0, 4.0),
            (-2.0, 0.5, NAN),
            (0.0, 0.0, 1.0),
            (NAN, 0.0, 1.0),
            (1.0, NAN, 1.0),
            (NAN, 1.0, NAN),
            (2.0, NAN, NAN),
            (0.0, 3.0, 0.0),
            (0.0, -1.0, INF),
            (-0.0, -1.0, -INF),
            (-0.0, -2.0, INF),
        ],
    ),
];

#[test]
fn nan_and_infinities_go_where_it_is_said() {
    let mut harness = Harness::open();
    for (function, pairs) in OF_ONE {
        let mut chain = Chain::default();
        let x = input(&mut chain, &[pairs.len() as u32]);
        let y = chain.unary(function, x).unwrap();
        chain.output(y).unwrap();
        let expected: Vec<f32> = pairs.iter().map(|(_, y)| *y).collect();
        let inputs = vec![pairs.iter().map(|(x, _)| x.to_bits()).collect()];
        expect(&mut harness, chain, inputs, function.name(), &expected);
    }
    for (function, triples) in OF_TWO {
        let mut chain = Chain::default();
        let count = [triples.len() as u32];
        let (a, b) = (input(&mut chain, &count), input(&mut chain, &count));
        let y = chain.binary(function, a, b).unwrap();
        chain.output(y).unwrap();
        let expected: Vec<f32> = triples.iter().map(|(.., y)| *y).collect();
        let a = triples.iter().map(|(a, ..)| a.to_bits()).collect();
        let b = triples.iter().map(|(_, b, _)| b.to_bits()).collect();
        expect(&mut harness, chain, vec![a, b], function.name(), &expected);
    }
}

#[test]
fn nan_is_the_largest_the_smallest_and_the_first() {
    let mut harness = Harness::open();
    // Short and long rows are folded by different kernels.
    for width in [4_usize, 100] {
        let rows: [([f32; 4], f32, f32, f32); 5] = [
            ([1.0, NAN, 3.0, NAN], NAN, NAN, 1.0),
            ([-INF, -INF, -INF, -INF], -INF, -INF, 0.0),
            ([-1.0, INF, 2.0, INF], INF, -1.0, 1.0),
            ([-0.0, 0.0, -0.0, 0.0], 0.0, 0.0, 0.0),
            ([-3.0, -2.0, -2.0, -3.0], -2.0, -3.0, 1.0),
        ];
        for (reduction, pick) in [
            (Reduction::Max, 0),
            (Reduction::Min, 1),
            (Reduction::Argmax, 2),
        ] {
            let mut chain = Chain::default();
            let x = input(&mut chain, &[rows.len() as u32, width as u32]);
            let y = chain.reduce(reduction, x, Axes::of(&[1])).unwrap();
            chain.output(y).unwrap();
            let words = rows.iter().flat_map(|(row, ..)| {
                let filler = std::iter::repeat_n(row[3], width - 4);
                row.iter().copied().chain(filler).map(f32::to_bits)
            });
            let expected: Vec<f32> = rows.iter().map(|row| [row.1, row.2, row.3][pick]).collect();
            let inputs = vec![words.collect()];
            let name = ["max", "min", "argmax"][pick];
            expect(&mut harness, chain, inputs, name, &expected);
        }
    }
}

/// Results on both devices, where NaN is NaN and zeros are equal.
fn expect(
    harness: &mut Harness,
    chain: Chain,
    inputs: Vec<Vec<u32>>,
    name: &str,
    expected: &[f32],
) {
    let is_float = chain.node(chain.outputs()[0]).dtype == DType::F32;
    let call = Call {
        inputs,
        constants: vec![],
    };
    for (device, results) in ["cpu", "gpu"]
        .iter()
        .zip(both(harness, &Sample { chain, call }))
    {
        for (i, (word, expected)) in results[0].iter().zip(expected).enumerate() {
            let got = if is_float {
                f32::from_bits(*word)
            } else {
                *word as f32
            };
            let near = (got - expected).abs() <= 1e-5 * expected.abs();
            assert!(
                got.is_nan() && expected.is_nan() || got == *expected || near,
                "{device} {name}, case {i}: {got} instead of {expected}"
            );
        }
    }
}

#[test]
fn a_place_outside_gives_nan() {
    let mut harness = Harness::open();
    let mut chain = Chain::default();
    let x = input(&mut chain, &[4, 2]);
    let three = Shape::new(&[3]).unwrap();
    let places = chain.input(three, DType::U32, Home::Call).unwrap();
    let y = chain.gather(x, places, 0).unwrap();
    chain.output(y).unwrap();
    let call = Call {
        inputs: vec![
            (0..8).map(|i| (i as f32).to_bits()).collect(),
            vec![3, 4, u32::MAX],
        ],
        constants: vec![],
    };
    for results in both(&mut harness, &Sample { chain, call }) {
        let floats: Vec<f32> = results[0]
            .iter()
            .map(|word| f32::from_bits(*word))
            .collect();
        assert_eq!(floats[..2], [6.0, 7.0]);
        assert!(floats[2..].iter().all(|float| float.is_nan()), "{floats:?}");
    }
}

#[test]
fn empty_tensors_are_results() {
    let mut harness = Harness::open();
    let mut chain = Chain::default();
    let x = input(&mut chain, &[3, 0]);
    let y = chain.unary(UnaryFn::Relu, x).unwrap();
    let sums = chain.reduce(Reduction::Sum, y, Axes::of(&[1])).unwrap();
    chain.output(y).unwrap();
    chain.output(sums).unwrap();
    let call = values(&chain, 1);
    for results in both(&mut harness, &Sample { chain, call }) {
        assert_eq!(results, [vec![], vec![0; 3]]);
    }
}

#[test]
fn constants_and_lengths_are_no_part_of_a_program() {
    let chain = |rows: u32| {
        let mut chain = Chain::default();
        let x = input(&mut chain, &[rows]);
        let factor = chain.constant().unwrap();
        let y = chain.binary(BinaryFn::Mul, x, factor).unwrap();
        chain.output(y).unwrap();
        chain
    };
    let mut harness = Harness::open();
    let (program, _) = fuse(&chain(1));
    for rows in 1..=200 {
        let (own, sizes) = fuse(&chain(rows));
        assert!(own == program);
        let mut call = values(&chain(rows), 1);
        call.constants[0] = (rows as f32).to_bits();
        harness.run(&own, &[(&sizes, &call)]);
    }
    assert_eq!(harness.compiled(), 1);
}

type Record = fn(&mut Chain, NodeId, NodeId) -> Result<NodeId, Error>;
const REFUSED: [(Record, &str); 16] = [
    (
        |chain, x, _| chain.unary(UnaryFn::Tan, x),
        "tan is a function of formulas only",
    ),
    (
        |chain, x, _| chain.concat(&[x; 256], 0),
        "concat takes at most 255 operands",
    ),
    (
        |chain, x, y| chain.binary(BinaryFn::Add, x, y),
        "add: shapes [3, 4] and [5] do not broadcast",
    ),
    (
        |chain, x, y| chain.dot(x, y),
        "dot: shapes [3, 4] and [5] do not broadcast",
    ),
    (
        |chain, x, _| chain.reduce(Reduction::Sum, x, Axes::of(&[2])),
        "sum: axis 2 is outside of shape [3, 4]",
    ),
    (
        |chain, x, _| chain.reduce(Reduction::Max, x, Axes::of(&[1, -1])),
        "max: an axis is named twice",
    ),
    (
        |chain, x, _| chain.norm(Norm::Layer, x, 0, None),
        "layerNorm takes 2 operands, not 1",
    ),
    (
        |chain, x, y| chain.clamp(y, x, y),
        "clamp: shapes [5] and [3, 4] do not broadcast",
    ),
    (
        |chain, x, _| chain.transpose(x, &[0, 0]),
        "transpose: the order must name each axis of shape [3, 4] once",
    ),
    (
        |chain, x, _| chain.reshape(x, Shape::new(&[5]).unwrap()),
        "reshape: shapes [3, 4] and [5] hold different numbers of elements",
    ),
    (
        |chain, x, _| chain.slice(x, &[(0, 1, 0)]),
        "slice: a step must not be 0",
    ),
    (
        |chain, x, _| chain.slice(x, &[(0, 1, 1); 3]),
        "slice: 3 ranges are more than shape [3, 4] has axes",
    ),
    (
        |chain, x, y| chain.gather(x, y, 0),
        "gather: the indexes must be whole numbers, as argmax gives",
    ),
    (
        |chain, x, y| chain.concat(&[x, y], 0),
        "concat: shapes [3, 4] and [5] differ outside of the axis",
    ),
    (
        |chain, x, _| {
            let places = chain.reduce(Reduction::Argmax, x, Axes::of(&[0]))?;
            chain.unary(UnaryFn::Exp, places)
        },
        "exp: an operand must hold floats, not whole numbers",
    ),
    (
        |chain, x, _| {
            let other = Chain::default().input(Shape::SCALAR, DType::F32, Home::Call);
            other?;
            let none = chain.slice(x, &[(0, 0, 1)])?;
            chain.reduce(Reduction::Mean, none, Axes::of(&[0]))
        },
        "mean: shape [0, 4] holds nothing along an axis that is reduced",
    ),
];

#[test]
fn what_does_not_fit_is_refused_at_once() {
    for (record, expected) in REFUSED {
        let mut chain = Chain::default();
        let x = input(&mut chain, &[3, 4]);
        let y = input(&mut chain, &[5]);
        let error = record(&mut chain, x, y).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.code(), Code::InvalidInput);
    }
    let mut small = Chain::default();
    let mut large = Chain::default();
    input(&mut large, &[1]);
    let foreign = input(&mut large, &[1]);
    input(&mut small, &[1]);
    let error = small.unary(UnaryFn::Exp, foreign).unwrap_err();
    assert_eq!(error.to_string(), "exp: an operand is not of this chain");
}
