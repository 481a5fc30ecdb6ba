//! The CPU's bits depend neither on who computes which lines of a result
//! nor on what else there is.

use std::ops::Range;

use framebatch::graph::NodeId;
use framebatch::graph::chain::{Chain, Home};
use framebatch::graph::shape::Shape;
use framebatch::plan::fuse::fuse;
use framebatch::tensor::DType;
use framebatch::{Blocking, Config, EngineChoice};
use proptest::prelude::*;

use crate::cpu::{Call, compute, compute_in_shares};
use crate::random::{sample, values};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shares_of_random_chains_are_the_same_bits(
        words in proptest::collection::vec(any::<u32>(), 4..90),
        rows in 1_u32..70,
        share in prop_oneof![1_usize..9, 9_usize..600],
    ) {
        let sample = sample(&words, rows);
        let (program, sizes) = fuse(&sample.chain);
        let whole = compute(&program, &sizes, &sample.call);
        let shared = compute_in_shares(&program, &sizes, &sample.call, share);
        prop_assert!(whole == shared, "shares of {share}\n{program}");
    }

    #[test]
    fn a_row_of_a_product_is_the_same_bits_in_any_company(
        (m, k, n) in (1_u32..80, 1_u32..700, 1_u32..70),
        lies in any::<[bool; 2]>(),
        first in any::<u32>(),
        count in 1_u32..80,
    ) {
        let first = first % m;
        let count = count.min(m - first);
        let all = product([m, k, n], lies);
        let call = values(&all, u64::from(m * 31 + n));
        let some = product([count, k, n], lies);
        let mut few = call.clone();
        few.inputs[0] = rows_of(&call.inputs[0], [m, k], first..first + count, lies);
        let [whole, part] = [(&all, &call), (&some, &few)].map(|(chain, call)| {
            let (program, sizes) = fuse(chain);
            compute(&program, &sizes, call).remove(0)
        });
        let own = (first * n) as usize..((first + count) * n) as usize;
        prop_assert!(whole[own] == part[..], "rows {first} to {} of {m}x{k}x{n}, {lies:?}", first + count);
    }
}

/// A product of `m x k` and `k x n`, of which each factor may lie turned.
fn product([m, k, n]: [u32; 3], lies: [bool; 2]) -> Chain {
    let mut chain = Chain::default();
    let [a, b] = [([m, k], lies[0]), ([k, n], lies[1])].map(|([down, across], is_turned)| {
        let dims = if is_turned {
            [across, down]
        } else {
            [down, across]
        };
        let x = input(&mut chain, &dims);
        if is_turned {
            chain.transpose(x, &[1, 0]).unwrap()
        } else {
            x
        }
    });
    let y = chain.matmul(a, b).unwrap();
    chain.output(y).unwrap();
    chain
}

fn input(chain: &mut Chain, dims: &[u32]) -> NodeId {
    let shape = Shape::new(dims).unwrap();
    chain.input(shape, DType::F32, Home::Call).unwrap()
}

/// Some rows of the left factor, in the way that it lies.
fn rows_of(
    words: &[u32],
    [m, k]: [u32; 2],
    rows: Range<u32>,
    [is_turned, _]: [bool; 2],
) -> Vec<u32> {
    let places: Vec<u32> = match is_turned {
        true => (0..k)
            .flat_map(|c| rows.clone().map(move |r| c * m + r))
            .collect(),
        false => rows.flat_map(|r| (0..k).map(move |c| r * k + c)).collect(),
    };
    places
        .into_iter()
        .map(|place| words[place as usize])
        .collect()
}

/// Large enough for all cores; its rows, one call each, are not.
#[test]
fn all_cores_compute_what_one_does() {
    let config = Config {
        engine: EngineChoice::Cpu,
        ..Config::default()
    };
    let gpu = Blocking::open(config).unwrap();
    let (rows, inner, columns) = (600, 300, 200);
    let mut chain = Chain::default();
    input(&mut chain, &[rows, inner]);
    input(&mut chain, &[inner, columns]);
    let Call { inputs, .. } = values(&chain, 3);
    let [x, w]: [Vec<f32>; 2] = [0, 1].map(|input: usize| {
        let floats = inputs[input].iter().map(|word| f32::from_bits(*word));
        floats.collect()
    });
    let network = |x: &[f32]| {
        let rows = u32::try_from(x.len()).unwrap() / inner;
        let mut batch = gpu.batch();
        let x = batch.upload_shaped(x, &[rows, inner]).unwrap();
        let w = batch.upload_shaped(&w, &[inner, columns]).unwrap();
        let y = batch.matmul(x, w).unwrap();
        let y = batch.gelu(y).unwrap();
        // A row of its own for each: a sum, and a map of what came before.
        let z = batch.tanh(y).unwrap();
        let sum = batch.dot(z, y).unwrap();
        batch.keep(y).unwrap();
        batch.execute().unwrap();
        [batch.read(y).unwrap(), batch.read(sum).unwrap()]
    };
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let [y, sums] = network(&x);
    for row in (0..rows as usize).step_by(37) {
        let own = row * inner as usize..(row + 1) * inner as usize;
        let [alone, sum] = network(&x[own]);
        let place = row * columns as usize..(row + 1) * columns as usize;
        assert_eq!(bits(&y[place]), bits(&alone), "row {row}");
        assert_eq!(
            sums[row].to_bits(),
            sum[0].to_bits(),
            "the sum of row {row}"
        );
    }
    // Enough for all cores in one call, and too little in each of ten.
    let count = y.len();
    let slerp = |from: usize, to: usize| gpu.slerp(&x[from..to], &y[from..to], 0.3).unwrap();
    let parts = (0..count).step_by(count / 10);
    let parts: Vec<f32> = parts
        .flat_map(|from| slerp(from, from + count / 10))
        .collect();
    assert_eq!(bits(&slerp(0, count)), bits(&parts));
}
