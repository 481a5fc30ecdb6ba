//! Products in 16 bits: near the oracle, with the same bits in tiles of either size, alone and among
//! others, and those of 32 bits where a device has no 16.

use framebatch::graph::chain::{Chain, Home};
use framebatch::graph::{BinaryFn, Precision};
use framebatch::plan::fuse::fuse;
use framebatch::program::{Products, Tiles};

use crate::cpu;
use crate::gpu::{Harness, SIZES};
use crate::matmul::input;
use crate::random::{Sample, values};

/// Half the distance of two neighboring 16-bit floats from 1 on.
const EPSILON: f64 = 1.0 / 2048.0;

/// Rounding of two factors, and of the sums of 32 products.
const ROUNDINGS: f64 = 2.0 + 32.0;

const SHAPES: [[u32; 3]; 8] = [
    [1, 1, 1],
    [2, 3, 5],
    [64, 16, 64],
    [63, 15, 65],
    [65, 17, 63],
    [1, 100, 130],
    [130, 48, 4],
    [17, 384, 33],
];

/// a · bᵀ + c, in a precision.
fn product(precision: Precision, [m, k, n]: [u32; 3]) -> Sample {
    let mut chain = Chain::default();
    let a = input(&mut chain, &[m, k], Home::Call);
    let b = input(&mut chain, &[n, k], Home::Resident);
    let c = input(&mut chain, &[n], Home::Resident);
    let b = chain.transpose(b, &[]).unwrap();
    let y = chain.matmul_in(precision, a, b).unwrap();
    let y = chain.binary(BinaryFn::Add, y, c).unwrap();
    chain.output(y).unwrap();
    let call = values(&chain, 11);
    Sample { chain, call }
}

fn run(harness: &mut Harness, sample: &Sample) -> Vec<u32> {
    let (program, sizes) = fuse(&sample.chain);
    assert!(
        program
            .stages
            .iter()
            .all(|stage| Products::of(stage).is_some())
    );
    let calls = [(&sizes, &sample.call); 2];
    let [one, other] = harness.run(&program, &calls).try_into().unwrap();
    assert_eq!(one, other, "equal calls have equal answers");
    one.into_iter().next().unwrap()
}

/// Each element in float64, and the sum of absolute values that its error is told in.
fn oracle([m, k, n]: [u32; 3], sample: &Sample) -> Vec<[f64; 2]> {
    let at =
        |input: usize, i: u32| f64::from(f32::from_bits(sample.call.inputs[input][i as usize]));
    let element = |row: u32, column: u32| {
        let terms = (0..k).map(|i| at(0, row * k + i) * at(1, column * k + i));
        let [sum, size] = terms.fold([0.0; 2], |[sum, size], term| {
            [sum + term, size + term.abs()]
        });
        [sum + at(2, column), size]
    };
    let rows = (0..m).flat_map(|row| (0..n).map(move |column| (row, column)));
    rows.map(|(row, column)| element(row, column)).collect()
}

#[test]
fn sums_are_near_the_oracle_with_equal_bits_in_tiles_of_either_size() {
    let mut harness = Harness::open();
    assert_eq!(
        harness.offered,
        Precision::F16,
        "the device has 16-bit floats"
    );
    for shape in SHAPES {
        let sample = product(Precision::F16, shape);
        let [large, small] = SIZES.map(|tiles| {
            harness.tiles = tiles;
            run(&mut harness, &sample)
        });
        assert_eq!(large, small, "{shape:?}");
        for (word, [expected, size]) in large.iter().zip(oracle(shape, &sample)) {
            let found = f64::from(f32::from_bits(*word));
            let bound = size * (ROUNDINGS * EPSILON + f64::from(shape[1]) * 6e-8) + 1e-6;
            assert!(
                (found - expected).abs() <= bound,
                "{shape:?}: {found}, not {expected} ± {bound}"
            );
        }
        let full = run(&mut harness, &product(Precision::F32, shape));
        assert_ne!(large, full, "{shape:?} was computed in 16 bits");
    }
}

/// Sums beyond the 2048 to which 16 bits count are sums of sums that they hold.
#[test]
fn long_sums_are_in_32_bits() {
    let mut harness = Harness::open();
    let [m, k, n] = [3, 4096, 5];
    let mut sample = product(Precision::F16, [m, k, n]);
    for words in &mut sample.call.inputs {
        words.fill(1_f32.to_bits());
    }
    for tiles in SIZES {
        harness.tiles = tiles;
        let found = run(&mut harness, &sample);
        assert!(found.iter().all(|word| f32::from_bits(*word) == 4097.0));
    }
}

#[test]
fn what_has_no_16_bits_computes_in_32() {
    let mut harness = Harness::open();
    harness.offered = Precision::F32;
    for shape in SHAPES {
        let [full, half] = Precision::ALL.map(|precision| product(precision, shape));
        for tiles in [Tiles::Large, Tiles::Small] {
            harness.tiles = tiles;
            let [full, half] = [&full, &half].map(|sample| run(&mut harness, sample));
            assert_eq!(full, half, "{shape:?}, {tiles:?}");
        }
        let [full, half] = [full, half].map(|Sample { chain, call }| {
            let (program, sizes) = fuse(&chain);
            cpu::compute(&program, &sizes, &call)
        });
        assert_eq!(full, half, "{shape:?} on the CPU");
    }
}

/// Calls of both precisions may wait together: the answers are those of either alone.
#[test]
fn precisions_are_different_programs_of_different_words() {
    let chains = Precision::ALL.map(|precision| product(precision, [4, 5, 6]).chain);
    let [full, half] = chains.each_ref().map(Chain::encode);
    assert_ne!(full, half);
    for chain in &chains {
        assert_eq!(&Chain::decode(&chain.encode()).unwrap(), chain);
    }
    let [full, half] = chains.each_ref().map(|chain| fuse(chain).0);
    assert_ne!(full, half);
    assert!(!full.stages[0].shares_kernel(&half.stages[0]));
}
