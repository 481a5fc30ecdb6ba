//! Attention: numbers of queries, keys and floats around the borders of a block,
//! operands that lie in any way, alone and beside others.

use framebatch::graph::chain::{Chain, Heads, Home, Node};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, NodeId, UnaryFn};
use framebatch::plan::fuse::fuse;
use framebatch::program::Body;
use framebatch::tensor::DType;

use crate::bounded::{Q, U};
use crate::by_example::hold;
use crate::cpu::compute;
use crate::gpu::Harness;
use crate::oracle::{Tensor, largest, places, products};
use crate::random::{Sample, values};

/// Attention from its definition, with what devices may be off: beside the
/// errors of what it is made of, the weights are scaled again whenever a larger
/// score is found, which is at most once a key.
pub(crate) fn expected(
    heads: Heads,
    node: &Node,
    [q, k, v, scale]: [&Tensor; 4],
    bias: Option<&Tensor>,
) -> Vec<Q> {
    let [.., _, width] = node.shape.dims()[..] else {
        unreachable!("an attention has rows and columns");
    };
    let size = (width / heads.count) as usize;
    let rows = |of: &Tensor| of.shape.dims()[of.shape.rank() - 2] as usize;
    // The column of keys or of values for one of queries: neighboring heads share these.
    let sharing = (width / k.shape.dims()[k.shape.rank() - 1]) as usize;
    let own = |column: usize| column / size / sharing * size + column % size;
    let (queries, keys) = (rows(q), rows(k));
    let mut weights: Vec<(Vec<usize>, Vec<Q>)> = Vec::new();
    let each = places(node.shape).into_iter().map(|place| {
        let (stack, [row, column]) = place.split_at(place.len() - 2) else {
            unreachable!("an attention has rows and columns");
        };
        let first = column / size * size;
        let place = (row + keys).checked_sub(queries);
        let mut seen = if heads.is_causal {
            0..place.expect("no more queries than keys") + 1
        } else {
            0..keys
        };
        if let Some(window) = heads.window {
            let (place, window) = (place.expect("likewise"), window as usize);
            seen = place.saturating_sub(window)..seen.end.min(place + window + 1);
        }
        let head = [stack, &[*row, first]].concat();
        if weights.last().is_none_or(|(known, _)| *known != head) {
            let scores: Vec<Q> = (seen.clone())
                .map(|key| {
                    let pair = |i: usize| {
                        let a = q.broadcast(&[stack, &[*row, first + i]].concat());
                        a.mul(k.broadcast(&[stack, &[key, own(first + i)]].concat()))
                    };
                    let pairs: Vec<_> = (0..size).map(pair).collect();
                    let score = products(&pairs).mul(scale.values[0]);
                    bias.map_or(score, |bias| {
                        score.add(bias.broadcast(&[first / size, key + queries - 1 - row]))
                    })
                })
                .collect();
            let most = largest(&scores, 1.0).neg();
            let of_score = |score: &Q| {
                let weight = score.add(most).exp();
                Q::new(
                    weight.v,
                    weight.e,
                    8.0 * seen.len() as f64 * U * (weight.v + weight.e),
                )
            };
            weights.push((head, scores.iter().map(of_score).collect()));
        }
        let weights = &weights.last().expect("just found").1;
        let value = |key: usize| v.broadcast(&[stack, &[key, own(*column)]].concat());
        let hidden = (0..keys).filter(|key| !seen.contains(key));
        if hidden.into_iter().any(|key| value(key).e.is_infinite()) {
            return Q::new(0.0, f64::INFINITY, 0.0); // The value may be NaN, and NaN times 0 is NaN.
        }
        let weighed = seen.zip(weights);
        let weighed: Vec<Q> = weighed
            .map(|(key, weight)| weight.mul(value(key)))
            .collect();
        products(&weighed).div(products(weights))
    });
    each.collect()
}

fn input(chain: &mut Chain, dims: &[u32], home: Home) -> NodeId {
    let shape = Shape::new(dims).unwrap();
    chain.input(shape, DType::F32, home).unwrap()
}

/// Heads that attend to all keys.
fn all_keys(count: u32) -> Heads {
    Heads {
        count,
        is_causal: false,
        window: None,
    }
}

fn attention(chain: &mut Chain, count: u32, operands: [NodeId; 3]) -> NodeId {
    let heads = all_keys(count);
    let scale = chain.constant().unwrap();
    chain.attention(heads, operands, scale).unwrap()
}

/// Holds a chain to the oracle, on both devices.
fn check(harness: &mut Harness, what: &str, record: impl Fn(&mut Chain) -> NodeId) {
    let mut chain = Chain::default();
    let result = record(&mut chain);
    chain.output(result).unwrap();
    let call = values(&chain, 7);
    let sample = Sample { chain, call };
    hold(harness, what, &sample);
}

#[test]
fn sizes_around_the_borders_of_a_block() {
    check_sizes(&[
        ([1, 1], 1, 1, 1),
        ([2, 2], 3, 5, 7),
        ([3, 3], 32, 20, 20),
        ([2, 2], 32, 33, 65),
        ([2, 2], 64, 31, 32),
        ([1, 1], 64, 65, 96),
        ([3, 3], 20, 40, 3),
        ([1, 1], 48, 7, 130),
        ([70, 70], 4, 9, 9),
        ([6, 2], 4, 34, 40),
        ([3, 1], 3, 5, 9),
    ]);
}

/// Heads whose values are summed in parts, and such that a thread holds no query of.
#[test]
fn sizes_of_long_heads() {
    check_sizes(&[
        ([2, 2], 128, 5, 33),
        ([1, 1], 127, 2, 34),
        ([4, 2], 128, 5, 17),
        ([1, 1], 129, 33, 9),
        ([3, 1], 256, 2, 35),
        ([2, 1], 510, 2, 9),
        ([1, 1], 512, 3, 5),
    ]);
}

/// Holds attention to the oracle: heads of queries and of keys, floats of a head, queries, and keys.
fn check_sizes(cases: &[([u32; 2], u32, u32, u32)]) {
    let mut harness = Harness::open();
    for ([heads, heads_of_keys], size, queries, keys) in cases.iter().copied() {
        for is_causal in [false, true] {
            let queries = if is_causal {
                queries.min(keys)
            } else {
                queries
            };
            let [width, of_keys] = [heads, heads_of_keys].map(|heads| heads * size);
            let what = format!(
                "{width} and {of_keys} floats, {size} a head, {queries} of {keys}, causal: {is_causal}"
            );
            check(&mut harness, &what, |chain| {
                let q = input(chain, &[queries, width], Home::Call);
                let k = input(chain, &[keys, of_keys], Home::Resident);
                let v = input(chain, &[keys, of_keys], Home::Call);
                let count = heads;
                let scale = chain.constant().unwrap();
                chain
                    .attention(
                        Heads {
                            is_causal,
                            ..all_keys(count)
                        },
                        [q, k, v],
                        scale,
                    )
                    .unwrap()
            });
            if is_causal && heads != 3 {
                continue; // The mask knows nothing of a bias.
            }
            // A part of a longer bias, as texts of any length read.
            check(&mut harness, &format!("{what}, biased"), |chain| {
                let q = input(chain, &[queries, width], Home::Call);
                let k = input(chain, &[keys, of_keys], Home::Resident);
                let bias = input(chain, &[heads, queries + keys + 4], Home::Resident);
                let columns = (3, (queries + keys + 2) as i32, 1);
                let bias = chain.slice(bias, &[(0, i32::MAX, 1), columns]).unwrap();
                let count = heads;
                let scale = chain.constant().unwrap();
                chain
                    .biased_attention(
                        Heads {
                            is_causal,
                            ..all_keys(count)
                        },
                        [q, k, k],
                        scale,
                        bias,
                    )
                    .unwrap()
            });
        }
    }
}

/// Windows of nothing but a query's own place, across the borders of tiles, and wider than all keys.
#[test]
fn keys_outside_of_a_window_count_for_nothing() {
    let mut harness = Harness::open();
    for (size, queries, keys, window) in [
        (4, 70, 70, 0),
        (3, 70, 70, 9),
        (4, 40, 130, 40),
        (32, 130, 130, 64),
        (4, 33, 33, 1000),
        (132, 35, 35, 3),
    ] {
        for is_causal in [false, true] {
            let heads = Heads {
                count: 2,
                is_causal,
                window: Some(window),
            };
            let what = format!("{size} a head, {queries} of {keys}, {heads:?}");
            check(&mut harness, &what, |chain| {
                let q = input(chain, &[queries, 2 * size], Home::Call);
                let k = input(chain, &[keys, size], Home::Resident);
                let v = input(chain, &[keys, size], Home::Call);
                let scale = chain.constant().unwrap();
                chain.attention(heads, [q, k, v], scale).unwrap()
            });
        }
    }
}

#[test]
fn operands_lie_in_any_way() {
    let mut harness = Harness::open();
    check(&mut harness, "one for all", |chain| {
        let x = input(chain, &[18, 24], Home::Call);
        attention(chain, 3, [x, x, x])
    });
    check(&mut harness, "transposed and with steps", |chain| {
        let q = input(chain, &[24, 18], Home::Call);
        let k = input(chain, &[40, 24], Home::Resident);
        let q = chain.transpose(q, &[]).unwrap();
        let k = chain.slice(k, &[(35, 0, -3), (-1, i32::MIN, -1)]).unwrap();
        attention(chain, 3, [q, k, k])
    });
    check(&mut harness, "computed first", |chain| {
        let x = input(chain, &[18, 24], Home::Call);
        let q = chain.unary(UnaryFn::Tanh, x).unwrap();
        let v = chain.binary(BinaryFn::Mul, x, q).unwrap();
        attention(chain, 2, [q, x, v])
    });
    check(&mut harness, "numbers of the call", |chain| {
        let number = chain.constant().unwrap();
        let q = chain.reshape(number, Shape::new(&[1, 1]).unwrap()).unwrap();
        let k = input(chain, &[5, 1], Home::Call);
        attention(chain, 1, [q, k, k])
    });
}

#[test]
fn stacks_broadcast() {
    let mut harness = Harness::open();
    let shapes: [[&[u32]; 3]; 4] = [
        [&[3, 5, 8], &[3, 7, 8], &[3, 7, 8]],
        [&[5, 8], &[3, 7, 8], &[7, 8]],
        [&[2, 3, 5, 8], &[1, 7, 8], &[2, 1, 7, 8]],
        [&[2, 1, 33, 8], &[3, 40, 8], &[40, 8]],
    ];
    for dims in shapes {
        check(&mut harness, &format!("{dims:?}"), |chain| {
            let operands = dims.map(|dims| input(chain, dims, Home::Call));
            attention(chain, 2, operands)
        });
    }
}

#[test]
fn what_is_read_and_asked_for_too() {
    let mut harness = Harness::open();
    let mut chain = Chain::default();
    let x = input(&mut chain, &[9, 12], Home::Call);
    let y = attention(&mut chain, 3, [x, x, x]);
    let z = chain.unary(UnaryFn::Gelu, y).unwrap();
    let both = chain.concat(&[y, z], 0).unwrap();
    for result in [y, z, both, y] {
        chain.output(result).unwrap();
    }
    let call = values(&chain, 11);
    hold(&mut harness, "several results", &Sample { chain, call });
}

/// Scores of hundreds on either side of zero, growing or falling from key to
/// key: no weight overflows, and each new largest one scales what was before.
#[test]
fn large_scores_overflow_nothing() {
    let mut harness = Harness::open();
    for (first, step) in [(-300.0, 8.0), (300.0, -8.0), (-5000.0, 0.0), (80.0, 0.1)] {
        let mut chain = Chain::default();
        let q = input(&mut chain, &[40, 4], Home::Call);
        let k = input(&mut chain, &[75, 4], Home::Call);
        let v = input(&mut chain, &[75, 4], Home::Call);
        let y = attention(&mut chain, 1, [q, k, v]);
        chain.output(y).unwrap();
        let mut call = values(&chain, 5);
        call.inputs[0] = [1.0_f32, 0.0, 0.0, 0.0].map(f32::to_bits).repeat(40);
        for key in 0..75 {
            let score: f32 = first + step * key as f32;
            call.inputs[1][4 * key] = score.to_bits();
        }
        call.constants[0] = 1_f32.to_bits();
        let sample = Sample { chain, call };
        hold(&mut harness, &format!("from {first} by {step}"), &sample);
    }
}

/// x of 24 floats, projected to queries, keys and values in one product.
fn block(rows: u32) -> Chain {
    let mut chain = Chain::default();
    let x = input(&mut chain, &[rows, 24], Home::Call);
    let w = input(&mut chain, &[24, 72], Home::Resident);
    let bias = input(&mut chain, &[72], Home::Resident);
    let y = chain.matmul(x, w).unwrap();
    let y = chain.binary(BinaryFn::Add, y, bias).unwrap();
    let all = (0, i32::MAX, 1);
    let [q, k, v] = [0, 24, 48].map(|at| chain.slice(y, &[all, (at, at + 24, 1)]).unwrap());
    let y = attention(&mut chain, 3, [q, k, v]);
    chain.output(y).unwrap();
    chain
}

#[test]
fn texts_of_any_length_share_its_passes_and_change_no_bit() {
    let mut harness = Harness::open();
    let (program, _) = fuse(&block(7));
    // One product, which is read where it lies.
    assert_eq!(program.stages.len(), 2, "{program}");
    let Body::Attention(of) = &program.stages[1].body else {
        panic!("{program}");
    };
    assert!(of.is_quads, "{program}");
    let shared = values(&block(1), 5).inputs;
    let calls: Vec<_> = (1..=40)
        .chain([64, 65, 130])
        .map(|rows| {
            let chain = block(rows);
            let (own, sizes) = fuse(&chain);
            assert!(own == program, "{rows} rows: {own}\ninstead of\n{program}");
            let mut call = values(&chain, u64::from(rows));
            call.inputs[1..].clone_from_slice(&shared[1..]);
            call.constants[0] = 0.3_f32.to_bits();
            (sizes, call)
        })
        .collect();
    let all: Vec<_> = calls.iter().map(|(sizes, call)| (sizes, call)).collect();
    let together = harness.run(&program, &all);
    for (i, call) in all.iter().enumerate() {
        let alone = harness.run(&program, &[*call]);
        assert!(alone[0] == together[i], "call {i}");
    }
    assert_eq!(harness.compiled(), program.stages.len());
}

/// Shapes of queries, keys and values, how many heads, whether it is causal, and what is
/// said.
const REFUSED: [([&[u32]; 3], u32, bool, &str); 13] = [
    ([&[8], &[5, 8], &[5, 8]], 2, false, "[8] must have 2 to 7"),
    (
        [&[5, 8], &[5, 6], &[5, 6]],
        2,
        false,
        "[5, 8] and [5, 6] do not suit: keys have",
    ),
    (
        [&[5, 8], &[5, 12], &[5, 12]],
        2,
        false,
        "[5, 8] and [5, 12] do not suit: keys have",
    ),
    (
        [&[5, 12], &[5, 8], &[5, 8]],
        3,
        false,
        "[5, 12] and [5, 8] do not suit: keys have",
    ),
    (
        [&[5, 8], &[5, 8], &[5, 6]],
        2,
        false,
        "[5, 8] and [5, 6] must agree",
    ),
    (
        [&[5, 8], &[6, 8], &[5, 8]],
        2,
        false,
        "[6, 8] and [5, 8] must agree in the dimension",
    ),
    (
        [&[5, 8], &[5, 8], &[5, 8]],
        3,
        false,
        "[5, 8] are not 3 heads",
    ),
    (
        [&[5, 8], &[5, 8], &[5, 8]],
        0,
        false,
        "[5, 8] are not 0 heads",
    ),
    (
        [&[5, 0], &[5, 0], &[5, 0]],
        1,
        false,
        "[5, 0] are not 1 heads",
    ),
    (
        [&[5, 1026], &[5, 1026], &[5, 1026]],
        2,
        false,
        "1 to 512 floats",
    ),
    (
        [&[5, 8], &[0, 8], &[0, 8]],
        2,
        false,
        "[5, 8] and [0, 8] leave the queries no keys",
    ),
    ([&[6, 8], &[5, 8], &[5, 8]], 2, true, "leave causal"),
    (
        [&[2, 5, 8], &[3, 5, 8], &[5, 8]],
        2,
        false,
        "[2] and [3] do not broadcast",
    ),
];

#[test]
fn what_does_not_fit_is_refused_with_both_shapes() {
    for (shapes, count, is_causal, says) in REFUSED {
        let mut chain = Chain::default();
        let operands = shapes.map(|dims| input(&mut chain, dims, Home::Call));
        let scale = chain.constant().unwrap();
        let error = chain.attention(
            Heads {
                is_causal,
                ..all_keys(count)
            },
            operands,
            scale,
        );
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("attention: ") && error.contains(says),
            "{error}"
        );
    }
    let mut chain = Chain::default();
    let x = input(&mut chain, &[1, 1], Home::Call);
    let heads = all_keys(1);
    let scale = chain.constant().unwrap();
    let bias = input(&mut chain, &[1, 2], Home::Call);
    let error = chain.biased_attention(heads, [x, x, x], scale, bias);
    assert_eq!(
        error.unwrap_err().to_string(),
        "attention: shapes [1, 2] and [1, 1] do not suit: a bias has a row for each head, of distances"
    );
    let error = chain.attention(heads, [x, x, x], x).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("a number that comes with the call")
    );
}

#[test]
fn no_queries_are_answered_with_nothing() {
    let mut harness = Harness::open();
    for dims in [&[0, 8][..], &[0, 3, 8], &[2, 0, 8]] {
        let mut chain = Chain::default();
        let q = input(&mut chain, dims, Home::Call);
        let k = input(&mut chain, &[3, 8], Home::Call);
        let y = attention(&mut chain, 2, [q, k, k]);
        let y = chain.unary(UnaryFn::Neg, y).unwrap();
        chain.output(y).unwrap();
        let call = values(&chain, 7);
        let (program, sizes) = fuse(&chain);
        let results = harness.run(&program, &[(&sizes, &call)]).remove(0);
        assert!(results[0].is_empty());
        assert!(compute(&program, &sizes, &call)[0].is_empty());
    }
}
