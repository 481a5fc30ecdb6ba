//! Every op on WebGPU and on the CPU in WebAssembly against the oracle.

use framebatch::graph::{Measure, Mode, Timing};
use framebatch::ops;
use framebatch::program::RowOp;
use wasm_bindgen_test::wasm_bindgen_test;

use crate::oracle;
use crate::samples::Samples;
use crate::session::{Asked, ask, devices};

const TIMES: [f32; 9] = [0.0, 1.0, 0.5, 0.25, 0.1, 0.999_999, 1e-6, -0.5, 1.75];

#[wasm_bindgen_test]
async fn lerp_is_within_four_ulp_of_its_terms() {
    let mut devices = devices().await;
    let mut samples = Samples(1);
    for count in [1, 2, 3, 5, 17, 100, 4097] {
        let (a, b) = (samples.floats(count), samples.floats(count));
        for t in TIMES {
            for device in &mut devices {
                let op = ops::lerp(1, Timing::Call).expect("a width of 1");
                let operands = [words(&a), words(&b)];
                let asked = Asked {
                    op: &op,
                    operands: &operands,
                    rows: count,
                    t,
                };
                let result = ask(device, &asked).await;
                for ((a, b), got) in a.iter().zip(&b).zip(floats(&result)) {
                    let error = (f64::from(*got) - oracle::lerp(*a, *b, t)).abs();
                    let bound = 4.0 * f64::from(f32::EPSILON) * oracle::lerp_scale(*a, *b, t);
                    assert!(error <= bound, "lerp({a}, {b}, {t}) = {got}");
                }
            }
        }
    }
}

#[wasm_bindgen_test]
async fn rows_of_any_width_take_their_own_t() {
    let mut devices = devices().await;
    let mut samples = Samples(2);
    for (width, rows) in [(1, 7), (3, 5), (4, 9), (7, 11), (16, 300)] {
        let (a, b) = (samples.floats(rows * width), samples.floats(rows * width));
        let t = samples.units(rows);
        for device in &mut devices {
            let op = ops::lerp(width as u32, Timing::Row).expect("a positive width");
            let operands = [words(&a), words(&b), words(&t)];
            let asked = Asked {
                op: &op,
                operands: &operands,
                rows,
                t: 0.0,
            };
            let result = ask(device, &asked).await;
            for (i, got) in floats(&result).iter().enumerate() {
                let (a, b, t) = (a[i], b[i], t[i / width]);
                let error = (f64::from(*got) - oracle::lerp(a, b, t)).abs();
                let bound = 4.0 * f64::from(f32::EPSILON) * oracle::lerp_scale(a, b, t);
                assert!(
                    error <= bound,
                    "width {width}, float {i}: lerp({a}, {b}, {t}) = {got}"
                );
            }
        }
    }
}

#[wasm_bindgen_test]
async fn slerp_stays_within_its_bound() {
    check_quaternions(&ops::slerp(Timing::Call), oracle::slerp).await;
}

#[wasm_bindgen_test]
async fn nlerp_stays_within_its_bound() {
    check_quaternions(&ops::nlerp(Timing::Call), oracle::nlerp).await;
}

async fn check_quaternions(
    op: &RowOp,
    expected: fn(oracle::Quaternion, oracle::Quaternion, f32) -> [f64; 4],
) {
    let mut devices = devices().await;
    let mut samples = Samples(3);
    let count = 2000;
    let (a, b) = (samples.quaternions(count), samples.quaternions(count));
    for t in [0.0, 1.0, 0.5, 0.3, 0.9999] {
        for device in &mut devices {
            let operands = [words(&a), words(&b)];
            let result = ask(
                device,
                &Asked {
                    op,
                    operands: &operands,
                    rows: count,
                    t,
                },
            )
            .await;
            for (row, got) in floats(&result).as_chunks::<4>().0.iter().enumerate() {
                let (a, b) = (a.as_chunks::<4>().0[row], b.as_chunks::<4>().0[row]);
                if oracle::cosine(a, b).abs() < 1e-6 {
                    continue; // Rounding decides which way around is the shorter one.
                }
                for (got, expected) in got.iter().zip(expected(a, b, t)) {
                    let error = (f64::from(*got) - expected).abs();
                    assert!(error <= 5e-7, "({a:?}, {b:?}, {t}): {error:e}");
                }
            }
        }
    }
}

#[wasm_bindgen_test]
async fn states_agree_to_the_bit_with_each_other_and_the_definition() {
    let mut devices = devices().await;
    // All pairs of layers: 256 x 256 bytes a side.
    let a: Vec<u32> = (0..65536_u32 / 4)
        .map(|i| u32::from_ne_bytes([(i / 64) as u8; 4]))
        .collect();
    let b: Vec<u32> = (0..65536_u32 / 4)
        .map(|i| u32::from_ne_bytes(std::array::from_fn(|k| ((i % 64) * 4) as u8 + k as u8)))
        .collect();
    let modes = [
        (Mode::Lerp, oracle::layer_lerp as fn(u8, u8, f32) -> u8),
        (Mode::Slerp, oracle::layer_slerp),
    ];
    for (mode, definition) in modes {
        for t in TIMES {
            for device in &mut devices {
                let op = ops::interpolate(mode, Timing::Call);
                let asked = Asked {
                    op: &op,
                    operands: &[&a, &b],
                    rows: 4096,
                    t,
                };
                let result = ask(device, &asked).await;
                let (a, b, got) = (bytes(&a), bytes(&b), bytes(&result));
                let wrong = (0..65536).find(|i| got[*i] != definition(a[*i], b[*i], t));
                assert_eq!(wrong, None, "{mode:?}, t = {t}");
            }
        }
    }
}

#[wasm_bindgen_test]
async fn gradients_are_the_rounded_derivatives() {
    let mut devices = devices().await;
    let states: Vec<u32> = (0..64_u32)
        .map(|i| u32::from_ne_bytes(std::array::from_fn(|k| (i * 4) as u8 + k as u8)))
        .collect();
    for device in &mut devices {
        let op = ops::gradients();
        let result = ask(
            device,
            &Asked {
                op: &op,
                operands: &[&states],
                rows: 16,
                t: 0.0,
            },
        )
        .await;
        for (layer, got) in floats(&result).as_chunks::<2>().0.iter().enumerate() {
            assert_eq!(*got, oracle::gradient(layer as u8), "layer {layer:#x}");
        }
    }
}

#[wasm_bindgen_test]
async fn curves_of_floats_stay_within_their_bound() {
    let mut devices = devices().await;
    let mut samples = Samples(4);
    let (width, rows) = (3, 301);
    let points: [Vec<f32>; 4] = std::array::from_fn(|_| samples.floats(rows * width));
    let t = samples.units(rows);
    for device in &mut devices {
        let op = ops::bezier(width as u32, Timing::Row).expect("a positive width");
        let [a, b, c, d] = points.each_ref().map(|points| words(points));
        let asked = Asked {
            op: &op,
            operands: &[a, b, c, d, words(&t)],
            rows,
            t: 0.0,
        };
        for (i, got) in floats(&ask(device, &asked).await).iter().enumerate() {
            let (points, t) = (points.each_ref().map(|points| points[i]), t[i / width]);
            let error = (f64::from(*got) - oracle::bezier(points, t)).abs();
            let bound = 12.0 / 16_777_216.0 * oracle::bezier_scale(points, t);
            assert!(error <= bound, "bezier({points:?}, {t}) = {got}");
        }
    }
}

/// A structure, its operands, its t, and each byte of the result.
type Motion<'a> = (RowOp, usize, f32, &'a dyn Fn(usize) -> u8);

/// States on curves, in sequences and after a descent: bytes by the definition.
#[wasm_bindgen_test]
async fn states_move_by_the_definition() {
    let mut devices = devices().await;
    let mut samples = Samples(5);
    let rows = 300;
    let states: [Vec<u8>; 4] = std::array::from_fn(|_| {
        let states = samples.states(rows);
        states.iter().flat_map(|state| state.0).collect()
    });
    let words: [Vec<u32>; 4] = states.each_ref().map(|layers| {
        let (words, _) = layers.as_chunks::<4>();
        words.iter().copied().map(u32::from_ne_bytes).collect()
    });
    let operands = words.each_ref().map(Vec::as_slice);
    let curve = |i: usize| oracle::layer_bezier(states.each_ref().map(|layers| layers[i]), 0.4321);
    let step = |i: usize| {
        let (row, k, layer) = (i / 112, i / 16 % 7, i % 16);
        let (a, b) = (states[0][row * 16 + layer], states[1][row * 16 + layer]);
        oracle::layer_slerp(a, b, oracle::step(k, 7))
    };
    let down = |i: usize| oracle::layer_descend(states[0][i], 2.75);
    let sequence = ops::sequence(7, Mode::Slerp).expect("seven steps");
    let cases: [Motion<'_>; 3] = [
        (ops::interpolate_bezier(Timing::Call), 4, 0.4321, &curve),
        (sequence, 2, 0.0, &step),
        (ops::descend(Timing::Call), 1, 2.75, &down),
    ];
    for device in &mut devices {
        for (op, count, t, definition) in &cases {
            let asked = Asked {
                op,
                operands: &operands[..*count],
                rows,
                t: *t,
            };
            let result = ask(device, &asked).await;
            let got = bytes(&result);
            let wrong = (0..got.len()).find(|i| got[*i] != definition(*i));
            assert_eq!(wrong, None, "{op:?}");
        }
    }
}

#[wasm_bindgen_test]
async fn distances_stay_within_their_bounds() {
    let mut devices = devices().await;
    let mut samples = Samples(6);
    let (a, b) = (samples.states(500), samples.states(500));
    let operands: [&[u32]; 2] = [bytemuck::cast_slice(&a), bytemuck::cast_slice(&b)];
    for device in &mut devices {
        for measure in [Measure::Straight, Measure::Geodesic] {
            let asked = Asked {
                op: &ops::distance(measure),
                operands: &operands,
                rows: 500,
                t: 0.0,
            };
            let result = ask(device, &asked).await;
            for ((a, b), got) in a.iter().zip(&b).zip(floats(&result)) {
                let scale: f64 = a.0.iter().chain(&b.0).copied().map(oracle::magnitude).sum();
                let (want, bound) = match measure {
                    Measure::Straight => (oracle::distance(a.0, b.0), scale / 524_288.0),
                    Measure::Geodesic => {
                        let want = oracle::geodesic_distance(a.0, b.0);
                        (want, want / 1_048_576.0)
                    }
                };
                assert!(
                    (f64::from(*got) - want).abs() <= bound,
                    "{measure:?}: {got}, {want}"
                );
            }
        }
    }
}

pub(crate) fn words(floats: &[f32]) -> &[u32] {
    bytemuck::cast_slice(floats)
}

fn floats(words: &[u32]) -> &[f32] {
    bytemuck::cast_slice(words)
}

fn bytes(words: &[u32]) -> &[u8] {
    bytemuck::cast_slice(words)
}
