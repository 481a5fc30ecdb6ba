//! Waves, whole numbers, angles, remainders, comparisons and conditions where these are hard: at
//! NaN, infinities, both zeros, subnormal and huge numbers, and for floats of random bits.

use framebatch::graph::chain::{Chain, Home, Norm};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, NodeId, UnaryFn};
use framebatch::plan::fuse::fuse;
use framebatch::tensor::DType;

use crate::bounded::{Q, U};
use crate::by_example::{both, hold as hold_to_oracle};
use crate::cpu::Call;
use crate::gpu::Harness;
use crate::random::{Sample, values};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;
const MAX: f32 = f32::MAX;
/// The smallest normal number.
const MIN: f32 = f32::MIN_POSITIVE;
/// A subnormal number.
const TINY: f32 = 1e-40;
const PI: f32 = std::f32::consts::PI;
const HALF_PI: f32 = std::f32::consts::FRAC_PI_2;
const QUARTER_PI: f32 = std::f32::consts::FRAC_PI_4;

type Pairs = &'static [(f32, f32)];

/// What functions of one value give, to the last bit but for waves.
const OF_ONE: [(UnaryFn, Pairs); 6] = [
    (
        UnaryFn::Sin,
        &[
            (NAN, NAN),
            (INF, NAN),
            (-INF, NAN),
            (0.0, 0.0),
            (-0.0, -0.0),
            (MIN, MIN),
            (1e-20, 1e-20),
            (-1e-20, -1e-20),
            // The float that lies nearest to a multiple of pi / 2, and the largest one.
            (7.729_179e28, 1.0),
            (MAX, -0.521_876_5),
            (-MAX, 0.521_876_5),
            (1e22, -0.734_081_6),
        ],
    ),
    (
        UnaryFn::Cos,
        &[
            (NAN, NAN),
            (INF, NAN),
            (-INF, NAN),
            (0.0, 1.0),
            (7.729_179e28, -1.614_769_8e-9),
            (MAX, 0.853_021),
            (-MAX, 0.853_021),
        ],
    ),
    (
        UnaryFn::Floor,
        &[
            (NAN, NAN),
            (INF, INF),
            (-INF, -INF),
            (-0.5, -1.0),
            (0.999_999_94, 0.0),
            (8_388_607.5, 8_388_607.0),
            (-8_388_607.5, -8_388_608.0),
            (MAX, MAX),
            (-3.0, -3.0),
        ],
    ),
    (
        UnaryFn::Ceil,
        &[
            (NAN, NAN),
            (INF, INF),
            (-INF, -INF),
            (-0.5, 0.0),
            (0.5, 1.0),
            (8_388_607.5, 8_388_608.0),
            (-8_388_607.5, -8_388_607.0),
            (-MAX, -MAX),
            (3.0, 3.0),
        ],
    ),
    (
        UnaryFn::Round,
        &[
            (NAN, NAN),
            (INF, INF),
            (-INF, -INF),
            (0.5, 0.0),
            (1.5, 2.0),
            (2.5, 2.0),
            (-0.5, 0.0),
            (-1.5, -2.0),
            (0.499_999_97, 0.0),
            (8_388_607.5, 8_388_608.0),
            (8_388_606.5, 8_388_606.0),
            (MAX, MAX),
        ],
    ),
    (
        UnaryFn::Sign,
        &[
            (NAN, NAN),
            (-NAN, NAN),
            (INF, 1.0),
            (-INF, -1.0),
            (0.0, 0.0),
            (-0.0, 0.0),
            (TINY, 1.0),
            (-TINY, -1.0),
            (MAX, 1.0),
        ],
    ),
];

type Triples = &'static [(f32, f32, f32)];

/// What functions of two values give, to the last bit but for angles.
const OF_TWO: [(BinaryFn, Triples); 4] = [
    (
        BinaryFn::Mod,
        &[
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
            (1.0, 0.0, NAN),
            (1.0, -0.0, NAN),
            (0.0, 0.0, NAN),
            (INF, 2.0, NAN),
            (-INF, 2.0, NAN),
            (INF, INF, NAN),
            (5.0, INF, 5.0),
            (-5.0, -INF, -5.0),
            (-5.0, INF, INF),
            (5.0, -INF, -INF),
            (0.0, INF, 0.0),
            (0.0, 3.0, 0.0),
            (-0.0, 3.0, 0.0),
            (5.0, 3.0, 2.0),
            (-5.0, 3.0, 1.0),
            (5.0, -3.0, -1.0),
            (-5.0, -3.0, -2.0),
            (6.0, -3.0, 0.0),
            (-6.0, 3.0, 0.0),
            (0.3, 0.1, 7.450_581e-9),
            // A quotient beyond all digits.
            (MAX, 3.0, 0.0),
            (MAX, 11.0, 9.0),
            (-1e30, 0.7, 0.223_178_5),
            (MAX, MIN, 0.0),
            (MIN, MAX, MIN),
            // As near to the divisor as floats are: the divisor.
            (-1e-20, 1.0, 1.0),
        ],
    ),
    (
        BinaryFn::Atan2,
        &[
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
            (NAN, INF, NAN),
            (INF, NAN, NAN),
            (0.0, 1.0, 0.0),
            (-0.0, 1.0, 0.0),
            (0.0, -1.0, PI),
            (-0.0, -1.0, -PI),
            (0.0, 0.0, 0.0),
            (-0.0, 0.0, 0.0),
            (0.0, -0.0, PI),
            (-0.0, -0.0, -PI),
            (1.0, 0.0, HALF_PI),
            (-1.0, -0.0, -HALF_PI),
            (INF, 1.0, HALF_PI),
            (-INF, MAX, -HALF_PI),
            (1.0, INF, 0.0),
            (-1.0, INF, 0.0),
            (1.0, -INF, PI),
            (-1.0, -INF, -PI),
            (INF, INF, QUARTER_PI),
            (INF, -INF, 3.0 * QUARTER_PI),
            (-INF, INF, -QUARTER_PI),
            (-INF, -INF, -3.0 * QUARTER_PI),
            (MAX, MAX, QUARTER_PI),
            (MAX, -MAX, 3.0 * QUARTER_PI),
            (MAX, 1.0, HALF_PI),
            (MIN, MIN, QUARTER_PI),
            (1e-30, -1e-30, 3.0 * QUARTER_PI),
            (1e-10, 1.0, 1e-10),
        ],
    ),
    (
        BinaryFn::Less,
        &[
            (NAN, 1.0, 0.0),
            (1.0, NAN, 0.0),
            (-NAN, INF, 0.0),
            (-INF, -NAN, 0.0),
            (-0.0, 0.0, 0.0),
            (0.0, -0.0, 0.0),
            (0.0, TINY, 1.0),
            (-TINY, -0.0, 1.0),
            (-TINY, TINY, 1.0),
            (-INF, -MAX, 1.0),
            (MAX, INF, 1.0),
            (INF, INF, 0.0),
            (-2.0, -1.0, 1.0),
            (-1.0, -2.0, 0.0),
            (-1.0, 2.0, 1.0),
            (1.0, 1.000_000_1, 1.0),
        ],
    ),
    (
        BinaryFn::Equal,
        &[
            (NAN, NAN, 0.0),
            (NAN, 1.0, 0.0),
            (-0.0, 0.0, 1.0),
            (TINY, 0.0, 0.0),
            (TINY, TINY, 1.0),
            (INF, INF, 1.0),
            (INF, -INF, 0.0),
            (1.0, 1.000_000_1, 0.0),
        ],
    ),
];

/// A condition, and whether it is true.
const CONDITIONS: [(f32, bool); 10] = [
    (0.0, false),
    (-0.0, false),
    (1.0, true),
    (-1.0, true),
    (NAN, true),
    (-NAN, true),
    (INF, true),
    (TINY, true),
    (-TINY, true),
    (0.1, true),
];

/// Records a function of one input for each column, and gives its results on both devices.
fn compute(
    harness: &mut Harness,
    columns: &[Vec<f32>],
    record: impl Fn(&mut Chain, &[NodeId]) -> NodeId,
) -> [Vec<f32>; 2] {
    let mut chain = Chain::default();
    let input = |column: &Vec<f32>| {
        let shape = Shape::new(&[column.len() as u32]).unwrap();
        chain.input(shape, DType::F32, Home::Call).unwrap()
    };
    let inputs: Vec<NodeId> = columns.iter().map(input).collect();
    let result = record(&mut chain, &inputs);
    chain.output(result).unwrap();
    let words = |column: &Vec<f32>| column.iter().map(|x| x.to_bits()).collect();
    let call = Call {
        inputs: columns.iter().map(words).collect(),
        constants: vec![],
    };
    both(harness, &Sample { chain, call }).map(|mut results| {
        let words = results.remove(0).into_iter();
        words.map(f32::from_bits).collect()
    })
}

/// Holds results to what is right within a bound; NaN is NaN, and zeros are equal.
fn hold(name: &str, results: [Vec<f32>; 2], right: &[f32], bound: impl Fn(f64) -> f64) {
    for (device, got) in ["cpu", "gpu"].iter().zip(results) {
        assert_eq!(got.len(), right.len());
        for (i, (got, right)) in got.iter().zip(right).enumerate() {
            let off = (f64::from(*got) - f64::from(*right)).abs();
            assert!(
                got.is_nan() && right.is_nan() || got == right || off <= bound((*right).into()),
                "{device} {name}, case {i}: {got} instead of {right}"
            );
        }
    }
}

#[test]
fn hard_values_give_what_is_said() {
    let mut harness = Harness::open();
    for (function, pairs) in OF_ONE {
        let (of, right): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
        let results = compute(&mut harness, &[of], |chain, x| {
            chain.unary(function, x[0]).unwrap()
        });
        let is_wave = matches!(function, UnaryFn::Sin | UnaryFn::Cos);
        // A small number is its own sine, within few units of itself.
        let bound = |v: f64| {
            if is_wave && v.abs() > 1e-10 {
                4.0 * U
            } else {
                4.0 * U * v.abs()
            }
        };
        let bound = |v: f64| if is_wave { bound(v) } else { 0.0 };
        hold(function.name(), results, &right, bound);
    }
    for (function, triples) in OF_TWO {
        let columns = [
            triples.iter().map(|triple| triple.0).collect(),
            triples.iter().map(|triple| triple.1).collect(),
        ];
        let right: Vec<f32> = triples.iter().map(|triple| triple.2).collect();
        let results = compute(&mut harness, &columns, |chain, x| {
            chain.binary(function, x[0], x[1]).unwrap()
        });
        let is_angle = function == BinaryFn::Atan2;
        let bound = |v: f64| if is_angle { 16.0 * U * v.abs() } else { 0.0 };
        hold(function.name(), results, &right, bound);
    }
}

/// The sign of what is minus zero, where a condition or an angle shows it.
#[test]
fn an_angle_has_the_sign_of_its_height() {
    let mut harness = Harness::open();
    let columns = [vec![-0.0, 0.0, -0.0, 0.0], vec![1.0, 1.0, -1.0, -1.0]];
    let results = compute(&mut harness, &columns, |chain, x| {
        chain.binary(BinaryFn::Atan2, x[0], x[1]).unwrap()
    });
    for got in results {
        let signs: Vec<bool> = got.iter().map(|x| x.is_sign_negative()).collect();
        assert_eq!(signs, [true, false, true, false]);
    }
}

/// Neither operand of a condition changes a bit on its way, and the other one has no effect.
#[test]
fn conditions_are_true_unless_they_are_zero() {
    let mut harness = Harness::open();
    let kept = [-0.0, TINY, NAN, -INF, 1.5];
    for (a, b) in kept.iter().flat_map(|a| kept.iter().map(move |b| (*a, *b))) {
        let columns = [
            CONDITIONS.iter().map(|(condition, _)| *condition).collect(),
            vec![a; CONDITIONS.len()],
            vec![b; CONDITIONS.len()],
        ];
        let results = compute(&mut harness, &columns, |chain, x| {
            chain.select(x[0], x[1], x[2]).unwrap()
        });
        let right = CONDITIONS.map(|(_, is_true)| if is_true { a } else { b });
        for got in &results {
            for (got, right) in got.iter().zip(&right) {
                let is_same = got.to_bits() == right.to_bits();
                assert!(
                    is_same || got.is_nan() && right.is_nan(),
                    "{got} of {a} and {b}"
                );
            }
        }
    }
}

/// Floats of random bits: every magnitude is as likely, NaN and infinity among them.
fn random(count: usize, mut state: u32) -> Vec<f32> {
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        f32::from_bits(state)
    };
    (0..count).map(|_| next()).collect()
}

const COUNT: usize = 60_000;

#[test]
fn floats_of_random_bits_keep_the_bounds() {
    let mut harness = Harness::open();
    // A device may take subnormal numbers for zero.
    let plain = |x: &f32| x.is_normal() || *x == 0.0;
    let xs: Vec<f32> = random(COUNT, 77).into_iter().filter(plain).collect();
    let ys: Vec<f32> = random(COUNT, 99).into_iter().filter(plain).collect();
    let count = xs.len().min(ys.len());
    // Neighbors in size too, which random bits hardly give.
    let near = |(x, y): (&f32, &f32)| x * (y.to_bits() % 4096) as f32 / 512.0;
    let nears: Vec<f32> = xs.iter().zip(&ys).map(near).collect();
    for function in &UnaryFn::OF_TENSORS[UnaryFn::Sin as usize..] {
        let results = compute(&mut harness, std::slice::from_ref(&xs), |chain, x| {
            chain.unary(*function, x[0]).unwrap()
        });
        let right = |i: usize| Q::exact(xs[i].into()).unary(*function);
        compare(function.name(), &results, right);
    }
    for function in &BinaryFn::OF_TENSORS[BinaryFn::Mod as usize..] {
        for others in [&ys, &nears] {
            let columns = [&xs, others].map(|column| column[..count].to_vec());
            let results = compute(&mut harness, &columns, |chain, x| {
                chain.binary(*function, x[0], x[1]).unwrap()
            });
            let right = |i: usize| {
                let [a, b] = [0, 1].map(|of: usize| Q::exact(columns[of][i].into()));
                a.binary(*function, b)
            };
            compare(function.name(), &results, right);
        }
    }
}

fn compare(name: &str, results: &[Vec<f32>; 2], right: impl Fn(usize) -> Q) {
    for (device, results) in ["cpu", "gpu"].iter().zip(results) {
        let mut held = 0;
        for (i, got) in results.iter().enumerate() {
            let Q { v, e } = right(i);
            if e.is_infinite() {
                continue; // The tables above say what NaN and infinity give.
            }
            held += 1;
            let off = (f64::from(*got) - v).abs();
            assert!(
                off <= e,
                "{device} {name} {i}: {got} instead of {v} ± {e:e}"
            );
        }
        assert!(held > results.len() / 2, "{device} {name}: {held} held");
    }
}

type Record = fn(&mut Chain, &[NodeId]) -> NodeId;

/// What is recorded of inputs of these shapes, and how many stages that takes.
const FUSED: [(&str, &[&[u32]], Record, usize); 5] = [
    (
        "a broadcast condition, seen as of another shape",
        &[&[2, 13, 8], &[13, 1], &[8]],
        |chain, x| {
            let chosen = chain.select(x[0], x[1], x[2]).unwrap();
            chain.reshape(chosen, Shape::new(&[208]).unwrap()).unwrap()
        },
        2,
    ),
    (
        "a condition of operands as large, seen as of another shape",
        &[&[6, 5], &[6, 5]],
        |chain, x| {
            let is_less = chain.binary(BinaryFn::Less, x[0], x[1]).unwrap();
            let chosen = chain.select(is_less, x[1], x[0]).unwrap();
            chain.reshape(chosen, Shape::new(&[30]).unwrap()).unwrap()
        },
        1,
    ),
    (
        "a condition behind a product",
        &[&[9, 7], &[7, 5], &[9, 5]],
        |chain, x| {
            let zero = chain.constant().unwrap();
            let product = chain.matmul(x[0], x[1]).unwrap();
            chain.select(x[2], product, zero).unwrap()
        },
        1,
    ),
    (
        "a mask in front of a softmax",
        &[&[9, 40], &[40]],
        |chain, x| {
            let low = chain.constant().unwrap();
            let masked = chain.select(x[1], x[0], low).unwrap();
            chain.norm(Norm::Softmax, masked, -1, None).unwrap()
        },
        1,
    ),
    (
        "a condition by the rows that were folded",
        &[&[9, 40]],
        |chain, x| {
            let scaled = chain.norm(Norm::Softmax, x[0], -1, None).unwrap();
            let half = chain.constant().unwrap();
            let is_large = chain.binary(BinaryFn::Greater, scaled, half).unwrap();
            chain.select(is_large, scaled, x[0]).unwrap()
        },
        1,
    ),
];

#[test]
fn conditions_are_fused_as_any_function_of_elements() {
    let mut harness = Harness::open();
    for (name, shapes, record, stages) in FUSED {
        let mut chain = Chain::default();
        let inputs: Vec<NodeId> = shapes
            .iter()
            .map(|dims| {
                let shape = Shape::new(dims).unwrap();
                chain.input(shape, DType::F32, Home::Call).unwrap()
            })
            .collect();
        let result = record(&mut chain, &inputs);
        chain.output(result).unwrap();
        assert_eq!(fuse(&chain).0.stages.len(), stages, "{name}");
        let call = values(&chain, 5);
        hold_to_oracle(&mut harness, name, &Sample { chain, call });
    }
}
