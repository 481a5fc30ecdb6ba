//! Kernels of the program's own, natively: what they compute, with whom they merge, and what is
//! refused.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../engines/mod.rs"]
mod engines;
mod loops;
mod places;
mod refusals;
mod types;
mod vectors;

use engines::{both, both_manual, in_time, manual, open};
use framebatch::{EngineChoice, Error, Gpu, Kernel, KernelDefinition, Number, Value};

const DECAY: &str = "fn element(height: f32, speed: f32) -> f32 {
    return height * exp(-speed * params.dt);
}";

fn decay() -> Kernel {
    let definition = KernelDefinition::new("decay", DECAY).param("dt", 0.0_f32);
    let definition = definition.cpu(|values, params| match params {
        [Number::F32(dt)] => values[0] * (-values[1] * dt).exp(),
        _ => f32::NAN,
    });
    definition.build().unwrap()
}

/// What one call gives that records some values.
fn computed<'a>(
    gpu: &Gpu,
    record: impl FnOnce(&mut framebatch::Batch<'a>) -> Result<Value, Error>,
) -> Result<Vec<f32>, Error> {
    let mut batch = gpu.batch();
    let value = record(&mut batch)?;
    pollster::block_on(batch.execute())?;
    pollster::block_on(batch.read(value))
}

/// Whether both are equal but for some units of the last place.
#[track_caller]
fn assert_near(got: &[f32], want: impl IntoIterator<Item = f64>) {
    let want: Vec<f64> = want.into_iter().collect();
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        let off = (f64::from(*got) - want).abs();
        assert!(off <= 2e-6 * want.abs().max(1.0), "{got} is not {want}");
    }
}

#[test]
fn a_kernel_computes_elements_that_broadcast() {
    in_time(|| {
        let decay = decay();
        for gpu in both() {
            let heights: Vec<f32> = (0..21).map(|i| i as f32 * 0.5 - 3.0).collect();
            let speeds: Vec<f32> = (0..7).map(|i| i as f32 * 0.1).collect();
            let got = computed(&gpu, |batch| {
                let height = batch.upload_shaped(&heights, &[3, 7])?;
                let speed = batch.upload(&speeds);
                batch.apply(&decay, &[height, speed], &[0.25.into()])
            });
            let want =
                (0..21).map(|i| f64::from(heights[i]) * (-f64::from(speeds[i % 7]) * 0.25).exp());
            assert_near(&got.unwrap(), want);
        }
    });
}

#[test]
fn what_is_beside_a_kernel_is_computed_in_the_same_pass() {
    in_time(|| {
        let decay = decay();
        let gpu = open(EngineChoice::Gpu, manual());
        let explained = gpu.explain(|gpu| {
            let mut batch = gpu.batch();
            let x = batch.upload(&[1.0; 64]);
            let y = batch.relu(x).unwrap();
            let y = batch.apply(&decay, &[y, x], &[0.5.into()]).unwrap();
            let y = batch.scale(y, 2.0).unwrap();
            let y = batch.sum(y, framebatch::Axes::ALL).unwrap();
            batch.keep(y).unwrap();
            drop(batch.execute());
        });
        assert_eq!(explained.matches("dispatch").count(), 1, "{explained}");
        assert!(explained.contains("decay("), "{explained}");
    });
}

#[test]
fn calls_of_any_lengths_are_one_dispatch_and_the_same_bits_as_alone() {
    in_time(|| {
        let decay = decay();
        for gpu in both_manual() {
            let inputs: Vec<Vec<f32>> = (1..40)
                .map(|len| (0..len).map(|i| (i * len) as f32 * 0.01).collect())
                .collect();
            let record = |data: &[f32]| {
                let mut batch = gpu.batch();
                let x = batch.upload(data.to_vec());
                let dt = data.len() as f32 * 0.1;
                let y = batch.apply(&decay, &[x, x], &[dt.into()]).unwrap();
                (batch, y)
            };
            let alone: Vec<Vec<f32>> = inputs
                .iter()
                .map(|data| {
                    let (mut batch, y) = record(data);
                    let call = batch.execute();
                    gpu.flush();
                    pollster::block_on(call).unwrap();
                    pollster::block_on(batch.read(y)).unwrap()
                })
                .collect();
            let before = gpu.stats();
            let mut together: Vec<_> = inputs.iter().map(|data| record(data)).collect();
            let calls: Vec<_> = together
                .iter_mut()
                .map(|(batch, _)| batch.execute())
                .collect();
            gpu.flush();
            calls
                .into_iter()
                .for_each(|call| pollster::block_on(call).unwrap());
            assert_eq!(gpu.stats().batches - before.batches, 1);
            for ((batch, y), alone) in together.iter().zip(alone) {
                let got = pollster::block_on(batch.read(*y)).unwrap();
                let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&got), bits(&alone));
            }
        }
    });
}

#[test]
fn params_of_all_types_are_what_was_given() {
    let definition = KernelDefinition::new(
        "mixed",
        "fn element(x: f32) -> f32 {
            return select(x * params.scale, f32(params.shift), params.bits == 0xffff0000u);
        }",
    );
    let kernel = definition
        .param("scale", 0.0_f32)
        .param("shift", 0)
        .param("bits", 0_u32)
        .cpu(|values, params| match params {
            [_, Number::I32(shift), Number::U32(0xffff_0000)] => *shift as f32,
            [Number::F32(scale), ..] => values[0] * scale,
            _ => f32::NAN,
        });
    let kernel = kernel.build().unwrap();
    in_time(move || {
        for gpu in both() {
            for (bits, want) in [(0xffff_0000_u32, -7.0), (1, 6.0)] {
                let got = computed(&gpu, |batch| {
                    let x = batch.upload(&[2.0]);
                    batch.apply(&kernel, &[x], &[3.0.into(), (-7).into(), bits.into()])
                });
                assert_eq!(got.unwrap(), [want]);
            }
        }
    });
}

#[test]
fn helpers_structs_and_constants_are_the_kernels_own() {
    // Two kernels whose helpers have the same names, and names that kernels of ours have.
    let code = |factor: &str| {
        format!(
            "/* A comment /* in a comment */ with a # in it. */
            const segments = {factor}; // A name of ours.
            struct Pair {{ output: f32, params: f32 }}
            alias F = Pair;
            fn relu(pair: F) -> f32 {{ let in0 = pair.output + pair.params; return in0 * segments; }}
            fn element(x: f32) -> f32 {{ let distance = F(x, 1.0); return relu(distance); }}"
        )
    };
    let kernel = |name, factor: f32| {
        let definition = KernelDefinition::new(name, code(&format!("{factor:?}")));
        definition
            .cpu(move |values, _| (values[0] + 1.0) * factor)
            .build()
            .unwrap()
    };
    let (twice, thrice) = (kernel("twice", 2.0), kernel("thrice", 3.0));
    in_time(move || {
        for gpu in both() {
            let got = computed(&gpu, |batch| {
                let x = batch.upload(&[-5.0, 1.0]);
                let x = batch.relu(x)?;
                let x = batch.apply(&twice, &[x], &[])?;
                batch.apply(&thrice, &[x], &[])
            });
            assert_eq!(got.unwrap(), [9.0, 15.0]);
        }
    });
}

#[test]
fn results_of_kernels_are_stored_in_tensors() {
    in_time(|| {
        let decay = decay();
        for gpu in both() {
            let state = gpu.tensor(&[8.0, 4.0], &[2]).unwrap();
            for _ in 0..2 {
                let mut batch = gpu.batch();
                let x = batch.tensor(&state).unwrap();
                let speed = batch.upload(&[std::f32::consts::LN_2]);
                let y = batch.apply(&decay, &[x, speed], &[1.0.into()]).unwrap();
                batch.compute_into(y, &state).unwrap();
                pollster::block_on(batch.execute()).unwrap();
            }
            let got = computed(&gpu, |batch| {
                let x = batch.tensor(&state)?;
                batch.scale(x, 1.0)
            });
            assert_near(&got.unwrap(), [2.0, 1.0]);
        }
    });
}

#[test]
fn inputs_of_a_kernel_may_all_be_gathered() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let code = format!(
        "fn element({}: f32) -> f32 {{ return {}; }}",
        names.join(": f32, "),
        names.join(" + ")
    );
    let sum = KernelDefinition::new("sum_of_six", code).cpu(|values, _| values.iter().sum());
    let sum = sum.build().unwrap();
    in_time(move || {
        for gpu in both() {
            let tables: Vec<_> = (0..6_u8)
                .map(|k| {
                    let data = [1.0, 2.0, 3.0, 4.0].map(|x| x * 10_f32.powi(k.into()));
                    gpu.tensor(&data, &[4]).unwrap()
                })
                .collect();
            // The first `picked` inputs are gathered, by indexes of their own or by shared ones.
            for (picked, own) in (0..=6).flat_map(|picked| [(picked, false), (picked, true)]) {
                let got = computed(&gpu, |batch| {
                    let shared = batch.upload_indexes(&[3, 0, 2, 1], &[4])?;
                    let mut inputs = Vec::new();
                    for (at, table) in tables.iter().enumerate() {
                        let x = batch.tensor(table)?;
                        let indexes = match own {
                            true => batch.upload_indexes(&[3, 0, 2, 1], &[4])?,
                            false => shared,
                        };
                        inputs.push(match at < picked {
                            true => batch.gather(x, indexes, 0)?,
                            false => x,
                        });
                    }
                    batch.apply(&sum, &inputs, &[])
                });
                let digits = |gathered: f64, plain: f64| {
                    let digit = |at: usize| if at < picked { gathered } else { plain };
                    (0..6).map(|at| digit(at) * 10_f64.powi(at as i32)).sum()
                };
                let want = [(4.0, 1.0), (1.0, 2.0), (3.0, 3.0), (2.0, 4.0)];
                assert_near(&got.unwrap(), want.map(|(a, b)| digits(a, b)));
            }
        }
    });
}

fn ramp(count: usize, step: f32) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * step).sin()).collect()
}
