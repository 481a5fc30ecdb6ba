//! Waves, whole numbers, angles, remainders, comparisons and conditions: for floats of random
//! bits, fused with others, and what counts as true. Single hard values are in `hard_values`.

use framebatch::graph::chain::{Chain, Home, Norm};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, NodeId, UnaryFn};
use framebatch::plan::fuse::fuse;
use framebatch::tensor::DType;

use crate::bounded::Q;
use crate::by_example::{both, hold as hold_to_oracle};
use crate::cpu::Call;
use crate::gpu::Harness;
use crate::random::{Sample, values};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;
/// A subnormal number.
const TINY: f32 = 1e-40;

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
pub(crate) fn compute(
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
    let nears = xs.iter().zip(&ys).map(near);
    let nears: Vec<f32> = nears
        .map(|near| if plain(&near) { near } else { 1.0 })
        .collect();
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
