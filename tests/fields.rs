//! Gradients of callers' own fields on both devices, against the same
//! differences in float64, of functions that were not parsed.
//!
//! Bound: 2⁻¹² of the largest value that the field takes on its way, which is
//! two to eight units in a float's last place over the difference's width.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;

use std::f64::consts::PI;

use framebatch::{Code, Field, Gpu, State};
use samples::Samples;

/// A formula, what it means, and the largest value on its way.
type Case = (&'static str, fn(f64, f64, f64) -> f64, f64);

const CASES: [Case; 22] = [
    ("rho", |r, _, _| r, 8.0),
    (
        "rho * cos(pi * theta / 8)",
        |r, t, _| r * (PI * t / 8.0).cos(),
        8.0,
    ),
    (
        "2^(rho / 4) * sin(theta * pi / 8)",
        |r, t, _| (r / 4.0).exp2() * (t * PI / 8.0).sin(),
        4.0,
    ),
    (
        "(layer - 7.5) * rho^2 / 100",
        |r, _, k| (k - 7.5) * r * r / 100.0,
        8.0,
    ),
    ("rho^3 - 3*rho", |r, _, _| r.powi(3) - 3.0 * r, 512.0),
    ("exp(-rho^2 / 8)", |r, _, _| (-r * r / 8.0).exp(), 8.0),
    ("log(rho + 9)", |r, _, _| (r + 9.0).ln(), 16.0),
    (
        "sqrt(rho + 8.5) + abs(theta - 8.5)",
        |r, t, _| (r + 8.5).sqrt() + (t - 8.5).abs(),
        16.0,
    ),
    ("tanh(rho / 3)", |r, _, _| (r / 3.0).tanh(), 3.0),
    ("tan(rho / 8)", |r, _, _| (r / 8.0).tan(), 4.0),
    (
        "min(rho, 1.5) + max(theta, 3.25)",
        |r, t, _| r.min(1.5) + t.max(3.25),
        16.0,
    ),
    ("pow(rho + 9, 1.5)", |r, _, _| (r + 9.0).powf(1.5), 128.0),
    ("1 / (rho + 8.5)", |r, _, _| (r + 8.5).recip(), 2.0),
    ("-(rho - 0.25)^-2", |r, _, _| -(r - 0.25).powi(-2), 16.0),
    ("theta", |_, t, _| t, 16.0),
    ("7", |_, _, _| 7.0, 7.0),
    ("layer", |_, _, k| k, 15.0),
    (
        "sin(cos(rho) * 2) * layer",
        |r, _, k| (r.cos() * 2.0).sin() * k,
        16.0,
    ),
    ("neg(recip(rho - 8.5))", |r, _, _| -(r - 8.5).recip(), 2.0),
    (
        "sub(mul(rho, 2), div(theta, 4)) + add(rho, layer)",
        |r, t, k| r * 2.0 - t / 4.0 + r + k,
        40.0,
    ),
    (
        "(rho - 0.5)^3^1 + pow(-2, 3)",
        |r, _, _| (r - 0.5).powi(3) - 8.0,
        640.0,
    ),
    ("exp(rho) * 1e-3", |r, _, _| r.exp() * 1e-3, 2.0),
];

/// Central differences, one-sided at the ends of ρ and circular in θ.
fn differences(f: fn(f64, f64, f64) -> f64, layer: u8, number: usize) -> [f64; 2] {
    let step = 1.0 / 1024.0;
    let (rho, theta) = (f64::from(layer >> 4) - 8.0, f64::from(layer & 15));
    let number = number as f64;
    let (low, high) = ((rho - step).max(-8.0), (rho + step).min(7.0));
    let by_rho = (f(high, theta, number) - f(low, theta, number)) / (high - low);
    let back = (theta - step).rem_euclid(16.0);
    let by_theta = (f(rho, theta + step, number) - f(rho, back, number)) / (2.0 * step);
    [by_rho, by_theta]
}

fn check(gpu: &Gpu, states: &[State], (formula, f, largest): Case) {
    let field: Field = formula.parse().expect(formula);
    let got = gpu
        .compute_field_gradients(states, &field)
        .wait()
        .expect(formula);
    let want = states.iter().flat_map(|state| {
        let layers = state.0.into_iter().enumerate();
        layers.flat_map(|(k, layer)| differences(f, layer, k))
    });
    let want: Vec<f64> = want.collect();
    assert_eq!(got.len(), want.len(), "{formula}");
    let bound = largest / 4096.0;
    let mut worst = 0.0_f64;
    for (got, want) in got.iter().zip(&want) {
        let error = (f64::from(*got) - want).abs();
        worst = if error <= worst { worst } else { error };
    }
    let engine = gpu.info().engine;
    assert!(
        worst <= bound,
        "{engine:?}: {formula} is off by {worst}, more than {bound}"
    );
}

/// Every byte, at sixteen places of 256 states.
fn all_layers() -> Vec<State> {
    let shifted = (0..16_u8).map(|k| 17 * k).collect::<Vec<_>>();
    let state = |first: u8| State(std::array::from_fn(|k| first.wrapping_add(shifted[k])));
    (0..=255).map(state).collect()
}

#[test]
fn gradients_are_differences_of_the_formula() {
    for gpu in engines::both() {
        for case in CASES {
            check(&gpu, &all_layers(), case);
        }
    }
}

#[test]
fn every_length_is_answered() {
    for gpu in engines::both() {
        let mut samples = Samples(1);
        for rows in (0..=17).chain([1000]) {
            check(&gpu, &samples.states(rows), CASES[1]);
        }
    }
}

#[test]
fn equal_fields_merge_and_compile_once_and_others_do_not() {
    let [_, gpu] = engines::both_manual();
    let states = Samples(2).states(3);
    let ask = |formula: &str| {
        let field = formula.parse::<Field>().unwrap();
        gpu.compute_field_gradients(&states, &field)
    };
    let calls = [
        ask("rho*rho"),
        ask("rho^2"),
        ask(" ( rho ) * rho "),
        ask("theta"),
    ];
    gpu.flush();
    let [a, b, c, other] = calls.map(|call| call.wait().unwrap());
    assert_eq!((&a, &a), (&b, &c));
    assert_ne!(a, other);
    let device = gpu.stats().device;
    assert_eq!((device.dispatches, device.pipelines_compiled), (2, 2));
    let again = ask("rho^2");
    gpu.flush();
    assert_eq!(again.wait().unwrap(), a);
    assert_eq!(gpu.stats().device.pipelines_compiled, 2);
}

#[test]
fn a_field_without_a_finite_value_compiles_and_touches_nobody_else() {
    for gpu in engines::both_manual() {
        let states = Samples(3).states(5);
        let before = gpu.lerp(&[1.0], &[3.0], 0.5);
        let formulas = [
            "1 / 0",
            "0 / 0",
            "log(-1)",
            "exp(1000)",
            "1e38 * 1e38",
            "sqrt(-rho^2)",
            "1/rho",
        ];
        let calls =
            formulas.map(|formula| gpu.compute_field_gradients(&states, &formula.parse().unwrap()));
        gpu.flush();
        assert_eq!(before.wait().unwrap(), [2.0]);
        for (call, formula) in calls.into_iter().zip(formulas) {
            assert_eq!(call.wait().expect(formula).len(), 5 * 32, "{formula}");
        }
    }
}

#[test]
fn the_plan_shows_the_field() {
    let [gpu, _] = engines::both();
    let plan = gpu.explain(|gpu| {
        let field = "rho * 2".parse().unwrap();
        drop(gpu.compute_field_gradients(&[State::default()], &field));
    });
    let dispatch = "dispatch state_field[v0 * f32(2)](s0) -> s1, 1 calls, 1 rows";
    assert!(plan.contains(dispatch), "{plan}");
}

#[test]
fn a_wrong_formula_is_refused_where_it_is_parsed() {
    let error = "rho +".parse::<Field>().unwrap_err();
    assert_eq!(error.code(), Code::InvalidInput);
    assert!(error.to_string().starts_with("field: expected"), "{error}");
}
