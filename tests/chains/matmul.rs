//! Products of matrices: sizes around the borders of a tile, what is fused behind, alone and
//! beside others.

use framebatch::graph::chain::{Chain, Home};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, NodeId, UnaryFn};
use framebatch::plan::fuse::fuse;
use framebatch::tensor::DType;

use crate::by_example::hold;
use crate::cpu::Call;
use crate::gpu::{Harness, SIZES};
use crate::random::{Sample, values};

pub(crate) fn input(chain: &mut Chain, dims: &[u32], home: Home) -> NodeId {
    let shape = Shape::new(dims).unwrap();
    chain.input(shape, DType::F32, home).unwrap()
}

/// Holds a chain of two inputs to the oracle, on both devices, and on the GPU
/// in every way.
fn check(
    harness: &mut Harness,
    what: &str,
    shapes: [&[u32]; 2],
    record: impl Fn(&mut Chain, [NodeId; 2]) -> NodeId,
) {
    let mut chain = Chain::default();
    let a = input(&mut chain, shapes[0], Home::Call);
    let b = input(&mut chain, shapes[1], Home::Resident);
    let result = record(&mut chain, [a, b]);
    chain.output(result).unwrap();
    let call = values(&chain, 7);
    let sample = Sample { chain, call };
    for tiles in SIZES {
        harness.tiles = tiles;
        hold(harness, &format!("{what} for {tiles:?}"), &sample);
    }
}

#[test]
fn sizes_around_the_borders_of_a_tile() {
    let mut harness = Harness::open();
    for (m, k, n) in [
        (1, 1, 1),
        (2, 3, 5),
        (4, 4, 4),
        (64, 16, 64),
        (63, 15, 65),
        (65, 17, 63),
        (1, 100, 130),
        (130, 5, 1),
        (7, 4097, 3),
    ] {
        let what = format!("{m}x{k}x{n}");
        check(&mut harness, &what, [&[m, k], &[k, n]], |chain, [a, b]| {
            chain.matmul(a, b).unwrap()
        });
    }
}

#[test]
fn factors_lie_in_any_way() {
    let mut harness = Harness::open();
    let turned = |chain: &mut Chain, x| chain.transpose(x, &[1, 0]).unwrap();
    check(
        &mut harness,
        "left transposed",
        [&[20, 33], &[20, 18]],
        |chain, [a, b]| {
            let a = turned(chain, a);
            chain.matmul(a, b).unwrap()
        },
    );
    check(
        &mut harness,
        "right transposed",
        [&[33, 20], &[18, 20]],
        |chain, [a, b]| {
            let b = turned(chain, b);
            chain.matmul(a, b).unwrap()
        },
    );
    check(
        &mut harness,
        "both, with steps",
        [&[40, 66], &[36, 40]],
        |chain, [a, b]| {
            let a = chain.slice(a, &[(0, 40, 2), (60, 0, -3)]).unwrap();
            let a = turned(chain, a);
            let b = chain.slice(b, &[(0, 36, 1), (1, 40, 2)]).unwrap();
            let b = turned(chain, b);
            chain.matmul(a, b).unwrap()
        },
    );
    check(
        &mut harness,
        "computed first",
        [&[9, 30], &[30, 11]],
        |chain, [a, b]| {
            let a = chain.unary(UnaryFn::Gelu, a).unwrap();
            let b = chain.unary(UnaryFn::Tanh, b).unwrap();
            chain.matmul(a, b).unwrap()
        },
    );
}

#[test]
fn stacks_broadcast() {
    let mut harness = Harness::open();
    let product = |chain: &mut Chain, [a, b]: [NodeId; 2]| chain.matmul(a, b).unwrap();
    check(&mut harness, "both", [&[3, 5, 7], &[3, 7, 9]], product);
    check(&mut harness, "left alone", [&[3, 5, 7], &[7, 9]], product);
    check(
        &mut harness,
        "right alone",
        [&[5, 7], &[2, 3, 7, 9]],
        product,
    );
    check(
        &mut harness,
        "one of each",
        [&[2, 1, 5, 7], &[1, 3, 7, 4]],
        product,
    );
    // Heads of an attention: [rows, heads, width] looked at from the side.
    check(
        &mut harness,
        "turned",
        [&[20, 2, 8], &[20, 2, 8]],
        |chain, [q, k]| {
            let q = chain.transpose(q, &[1, 0, 2]).unwrap();
            let k = chain.transpose(k, &[1, 2, 0]).unwrap();
            chain.matmul(q, k).unwrap()
        },
    );
}

#[test]
fn a_vector_is_one_row_or_column_that_the_result_has_not() {
    let mut harness = Harness::open();
    let cases: [([&[u32]; 2], &[u32]); 10] = [
        ([&[3], &[3]], &[]),
        ([&[0], &[0]], &[]),
        ([&[4100], &[4100]], &[]),
        ([&[5], &[5, 7]], &[7]),
        ([&[66], &[66, 67]], &[67]),
        ([&[4], &[2, 4, 1]], &[2, 1]),
        ([&[4], &[1, 3, 4, 6]], &[1, 3, 6]),
        ([&[7, 5], &[5]], &[7]),
        ([&[130, 33], &[33]], &[130]),
        ([&[3, 1, 4, 2], &[2]], &[3, 1, 4]),
    ];
    for (shapes, expected) in cases {
        let what = format!("{shapes:?}");
        check(&mut harness, &what, shapes, |chain, [a, b]| {
            let y = chain.matmul(a, b).unwrap();
            assert_eq!(chain.node(y).shape.dims(), expected, "{what}");
            y
        });
    }
    // Looked at from the side, and with something behind.
    check(
        &mut harness,
        "every other one",
        [&[40], &[20, 18]],
        |chain, [a, b]| {
            let a = chain.slice(a, &[(0, 40, 2)]).unwrap();
            let bias = input(chain, &[18], Home::Resident);
            let y = chain.matmul(a, b).unwrap();
            let y = chain.binary(BinaryFn::Add, y, bias).unwrap();
            chain.unary(UnaryFn::Gelu, y).unwrap()
        },
    );
}

#[test]
fn what_follows_is_fused_behind() {
    let mut harness = Harness::open();
    check(
        &mut harness,
        "bias, gelu and residual",
        [&[70, 24], &[24, 70]],
        |chain, [a, b]| {
            let bias = input(chain, &[70], Home::Resident);
            let residual = input(chain, &[70, 70], Home::Call);
            let y = chain.matmul(a, b).unwrap();
            let y = chain.binary(BinaryFn::Add, y, bias).unwrap();
            let y = chain.unary(UnaryFn::Gelu, y).unwrap();
            let y = chain.binary(BinaryFn::Add, y, residual).unwrap();
            let (program, _) = fuse(&{
                let mut chain = chain.clone();
                chain.output(y).unwrap();
                chain
            });
            assert_eq!(program.stages.len(), 1, "{program}");
            y
        },
    );
    check(
        &mut harness,
        "a sum of two",
        [&[10, 12], &[12, 10]],
        |chain, [a, b]| {
            let (first, second) = (chain.matmul(a, b).unwrap(), chain.matmul(b, a).unwrap());
            let second = chain.slice(second, &[(0, 10, 1), (2, 12, 1)]).unwrap();
            chain.binary(BinaryFn::Sub, first, second).unwrap()
        },
    );
    check(
        &mut harness,
        "softmax, and another",
        [&[33, 12], &[12, 40]],
        |chain, [a, b]| {
            let y = chain.matmul(a, b).unwrap();
            let y = chain
                .norm(framebatch::graph::chain::Norm::Softmax, y, -1, None)
                .unwrap();
            let b = chain.transpose(b, &[]).unwrap();
            chain.matmul(y, b).unwrap()
        },
    );
}

/// softmax(gelu(x · w1 + b1) · w2 + b2), the network of many callers.
fn network(rows: u32) -> Chain {
    let mut chain = Chain::default();
    let x = input(&mut chain, &[rows, 32], Home::Call);
    let parameters: [&[u32]; 4] = [&[32, 64], &[64], &[64, 10], &[10]];
    let [w1, b1, w2, b2] = parameters.map(|dims| input(&mut chain, dims, Home::Resident));
    let y = chain.matmul(x, w1).unwrap();
    let y = chain.binary(BinaryFn::Add, y, b1).unwrap();
    let y = chain.unary(UnaryFn::Gelu, y).unwrap();
    let y = chain.matmul(y, w2).unwrap();
    let y = chain.binary(BinaryFn::Add, y, b2).unwrap();
    let y = chain
        .norm(framebatch::graph::chain::Norm::Softmax, y, -1, None)
        .unwrap();
    chain.output(y).unwrap();
    chain
}

#[test]
fn callers_of_one_network_share_its_passes_and_change_no_bit() {
    for tiles in SIZES {
        let mut harness = Harness::open();
        harness.tiles = tiles;
        let (program, _) = fuse(&network(7));
        assert_eq!(program.stages.len(), 3, "{program}");
        let shared = values(&network(1), 5).inputs;
        let calls: Vec<_> = (1..=40)
            .chain([64, 65, 130])
            .map(|rows| {
                let chain = network(rows);
                let (own, sizes) = fuse(&chain);
                assert!(own == program, "{rows} rows: {own}\ninstead of\n{program}");
                let mut call: Call = values(&chain, u64::from(rows));
                call.inputs[1..].clone_from_slice(&shared[1..]);
                (sizes, call)
            })
            .collect();
        let all: Vec<_> = calls.iter().map(|(sizes, call)| (sizes, call)).collect();
        let together = harness.run(&program, &all);
        for (i, call) in all.iter().enumerate() {
            let alone = harness.run(&program, &[*call]);
            assert!(alone[0] == together[i], "call {i} for {tiles:?}");
        }
        assert_eq!(harness.compiled(), program.stages.len());
    }
}

#[test]
fn what_does_not_fit_is_refused_with_both_shapes() {
    let cases: [([&[u32]; 2], &str); 4] = [
        ([&[2, 3], &[4, 5]], "must agree"),
        ([&[], &[3, 5]], "multiply by a number with mul"),
        ([&[2, 5, 3], &[3, 3, 4]], "do not broadcast"),
        ([&[1 << 15, 1 << 15], &[1 << 15, 1 << 16]], "has more"),
    ];
    for (shapes, says) in cases {
        let mut chain = Chain::default();
        let made = shapes.map(|dims| {
            let shape = Shape::new(dims)?;
            chain.input(shape, DType::F32, Home::Call)
        });
        let error = match made {
            [Ok(a), Ok(b)] => chain.matmul(a, b).unwrap_err(),
            [Err(error), _] | [_, Err(error)] => error,
        };
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn products_of_nothing_are_nothing_or_zero() {
    let mut harness = Harness::open();
    for (m, k, n) in [(0, 3, 4), (4, 3, 0), (0, 1, 0), (3, 0, 4), (0, 0, 0)] {
        for is_turned in [false, true] {
            let mut chain = Chain::default();
            let dims = if is_turned { [n, k] } else { [k, n] };
            let a = input(&mut chain, &[m, k], Home::Call);
            let mut b = input(&mut chain, &dims, Home::Call);
            if is_turned {
                b = chain.transpose(b, &[1, 0]).unwrap();
            }
            let y = chain.matmul(a, b).unwrap();
            let y = chain.unary(UnaryFn::Neg, y).unwrap();
            chain.output(y).unwrap();
            let call = values(&chain, 7);
            let (program, sizes) = fuse(&chain);
            for tiles in SIZES {
                harness.tiles = tiles;
                let results = harness.run(&program, &[(&sizes, &call)]).remove(0);
                assert_eq!(results[0].len(), (m * n) as usize);
                let is_zero = |word: &u32| f32::from_bits(*word) == 0.0;
                assert!(results[0].iter().all(is_zero), "{m}x{k}x{n}, {tiles:?}");
            }
            let results = crate::cpu::compute(&program, &sizes, &call);
            assert_eq!(results[0].len(), (m * n) as usize);
            assert!(results[0].iter().all(|word| f32::from_bits(*word) == 0.0));
        }
    }
}
