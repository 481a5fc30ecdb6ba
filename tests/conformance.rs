//! Interpolation of floats on both devices against the float64 oracle, through
//! the public face; `states.rs` has the states.
//!
//! Bounds: `bezier` twelve times 2⁻²⁴ of Σ |weight||point|; `lerp` three times 2⁻²⁴ of |a||1−t| + |b||t|; `slerp` of unit
//! quaternions 5e-7 a component for t in [0, 1], beyond it 1e-6 times |t|,
//! because the turn is |t| times the angle; `nlerp` the same.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod oracle;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;

use framebatch::{Call, Gpu, Mode, Parameter, State};
use samples::Samples;

const LERP_BOUND: f64 = 3.0 / 16_777_216.0;
const BEZIER_BOUND: f64 = 12.0 / 16_777_216.0;
const QUATERNION_BOUND: f64 = 5e-7;

/// Inside, at and outside the ends.
const PARAMETERS: [f32; 12] = [
    0.0,
    -0.0,
    1.0,
    0.5,
    1e-7,
    1.0 - f32::EPSILON / 2.0,
    1.0 + f32::EPSILON,
    -1e-7,
    0.333,
    -0.25,
    1.75,
    -1e3,
];

#[track_caller]
fn check_lerp(gpu: &Gpu, got: f32, a: f32, b: f32, t: f32) {
    let want = oracle::lerp(a, b, t);
    let bound = LERP_BOUND * oracle::lerp_scale(a, b, t) + f64::from(f32::MIN_POSITIVE);
    let error = (f64::from(got) - want).abs();
    let engine = gpu.info().engine;
    assert!(
        error <= bound,
        "{engine:?}: lerp({a}, {b}, {t}) is {got}, want {want} within {bound}, off by {error}"
    );
}

#[test]
fn lerp_with_one_t() {
    for gpu in engines::both() {
        let mut samples = Samples(1);
        let mut calls = Vec::new();
        for length in 0..=17 {
            for t in PARAMETERS {
                let (a, b) = (samples.floats(length), samples.floats(length));
                calls.push((gpu.lerp(&a, &b, t), a, b, t));
            }
        }
        for (call, a, b, t) in calls {
            let got = call.wait().unwrap();
            assert_eq!(got.len(), a.len());
            for k in 0..got.len() {
                check_lerp(&gpu, got[k], a[k], b[k], t);
            }
        }
    }
}

#[test]
fn lerp_with_a_t_for_each_item() {
    for gpu in engines::both() {
        let mut samples = Samples(2);
        for width in [1, 3, 4, 7] {
            for items in 0..=17 {
                let length = items * width as usize;
                let (a, b) = (samples.floats(length), samples.floats(length));
                let t: Vec<f32> = (0..items).map(|k| PARAMETERS[k % 12]).collect();
                let got = gpu.lerp_items(&a, &b, &t, width).wait().unwrap();
                assert_eq!(got.len(), length);
                for k in 0..length {
                    check_lerp(&gpu, got[k], a[k], b[k], t[k / width as usize]);
                }
            }
        }
    }
}

#[test]
fn lerp_is_exact_at_both_ends() {
    for gpu in engines::both() {
        let mut samples = Samples(3);
        let (a, b) = (samples.floats(1000), samples.floats(1000));
        assert_eq!(gpu.lerp(&a, &b, 0.0).wait().unwrap(), a);
        assert_eq!(gpu.lerp(&a, &b, 1.0).wait().unwrap(), b);
    }
}

#[track_caller]
fn check_bezier(gpu: &Gpu, got: f32, points: [f32; 4], t: f32) {
    let want = oracle::bezier(points, t);
    let bound = BEZIER_BOUND * oracle::bezier_scale(points, t) + f64::from(f32::MIN_POSITIVE);
    let error = (f64::from(got) - want).abs();
    let engine = gpu.info().engine;
    assert!(
        error <= bound,
        "{engine:?}: bezier({points:?}, {t}) is {got}, want {want} within {bound}, off by {error}"
    );
}

#[test]
fn bezier_with_one_t() {
    for gpu in engines::both() {
        let mut samples = Samples(8);
        let mut calls = Vec::new();
        for length in 0..=17 {
            for t in PARAMETERS {
                let points: [Vec<f32>; 4] = std::array::from_fn(|_| samples.floats(length));
                let call = gpu.bezier(points.each_ref().map(Vec::as_slice), t);
                calls.push((call, points, t));
            }
        }
        for (call, points, t) in calls {
            let got = call.wait().unwrap();
            assert_eq!(got.len(), points[0].len());
            for (k, got) in got.into_iter().enumerate() {
                check_bezier(&gpu, got, points.each_ref().map(|points| points[k]), t);
            }
        }
    }
}

#[test]
fn bezier_with_a_t_for_each_item() {
    for gpu in engines::both() {
        let mut samples = Samples(9);
        for width in [1, 3, 4, 7] {
            for items in 0..=17 {
                let length = items * width as usize;
                let points: [Vec<f32>; 4] = std::array::from_fn(|_| samples.floats(length));
                let t: Vec<f32> = (0..items).map(|k| PARAMETERS[k % 12]).collect();
                let slices = points.each_ref().map(Vec::as_slice);
                let got = gpu.bezier_items(slices, &t, width).wait().unwrap();
                assert_eq!(got.len(), length);
                for (k, got) in got.into_iter().enumerate() {
                    let at = t[k / width as usize];
                    check_bezier(&gpu, got, points.each_ref().map(|points| points[k]), at);
                }
            }
        }
    }
}

#[test]
fn bezier_is_exact_at_both_ends_and_may_share_its_points() {
    for gpu in engines::both() {
        let mut samples = Samples(10);
        let points: [Vec<f32>; 4] = std::array::from_fn(|_| samples.floats(1000));
        let slices = points.each_ref().map(Vec::as_slice);
        assert_eq!(gpu.bezier(slices, 0.0).wait().unwrap(), points[0]);
        assert_eq!(gpu.bezier(slices, 1.0).wait().unwrap(), points[3]);
        let p = [2.0, -4.0];
        assert_eq!(gpu.bezier([&p; 4], 0.5).wait().unwrap(), p);
    }
}

#[test]
fn lerp_carries_infinities_and_nan_in_values() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let a = [nan, 1.0, inf, 1.0, -inf, inf, 2.0];
    let b = [1.0, nan, 1.0, inf, -inf, -inf, 4.0];
    for gpu in engines::both() {
        let got = gpu.lerp(&a, &b, 0.5).wait().unwrap();
        let want: Vec<f64> = (0..7).map(|k| oracle::lerp(a[k], b[k], 0.5)).collect();
        for k in 0..7 {
            let (got, want) = (f64::from(got[k]), want[k]);
            let same = got == want || got.is_nan() && want.is_nan();
            assert!(same, "{k}: {got} and {want}");
        }
    }
}

#[test]
fn a_t_that_is_nan_is_refused_and_its_neighbors_are_not() {
    for gpu in engines::both_manual() {
        let (a, b) = ([0.0, 4.0], [2.0, 8.0]);
        let states = [State([0x88; 16]); 2];
        let before = gpu.lerp(&a, &b, 0.5);
        let refused = [
            gpu.lerp(&a, &b, f32::NAN),
            gpu.lerp(&a, &b, &[0.5, f32::NAN]),
            gpu.slerp(&[0.5; 4], &[0.5; 4], f32::NAN),
            gpu.nlerp(&[0.5; 4], &[0.5; 4], f32::NAN),
            gpu.bezier([&a; 4], f32::NAN),
            gpu.bezier([&a; 4], &[0.5, f32::NAN]),
        ];
        let refused_states = [
            gpu.interpolate(&states, &states, f32::NAN, Mode::Lerp),
            gpu.interpolate(&states, &states, &[f32::NAN, 0.0], Mode::Slerp),
            gpu.interpolate_bezier([&states; 4], &[0.0, f32::NAN]),
            gpu.descend(&states, f32::NAN),
            gpu.descend(&states, &[0.0, f32::NAN]),
        ];
        let after = gpu.lerp(&a, &b, &[0.25, 0.75]);
        gpu.flush();
        assert_eq!(before.wait().unwrap(), [1.0, 6.0]);
        assert_eq!(after.wait().unwrap(), [0.5, 7.0]);
        let errors = refused.map(|call| call.wait().unwrap_err());
        let errors = errors
            .into_iter()
            .chain(refused_states.map(|call| call.wait().unwrap_err()));
        for error in errors {
            assert_eq!(error.code(), framebatch::Code::InvalidInput);
            assert!(error.to_string().contains("is NaN"), "{error}");
        }
        assert_eq!(gpu.stats().calls, 2);
    }
}

/// Quaternions and where they are special.
fn pairs(samples: &mut Samples) -> Vec<(oracle::Quaternion, oracle::Quaternion)> {
    let mut pairs = Vec::new();
    for _ in 0..2000 {
        pairs.push((samples.quaternion(), samples.quaternion()));
    }
    for _ in 0..50 {
        let q = samples.quaternion();
        pairs.push((q, q));
        pairs.push((q, q.map(|x| -x)));
        for distance in [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7] {
            let near = samples::normalize(std::array::from_fn(|k| {
                f64::from(q[k]) + distance * f64::from(samples.unit())
            }));
            pairs.push((q, near));
            pairs.push((q, near.map(|x| -x)));
        }
    }
    let unit = |k: usize| std::array::from_fn(|i| f32::from(i == k));
    pairs.extend((0..4).flat_map(|i| (0..4).map(move |j| (unit(i), unit(j)))));
    // Rounding decides which of two equal arcs is the shorter one.
    pairs.retain(|(a, b)| {
        let cosine = oracle::cosine(*a, *b);
        cosine == 0.0 || cosine.abs() > 1e-6
    });
    pairs
}

/// A call of quaternions, and what it should give.
type Between = (
    fn(&Gpu, &[f32], &[f32], Parameter<'_>) -> Call<f32>,
    fn(oracle::Quaternion, oracle::Quaternion, f32) -> [f64; 4],
);

const SLERP: Between = (|gpu, a, b, t| gpu.slerp(a, b, t), oracle::slerp);
const NLERP: Between = (|gpu, a, b, t| gpu.nlerp(a, b, t), oracle::nlerp);

/// Holds a call to its bound inside, and to `outside` of t there.
fn check_quaternions((call, expected): Between, outside: fn(f32) -> f64) {
    const INSIDE: [f32; 6] = [0.0, 1.0, 0.5, 0.25, 0.9, 1e-4];
    const OUTSIDE: [f32; 5] = [-0.5, 1.5, 3.0, -7.25, 40.0];
    for gpu in engines::both() {
        let pairs = pairs(&mut Samples(4));
        let flat = |side: fn(&(oracle::Quaternion, oracle::Quaternion)) -> oracle::Quaternion| {
            pairs.iter().flat_map(side).collect::<Vec<f32>>()
        };
        let (a, b) = (flat(|pair| pair.0), flat(|pair| pair.1));
        for t in INSIDE.into_iter().chain(OUTSIDE) {
            let bound = match INSIDE.contains(&t) {
                true => QUATERNION_BOUND,
                false => outside(t),
            };
            let got = call(&gpu, &a, &b, t.into()).wait().expect("sound operands");
            let mut worst = 0.0_f64;
            for (k, (a, b)) in pairs.iter().enumerate() {
                let want = expected(*a, *b, t);
                for (got, want) in got[4 * k..].iter().zip(want) {
                    worst = worst.max((f64::from(*got) - want).abs());
                }
            }
            let engine = gpu.info().engine;
            assert!(
                worst <= bound,
                "{engine:?}, t = {t}: {worst:e} is above {bound:e}"
            );
        }
    }
}

#[test]
fn slerp_inside_and_outside() {
    check_quaternions(SLERP, |t| 1e-6 * f64::from(t.abs().max(1.0)));
}

#[test]
fn nlerp_inside_and_outside() {
    check_quaternions(NLERP, |t| 1e-6 * f64::from(t.abs().max(1.0)));
}

#[test]
fn nlerp_of_a_sum_without_a_direction_is_no_turn() {
    for gpu in engines::both() {
        let q = [0.5; 4];
        let opposite = gpu.nlerp(&q, &q.map(|x| -x), 0.5).wait().unwrap();
        for (got, want) in opposite.iter().zip(q) {
            assert!((got - want).abs() <= 5e-7, "the same turn: {opposite:?}");
        }
        for (a, b, t) in [([0.0; 4], [0.0; 4], 0.5), (q, [0.0; 4], 1.0)] {
            let got = gpu.nlerp(&a, &b, t).wait().unwrap();
            assert_eq!(got, [0.0, 0.0, 0.0, 1.0], "{a:?} {b:?}");
        }
        let nan = gpu.nlerp(&[f32::NAN; 4], &q, 0.5).wait();
        assert!(nan.is_ok(), "it is for the device to say what it gives");
    }
}

#[test]
fn quaternions_of_every_length_with_a_t_for_each() {
    [SLERP, NLERP].into_iter().for_each(check_lengths);
}

fn check_lengths((call, expected): Between) {
    for gpu in engines::both() {
        let mut samples = Samples(5);
        for rows in 0..=17 {
            let (a, b) = (samples.quaternions(rows), samples.quaternions(rows));
            let t = samples.units(rows);
            let got = call(&gpu, &a, &b, (&t).into())
                .wait()
                .expect("sound operands");
            assert_eq!(got.len(), 4 * rows);
            for row in 0..rows {
                let quaternion =
                    |side: &[f32]| std::array::from_fn(|k| side[4 * row + k]) as oracle::Quaternion;
                let want = expected(quaternion(&a), quaternion(&b), t[row]);
                for k in 0..4 {
                    let error = (f64::from(got[4 * row + k]) - want[k]).abs();
                    assert!(error <= QUATERNION_BOUND, "row {row} of {rows}: {error}");
                }
            }
        }
    }
}
