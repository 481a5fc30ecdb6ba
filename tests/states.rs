//! States on both devices: equal to the oracle and to each other, to the bit.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod oracle;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;

use framebatch::{Gpu, Mode, State};
use samples::Samples;

/// At, inside and outside the ends, infinities, and halves of a 65,536th.
const PARAMETERS: [f32; 15] = [
    0.0,
    -0.0,
    1.0,
    0.5,
    0.25,
    0.75,
    1.0 / 3.0,
    0.9999,
    0.5 / 65536.0,
    1.5 / 65536.0,
    -0.5,
    1.5,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MIN_POSITIVE,
];

const MODES: [Mode; 2] = [Mode::Lerp, Mode::Slerp];

fn expected(a: &[State], b: &[State], t: impl Fn(usize) -> f32, mode: Mode) -> Vec<State> {
    let layer = match mode {
        Mode::Lerp => oracle::layer_lerp,
        Mode::Slerp => oracle::layer_slerp,
    };
    (0..a.len())
        .map(|row| {
            State(std::array::from_fn(|k| {
                layer(a[row].0[k], b[row].0[k], t(row))
            }))
        })
        .collect()
}

/// A state whose first layer is given, over null layers.
fn one_layer(layer: u8) -> State {
    let mut state = State::default();
    state.0[0] = layer;
    state
}

#[test]
fn interpolation_by_example() {
    // Layer a, layer b, t, lerp, slerp. High nibble ρ + 8, low nibble θ.
    let cases = [
        (0x8f, 0x81, 0.5, 0x88, 0x80), // 15 to 1: back through 8, or on through 0.
        (0x81, 0x8f, 0.5, 0x88, 0x80), // And the same backwards.
        (0x8f, 0x81, 0.25, 0x8c, 0x80), // 11.5 is even 12; 15.5 is even 16, which is 0.
        (0x80, 0x88, 0.5, 0x84, 0x84), // Half a turn ahead goes ahead,
        (0x88, 0x80, 0.5, 0x84, 0x84), // half a turn back goes back.
        (0x80, 0x89, 0.5, 0x84, 0x8c), // 4.5 is even 4; −3.5 is even −4.
        (0x0a, 0xfa, 0.5, 0x8a, 0x8a), // From null: −0.5 is even 0.
        (0x00, 0x00, 0.7, 0x00, 0x00), // Null stays null.
        (0x8a, 0x7a, 0.5, 0x8a, 0x8a), // Ties of ρ: −0.5 is even 0,
        (0x9a, 0x8a, 0.5, 0x8a, 0x8a), // 0.5 is even 0,
        (0x9a, 0xaa, 0.5, 0xaa, 0xaa), // 1.5 is even 2.
        (0x12, 0xe4, -3.0, 0x12, 0x12), // Before the beginning,
        (0x12, 0xe4, 9.0, 0xe4, 0xe4), // behind the end.
    ];
    for gpu in engines::both() {
        for (a, b, t, lerp, slerp) in cases {
            for (mode, want) in [(Mode::Lerp, lerp), (Mode::Slerp, slerp)] {
                let call = gpu.interpolate(&[one_layer(a)], &[one_layer(b)], t, mode);
                let got = call.wait().unwrap();
                assert_eq!(got, [one_layer(want)], "{mode:?} of {a:#x}, {b:#x} at {t}");
            }
        }
    }
}

fn states(layers: impl Iterator<Item = u8>) -> Vec<State> {
    let layers: Vec<u8> = layers.collect();
    let (states, rest) = layers.as_chunks();
    assert!(rest.is_empty(), "16 layers a state");
    states.iter().copied().map(State).collect()
}

/// 65,536 layers: every byte against every byte.
fn all_pairs() -> (Vec<State>, Vec<State>) {
    let pairs = || (0..=u16::MAX).map(u16::to_be_bytes);
    (
        states(pairs().map(|[a, _]| a)),
        states(pairs().map(|[_, b]| b)),
    )
}

#[test]
fn interpolation_of_all_pairs_of_layers() {
    let (a, b) = all_pairs();
    let gpus = engines::both();
    for t in PARAMETERS {
        for mode in MODES {
            let calls = gpus.each_ref().map(|gpu| gpu.interpolate(&a, &b, t, mode));
            let [cpu, gpu] = calls.map(|call| call.wait().unwrap());
            assert!(cpu == gpu, "devices differ: {mode:?}, t = {t}");
            assert!(
                cpu == expected(&a, &b, |_| t, mode),
                "not the oracle's: {mode:?}, t = {t}"
            );
        }
    }
}

fn check_rows(gpu: &Gpu, rows: usize, samples: &mut Samples) {
    let (a, b) = (samples.states(rows), samples.states(rows));
    let t: Vec<f32> = (0..rows).map(|row| PARAMETERS[row % 15]).collect();
    for mode in MODES {
        let got = gpu.interpolate(&a, &b, &t, mode).wait().expect("answered");
        assert_eq!(got, expected(&a, &b, |row| t[row], mode), "{rows} {mode:?}");
        let got = gpu
            .interpolate(&a, &b, 0.375, mode)
            .wait()
            .expect("answered");
        assert_eq!(got, expected(&a, &b, |_| 0.375, mode), "{rows} {mode:?}");
    }
}

#[test]
fn interpolation_of_every_length() {
    for gpu in engines::both() {
        let mut samples = Samples(6);
        for rows in (0..=17).chain([1000, 4099]) {
            check_rows(&gpu, rows, &mut samples);
        }
    }
}

#[test]
fn gradients_of_every_layer_and_length() {
    for gpu in engines::both() {
        let mut samples = Samples(7);
        let inputs = (0..=17).map(|rows| samples.states(rows));
        let calls: Vec<_> = std::iter::once(states(0..=255))
            .chain(inputs)
            .map(|states| (gpu.compute_gradients(&states), states))
            .collect();
        for (call, states) in calls {
            let want: Vec<f32> = states
                .iter()
                .flat_map(|state| state.0)
                .flat_map(oracle::gradient)
                .collect();
            assert_eq!(call.wait().unwrap(), want);
        }
    }
}
