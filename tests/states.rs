//! States on both devices: equal to the oracle and to each other, to the bit.
//!
//! Distances are floats and have bounds: 2⁻¹⁹ of the magnitudes' sum for
//! `distance`, 2⁻²⁰ of itself for `geodesic_distance`.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod oracle;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;

use framebatch::{Gpu, Mode, State};
use samples::{Samples, times};

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
        (0x81, 0x8f, 0.5, 0x88, 0x80), // 1 to 15: the same backwards.
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

/// The most steps of a sequence; a sequence is not cut, so a small device has room for
/// fewer.
fn most_steps() -> u32 {
    if engines::is_small() { 60_000 } else { 65_536 }
}

#[test]
fn sequences_are_the_steps_from_end_to_end() {
    for gpu in engines::both() {
        let mut samples = Samples(8);
        for (steps, rows) in [
            (2, 1),
            (3, 5),
            (5, 17),
            (64, 3),
            (257, 2),
            (1000, 7),
            (most_steps(), 1),
        ] {
            let (a, b) = (samples.states(rows), samples.states(rows));
            for mode in MODES {
                let count = steps as usize;
                let repeat = |states: &[State]| -> Vec<State> {
                    let each = |state: &State| std::iter::repeat_n(*state, count);
                    states.iter().flat_map(each).collect()
                };
                let t = |k: usize| oracle::step(k % count, count);
                let want = expected(&repeat(&a), &repeat(&b), t, mode);
                let got = gpu.sequence(&a, &b, steps, mode).wait().unwrap();
                assert!(got == want, "{steps} steps, {rows} rows, {mode:?}");
                assert_eq!((got[0], got[count - 1]), (a[0], b[0]));
            }
        }
    }
}

#[test]
fn a_short_sequence_is_what_interpolation_gives_at_its_times() {
    let [_, gpu] = engines::both();
    let mut samples = Samples(9);
    let (a, b) = (samples.states(1), samples.states(1));
    for steps in 2..=257 {
        let sequence = gpu.sequence(&a, &b, steps, Mode::Slerp);
        let repeat = |state: State| vec![state; steps as usize];
        let t: Vec<f32> = (0..steps).map(|k| k as f32 / (steps - 1) as f32).collect();
        let each = gpu.interpolate(&repeat(a[0]), &repeat(b[0]), &t, Mode::Slerp);
        assert_eq!(
            sequence.wait().unwrap(),
            each.wait().unwrap(),
            "{steps} steps"
        );
    }
}

#[test]
fn curves_by_example() {
    // Four layers, t, the layer on the curve.
    let cases = [
        ([0x80, 0x80, 0x80, 0x80], 0.3, 0x80),
        ([0x12, 0x34, 0x56, 0x78], 0.0, 0x12),
        ([0x12, 0x34, 0x56, 0x78], 1.0, 0x78),
        ([0x12, 0x34, 0x56, 0x78], 5.0, 0x78),
        ([0x00, 0x80, 0x80, 0x00], 0.5, 0x60),
        ([0x8e, 0x8f, 0x81, 0x82], 0.5, 0x80), // Through 0, not back through 8.
        ([0x80, 0x84, 0x88, 0x8c], 0.5, 0x86),
        ([0x80, 0x90, 0x90, 0xa0], 0.5, 0x90),
        ([0x10, 0x10, 0x20, 0x20], 0.5, 0x20), // 1.5 is even 2,
        ([0x20, 0x20, 0x30, 0x30], 0.5, 0x20), // 2.5 is even 2.
    ];
    for gpu in engines::both() {
        for (points, t, want) in cases {
            let points = points.map(|layer| [one_layer(layer)]);
            let slices = points.each_ref().map(<[State; 1]>::as_slice);
            let got = gpu.interpolate_bezier(slices, t).wait().unwrap();
            assert_eq!(got, [one_layer(want)], "{points:?} at {t}");
        }
    }
}

#[test]
fn curves_of_all_sorts_of_layers() {
    let gpus = engines::both();
    let mut samples = Samples(10);
    // All combinations of phases at one ρ, then all of ρ at one phase, then anything.
    let combinations = || {
        (0..=u16::MAX)
            .map(|k| k.to_be_bytes())
            .map(|[x, y]| [x >> 4, x & 15, y >> 4, y & 15])
    };
    let phases: [Vec<State>; 4] =
        std::array::from_fn(|p| states(combinations().map(|nibbles| 0x80 | nibbles[p])));
    let rhos: [Vec<State>; 4] =
        std::array::from_fn(|p| states(combinations().map(|nibbles| nibbles[p] << 4)));
    let anything: [Vec<State>; 4] = std::array::from_fn(|_| samples.states(3000));
    let odd = samples.unit();
    for points in [phases, rhos, anything] {
        let slices = points.each_ref().map(Vec::as_slice);
        for t in PARAMETERS.into_iter().chain([odd]) {
            let calls = gpus.each_ref().map(|gpu| gpu.interpolate_bezier(slices, t));
            let [cpu, gpu] = calls.map(|call| call.wait().unwrap());
            assert!(cpu == gpu, "devices differ: t = {t}");
            for (row, got) in cpu.iter().enumerate() {
                let layer = |k| oracle::layer_bezier(slices.map(|states| states[row].0[k]), t);
                assert_eq!(got.0, std::array::from_fn(layer), "t = {t}, row {row}");
            }
        }
    }
}

#[test]
fn curves_with_a_t_for_each() {
    for gpu in engines::both() {
        let mut samples = Samples(11);
        for rows in (0..=17).chain([1000]) {
            let points: [Vec<State>; 4] = std::array::from_fn(|_| samples.states(rows));
            let slices = points.each_ref().map(Vec::as_slice);
            let t = samples.units(rows);
            let got = gpu.interpolate_bezier(slices, &t).wait().unwrap();
            let want = (0..rows).map(|row| {
                let layer = |k| oracle::layer_bezier(slices.map(|p| p[row].0[k]), t[row]);
                State(std::array::from_fn(layer))
            });
            assert_eq!(got, want.collect::<Vec<_>>(), "{rows} rows");
        }
    }
}

fn check_distances(gpu: &Gpu, a: &[State], b: &[State]) {
    let straight = gpu.distance(a, b).wait().expect("answered");
    let geodesic = gpu.geodesic_distance(a, b).wait().expect("answered");
    assert_eq!((straight.len(), geodesic.len()), (a.len(), a.len()));
    for (row, (a, b)) in a.iter().zip(b).enumerate() {
        let scale: f64 = a.0.iter().chain(&b.0).copied().map(oracle::magnitude).sum();
        let want = oracle::distance(a.0, b.0);
        let error = (f64::from(straight[row]) - want).abs();
        assert!(
            error <= scale * 0.5_f64.powi(19),
            "{a:?}, {b:?}: off by {error}"
        );
        let want = oracle::geodesic_distance(a.0, b.0);
        let error = (f64::from(geodesic[row]) - want).abs();
        assert!(
            error <= want * 0.5_f64.powi(20),
            "{a:?}, {b:?}: off by {error}"
        );
    }
}

#[test]
fn distances_of_all_pairs_of_layers_and_every_length() {
    let (a, b) = all_pairs();
    let single = |states: &[State]| -> Vec<State> {
        states
            .iter()
            .flat_map(|state| state.0.map(one_layer))
            .collect()
    };
    let mut samples = Samples(12);
    for gpu in engines::both() {
        check_distances(&gpu, &single(&a), &single(&b));
        for rows in (0..=17).chain([3000]) {
            check_distances(&gpu, &samples.states(rows), &samples.states(rows));
        }
    }
}

#[test]
fn distances_that_are_exact() {
    for gpu in engines::both() {
        let some = Samples(13).states(100);
        assert_eq!(gpu.distance(&some, &some).wait().unwrap(), [0.0; 100]);
        assert_eq!(
            gpu.geodesic_distance(&some, &some).wait().unwrap(),
            [0.0; 100]
        );
        let pair = |a: u8, b: u8| ([State([a; 16])], [State([b; 16])]);
        let (a, b) = pair(0x80, 0xb4); // 3 of rho, 4 of theta
        assert_eq!(gpu.geodesic_distance(&a, &b).wait().unwrap(), [5.0 * 16.0]);
        let (a, b) = pair(0x8f, 0x81); // Across 0.
        assert_eq!(gpu.geodesic_distance(&a, &b).wait().unwrap(), [2.0 * 16.0]);
        let (a, b) = pair(0x80, 0x88); // 1 and -1
        assert_eq!(gpu.distance(&a, &b).wait().unwrap(), [2.0 * 16.0]);
        let (a, b) = pair(0x0c, 0xc0); // Null and 2.
        assert_eq!(gpu.distance(&a, &b).wait().unwrap(), [2.0 * 16.0]);
    }
}

/// Up, down, not at all, too far, and where a step begins.
const RATES: [f32; 16] = [
    0.0,
    -0.0,
    0.5,
    0.85,
    0.86,
    1.0,
    -1.0,
    2.5,
    10.0,
    29.1,
    -29.1,
    300.0,
    -1e3,
    1e30,
    f32::INFINITY,
    f32::NEG_INFINITY,
];

#[test]
fn descent_of_every_layer_at_many_rates() {
    let all = states(0..=255);
    let gpus = engines::both();
    let mut samples = Samples(14);
    let random: Vec<f32> = (0..times(500, 3000))
        .map(|_| (samples.unit() - 0.5) * 80.0)
        .collect();
    for rate in RATES.into_iter().chain(random) {
        let [cpu, gpu] = gpus.each_ref().map(|gpu| gpu.descend(&all, rate));
        let (cpu, gpu) = (cpu.wait().unwrap(), gpu.wait().unwrap());
        assert_eq!(cpu, gpu, "devices differ: rate {rate}");
        let want = states((0..=255).map(|layer| oracle::layer_descend(layer, rate)));
        assert_eq!(cpu, want, "rate {rate}");
    }
}

#[test]
fn descent_of_every_length_with_a_rate_for_each() {
    for gpu in engines::both() {
        let mut samples = Samples(15);
        for rows in (0..=17).chain([1000]) {
            let some = samples.states(rows);
            let rates: Vec<f32> = (0..rows).map(|row| RATES[row % 16]).collect();
            let got = gpu.descend(&some, &rates).wait().unwrap();
            for row in 0..rows {
                let layer = |layer| oracle::layer_descend(layer, rates[row]);
                assert_eq!(got[row].0, some[row].0.map(layer), "row {row} of {rows}");
            }
        }
    }
}
