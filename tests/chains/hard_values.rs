//! Waves, whole numbers, angles, remainders and comparisons where these are hard: at NaN,
//! infinities, both zeros, subnormal and huge numbers, by tables.

use framebatch::graph::{BinaryFn, UnaryFn};

use crate::bounded::U;
use crate::gpu::Harness;
use crate::simulation::compute;

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
