//! Kernels of the program's own, natively: what they compute, with whom they merge, and what is
//! refused.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;

use engines::{both, both_manual, in_time, manual, open};
use framebatch::{Code, EngineChoice, Error, Gpu, Kernel, KernelDefinition, Number, Value};
use proptest::prelude::*;

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

/// How many steps a number takes to 1, which 0 never reaches.
fn collatz() -> Kernel {
    let kernel = KernelDefinition::new(
        "collatz",
        "fn steps(start: u32) -> f32 {
            var n = start;
            var count = 0.0;
            loop {
                if n == 1u { return count; }
                n = select(3u * n + 1u, n / 2u, n % 2u == 0u);
                count += 1.0;
            }
        }
        fn element(x: f32) -> f32 { return steps(u32(x)); }",
    );
    let kernel = kernel.cpu(|values, _| {
        let (mut n, mut count) = (values[0] as u32, 0.0);
        while n > 1 {
            n = if n.is_multiple_of(2) {
                n / 2
            } else {
                3 * n + 1
            };
            count += 1.0;
        }
        count
    });
    kernel.max_passes(1000).build().unwrap()
}

#[test]
fn a_loop_without_an_end_fails_its_own_call_alone() {
    let collatz = collatz();
    in_time(move || {
        let gpu = open(EngineChoice::Gpu, manual());
        let record = |data: &[f32], which: usize| {
            let mut batch = gpu.batch();
            let x = batch.upload(data.to_vec());
            let y = batch.apply(&collatz, &[x], &[]).unwrap();
            let y = match which {
                0 => y,
                1 => batch.scale(y, 2.0).unwrap(),
                _ => batch.sum(y, framebatch::Axes::ALL).unwrap(),
            };
            (batch, y)
        };
        for which in 0..3 {
            let good = [1.0, 6.0, 27.0, 7.0];
            let bad = [1.0, 6.0, 0.0, 27.0, 7.0];
            let mut batches: Vec<_> = [&good[..], &bad, &good, &[0.0], &[27.0]]
                .map(|data| record(data, which))
                .into();
            let other = gpu.lerp(&[0.0], &[1.0], 0.5);
            let calls: Vec<_> = batches
                .iter_mut()
                .map(|(batch, _)| batch.execute())
                .collect();
            gpu.flush();
            let outcomes: Vec<_> = calls.into_iter().map(pollster::block_on).collect();
            for (at, outcome) in outcomes.iter().enumerate() {
                if at == 1 || at == 3 {
                    let error = outcome.as_ref().unwrap_err();
                    assert_eq!(error.code(), Code::LimitExceeded);
                    assert!(
                        error.to_string().starts_with("collatz: the loops"),
                        "{error}"
                    );
                    continue;
                }
                outcome.as_ref().unwrap();
                let (batch, y) = &batches[at];
                let got = pollster::block_on(batch.read(*y)).unwrap();
                let steps: Vec<f32> = if at == 4 {
                    vec![111.0]
                } else {
                    vec![0.0, 8.0, 111.0, 16.0]
                };
                let want: Vec<f32> = match which {
                    0 => steps,
                    1 => steps.iter().map(|x| x * 2.0).collect(),
                    _ => vec![steps.iter().sum()],
                };
                assert_eq!(got, want);
            }
            assert_eq!(pollster::block_on(other).unwrap(), [0.5]);
        }
    });
}

#[test]
fn what_is_computed_into_a_tensor_is_nan_where_loops_were_stopped() {
    let collatz = collatz();
    in_time(move || {
        let gpu = open(EngineChoice::Gpu, manual());
        let state = gpu.tensor(&[1.0, 0.0, 6.0], &[3]).unwrap();
        let mut batch = gpu.batch();
        let x = batch.tensor(&state).unwrap();
        let y = batch.apply(&collatz, &[x], &[]).unwrap();
        batch.compute_into(y, &state).unwrap();
        let call = batch.execute();
        gpu.flush();
        pollster::block_on(call).unwrap();
        let mut batch = gpu.batch();
        let x = batch.tensor(&state).unwrap();
        batch.keep(x).unwrap();
        let call = batch.execute();
        gpu.flush();
        pollster::block_on(call).unwrap();
        let got = pollster::block_on(batch.read(x)).unwrap();
        assert!(got[1].is_nan());
        assert_eq!([got[0], got[2]], [0.0, 8.0]);
    });
}

#[test]
fn loops_that_end_are_what_they_are_on_both_engines() {
    let collatz = collatz();
    in_time(move || {
        let look = KernelDefinition::new(
            "look",
            "fn at(i: i32) -> f32 {
                var sum = 0.0;
                for (var k = 0; k < x_len(); k++) { sum += x(k) * params.k; }
                return sum + f32(i);
            }",
        );
        let look = look
            .input("x")
            .param("k", 0.0_f32)
            .cpu_at(|i, inputs, params| {
                let Number::F32(k) = params[0] else {
                    return f32::NAN;
                };
                let sum: f32 = (0..inputs[0].len()).map(|at| inputs[0].get(at) * k).sum();
                sum + i as f32
            });
        let look = look.build().unwrap();
        for gpu in both() {
            let got = computed(&gpu, |batch| {
                let x = batch.upload(&[3.0, 7.0, 6.0]);
                let y = batch.apply(&collatz, &[x], &[])?;
                let y = batch.apply(&look, &[y], &[0.5.into()])?;
                batch.scale(y, 2.0)
            });
            // 7, 16 and 8 steps.
            assert_eq!(got.unwrap(), [31.0, 33.0, 35.0]);
        }
    });
}

#[test]
fn code_that_is_no_body_is_refused_by_its_place() {
    for (code, place, said) in [
        (
            "fn element(x: f32) -> f32 { return x; }\n@compute fn main() {}",
            "2:1",
            "attributes",
        ),
        (
            "@group(0) @binding(0) var<storage> a: array<f32>;",
            "1:1",
            "attributes",
        ),
        (
            "enable f16;\nfn element(x: f32) -> f32 { return x; }",
            "1:1",
            "directives",
        ),
        ("var<workgroup> a: f32;", "1:1", "variables outside"),
        (
            "fn element(x: f32) -> f32 {\n  workgroupBarrier();\n  return x; }",
            "2:3",
            "workgroupBarrier",
        ),
        (
            "fn f(p: ptr<storage, f32>) {}",
            "1:9",
            "memory of the function itself",
        ),
        (
            "fn max(x: f32) -> f32 { return x; }",
            "1:4",
            "a word of WGSL",
        ),
        (
            "fn element(x: f32) -> f32 { return params.dt; }",
            "1:43",
            "there is no param `dt`",
        ),
        (
            "fn elements(x: f32) -> f32 { return x; }",
            "1:1",
            "no function `element`",
        ),
        (
            "fn element(x: f32) -> vec2f { return vec2f(x); }",
            "1:4",
            "must give an f32",
        ),
        (
            "fn element(x: texture) -> f32 { return 0.0; }",
            "1:12",
            "values of type f32",
        ),
        (
            "fn element() -> f32 { return 0.0; }",
            "1:4",
            "1 to 6 values",
        ),
        (
            "fn element(x: f32) -> f32 { return #x; }",
            "1:36",
            "no character of WGSL",
        ),
    ] {
        let error = KernelDefinition::new("mine", code).build().unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        let message = error.to_string();
        assert!(message.starts_with(&format!("mine:{place}: ")), "{message}");
        assert!(message.contains(said), "{message}");
    }
    let error = KernelDefinition::new("a b", DECAY).build().unwrap_err();
    assert!(error.to_string().contains("got 'a b'"), "{error}");
    let twice = KernelDefinition::new("mine", DECAY)
        .param("dt", 0.0)
        .param("dt", 0.0);
    assert!(twice.build().is_err());
}

#[test]
fn what_a_compiler_refuses_fails_its_own_calls_alone() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, manual());
        let code = "fn half(x: f32) -> f32 {\n    return x * 0.5;\n}\nfn element(x: f32) -> f32 { for (;;) { break; }\n    let y = half(x); return y + segments[0]; }";
        let kernel = KernelDefinition::new("wrong", code).build().unwrap();
        let mut batch = gpu.batch();
        let x = batch.upload(&[1.0]);
        batch.apply(&kernel, &[x], &[]).unwrap();
        let other = gpu.lerp(&[0.0], &[1.0], 0.5);
        let call = batch.execute();
        gpu.flush();
        let error = pollster::block_on(call).unwrap_err();
        assert_eq!(error.code(), Code::Shader);
        let message = error.to_string();
        assert!(message.contains("wrong:5:33: "), "{message}");
        assert!(
            message.contains("let y = half(x); return y + segments[0]; }"),
            "{message}"
        );
        assert!(!message.contains("k0_"), "{message}");
        assert_eq!(pollster::block_on(other).unwrap(), [0.5]);
    });
}

#[test]
fn wrong_calls_are_refused_and_say_what_is_wanted() {
    let decay = decay();
    let gpu = open(EngineChoice::Cpu, manual());
    let mut batch = gpu.batch();
    let x = batch.upload(&[1.0]);
    let y = batch.upload(&[1.0, 2.0]);
    let z = batch.upload(&[1.0, 2.0, 3.0]);
    let error = batch.apply(&decay, &[x], &[0.5.into()]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("decay takes 2 values (height, speed), not 1"),
        "{error}"
    );
    let error = batch.apply(&decay, &[x, x], &[1.into()]).unwrap_err();
    assert!(
        error.to_string().contains("(dt: f32), got [I32(1)]"),
        "{error}"
    );
    let error = batch.apply(&decay, &[y, z], &[0.5.into()]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("decay: shapes [2] and [3] do not broadcast"),
        "{error}"
    );
}

#[test]
fn on_the_cpu_a_kernel_without_a_function_fails_and_a_function_that_panics_fails_its_call() {
    let gpu = open(EngineChoice::Cpu, manual());
    let alone = KernelDefinition::new("alone", "fn element(x: f32) -> f32 { return x; }");
    let alone = alone.build().unwrap();
    let panics = KernelDefinition::new("panics", "fn element(x: f32) -> f32 { return x + 1.0; }");
    let panics = panics.cpu(|values, _| {
        assert!(values[0] < 2.0, "as the test wants it");
        values[0] + 1.0
    });
    let panics = panics.build().unwrap();
    let mut batches: Vec<_> = [
        (&alone, 1.0),
        (&panics, 1.0),
        (&panics, 3.0),
        (&panics, 0.0),
    ]
    .map(|(kernel, x)| {
        let mut batch = gpu.batch();
        let x = batch.upload(vec![x]);
        let y = batch.apply(kernel, &[x], &[]).unwrap();
        (batch, y)
    })
    .into();
    let calls: Vec<_> = batches
        .iter_mut()
        .map(|(batch, _)| batch.execute())
        .collect();
    gpu.flush();
    let outcomes: Vec<_> = calls.into_iter().map(pollster::block_on).collect();
    assert_eq!(outcomes[0].as_ref().unwrap_err().code(), Code::Unsupported);
    assert_eq!(outcomes[2].as_ref().unwrap_err().code(), Code::InvalidInput);
    for (at, want) in [(1, 2.0), (3, 1.0)] {
        outcomes[at].as_ref().unwrap();
        let (batch, y) = &batches[at];
        assert_eq!(pollster::block_on(batch.read(*y)).unwrap(), [want]);
    }
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

/// A smoothing of rows, and of what lies far outside.
fn smooth() -> Kernel {
    let definition = KernelDefinition::new(
        "smooth",
        "fn at(i: i32) -> f32 {
            return (x(i - 1) + x(i + 1)) * 0.5 + params.k * more_at(i / x_cols(), i * 100 - 7);
        }",
    );
    let definition = definition.input("x").input("more").param("k", 0.0_f32);
    let definition = definition.cpu_at(|i, inputs, params| {
        let [x, more] = inputs else { return f32::NAN };
        let [Number::F32(k)] = params else {
            return f32::NAN;
        };
        (x.get(i - 1) + x.get(i + 1)) * 0.5 + k * more.at(i / x.columns(), i * 100 - 7)
    });
    definition.build().unwrap()
}

/// What [`smooth`] gives, in double precision.
fn smoothed(x: &[f32], columns: usize, more: &[f32], of_more: usize, k: f64) -> Vec<f64> {
    let at =
        |values: &[f32], i: i64| f64::from(values[i.clamp(0, values.len() as i64 - 1) as usize]);
    let rows = more.len() / of_more;
    let each = (0..x.len() as i64).map(|i| {
        let row = (i / columns as i64).clamp(0, rows as i64 - 1);
        let column = (i * 100 - 7).clamp(0, of_more as i64 - 1);
        let far = at(more, row * of_more as i64 + column);
        (at(x, i - 1) + at(x, i + 1)) * 0.5 + k * far
    });
    each.collect()
}

fn ramp(count: usize, step: f32) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * step).sin()).collect()
}

#[test]
fn a_kernel_of_a_place_looks_anywhere_in_its_own_data() {
    in_time(|| {
        let smooth = smooth();
        for gpu in both_manual() {
            // Many calls of one batch, so that neighbors lie close by.
            let cases: Vec<_> = (1..30)
                .map(|n| (n, ramp(n * 3, 0.7), ramp(n + 4, 1.3), n as f32 * 0.1))
                .collect();
            let mut batches: Vec<_> = cases
                .iter()
                .map(|(n, x, more, k)| {
                    let mut batch = gpu.batch();
                    let x = batch.upload_shaped(x.clone(), &[3, *n as u32]).unwrap();
                    let more = batch.upload(more.clone());
                    let y = batch.apply(&smooth, &[x, more], &[(*k).into()]).unwrap();
                    (batch, y)
                })
                .collect();
            let before = gpu.stats();
            let calls: Vec<_> = batches
                .iter_mut()
                .map(|(batch, _)| batch.execute())
                .collect();
            gpu.flush();
            calls
                .into_iter()
                .for_each(|call| pollster::block_on(call).unwrap());
            assert_eq!(gpu.stats().batches - before.batches, 1);
            for ((batch, y), (n, x, more, k)) in batches.iter().zip(&cases) {
                let got = pollster::block_on(batch.read(*y)).unwrap();
                assert_near(&got, smoothed(x, *n, more, more.len(), f64::from(*k)));
            }
        }
    });
}

#[test]
fn what_a_kernel_looks_at_may_be_computed_moved_packed_or_given_twice() {
    in_time(|| {
        let smooth = smooth();
        for gpu in both() {
            let data = ramp(12, 0.9);
            let halves: Vec<f32> = (0..12).map(|i| i as f32 * 0.25).collect();
            let packed = gpu.tensor_as(&halves, &[12], framebatch::Storage::F16);
            let packed = packed.unwrap();
            let run = |which: usize| {
                computed(&gpu, |batch| {
                    let x = batch.upload_shaped(data.clone(), &[3, 4])?;
                    let [x, more] = match which {
                        0 => [x, x],
                        1 => [batch.scale(x, 2.0)?, x],
                        2 => [batch.transpose(x, &[1, 0])?, x],
                        3 => {
                            let flat = batch.reshape(x, &[6, 2])?;
                            [flat, batch.sum(x, framebatch::Axes::of(&[0]))?]
                        }
                        _ => [x, batch.tensor(&packed)?],
                    };
                    let y = batch.apply(&smooth, &[x, more], &[1.0.into()])?;
                    batch.relu(y)
                })
                .unwrap()
            };
            let relu = |values: Vec<f64>| values.into_iter().map(|x| x.max(0.0));
            let doubled: Vec<f32> = data.iter().map(|x| 2.0 * x).collect();
            let turned: Vec<f32> = (0..12).map(|i| data[i % 3 * 4 + i / 3]).collect();
            let sums: Vec<f32> = (0..4)
                .map(|i| data[i] + data[i + 4] + data[i + 8])
                .collect();
            assert_near(&run(0), relu(smoothed(&data, 4, &data, 4, 1.0)));
            assert_near(&run(1), relu(smoothed(&doubled, 4, &data, 4, 1.0)));
            assert_near(&run(2), relu(smoothed(&turned, 3, &data, 4, 1.0)));
            assert_near(&run(3), relu(smoothed(&data, 2, &sums, 4, 1.0)));
            assert_near(&run(4), relu(smoothed(&data, 4, &halves, 12, 1.0)));
        }
    });
}

#[test]
fn a_step_of_a_simulation_looks_at_what_it_replaces() {
    in_time(|| {
        let code = "fn at(i: i32) -> f32 { return x(i - 1) + x(i + 1); }";
        let step = KernelDefinition::new("step", code).input("x");
        let step = step
            .cpu_at(|i, x, _| x[0].get(i - 1) + x[0].get(i + 1))
            .build()
            .unwrap();
        for gpu in both() {
            for count in [5, 40_000] {
                let mut want: Vec<f64> = (0..count).map(|i| f64::from(i % 7)).collect();
                let data: Vec<f32> = want.iter().map(|x| *x as f32).collect();
                let state = gpu.tensor(&data, &[count as u32]).unwrap();
                for _ in 0..3 {
                    let mut batch = gpu.batch();
                    let x = batch.tensor(&state).unwrap();
                    let y = batch.apply(&step, &[x], &[]).unwrap();
                    batch.compute_into(y, &state).unwrap();
                    pollster::block_on(batch.execute()).unwrap();
                    let at = |i: i64| want[i.clamp(0, i64::from(count) - 1) as usize];
                    want = (0..i64::from(count))
                        .map(|i| at(i - 1) + at(i + 1))
                        .collect();
                }
                let got = computed(&gpu, |batch| {
                    let x = batch.tensor(&state)?;
                    batch.scale(x, 1.0)
                });
                assert_near(&got.unwrap(), want);
            }
        }
    });
}

#[test]
fn definitions_of_places_are_checked() {
    let code = "fn at(i: i32) -> f32 { return x(i); }";
    let definition = || KernelDefinition::new("mine", code);
    for (definition, said) in [
        (definition(), "looks at 1 to 6 inputs, got 0"),
        (definition().input("max"), "got 'max'"),
        (definition().input("x").input("x"), "got 'x'"),
        (definition().input("x").input("x_at"), "got 'x'"),
        (definition().input("params"), "got 'params'"),
        (definition().input("x").param("loop", 0.0), "got 'loop'"),
        (definition().input("x").cpu(|_, _| 0.0), "`cpu_at` for `at`"),
        (
            KernelDefinition::new("mine", "fn element(x: f32) -> f32 { return x; }").input("x"),
            "named by its parameters",
        ),
    ] {
        let message = definition.build().unwrap_err().to_string();
        assert!(message.contains(said), "{message}");
    }
    let kernel = definition().input("x").build().unwrap();
    let gpu = open(EngineChoice::Cpu, manual());
    let mut batch = gpu.batch();
    let none = batch.upload(&[]);
    // The shape is that of the first input.
    assert!(batch.apply(&kernel, &[none], &[]).is_ok());
    let two = KernelDefinition::new("two", code)
        .input("x")
        .input("y")
        .build()
        .unwrap();
    let x = batch.upload(&[1.0]);
    let error = batch.apply(&two, &[x, none], &[]).unwrap_err().to_string();
    assert!(error.contains("holds nothing"), "{error}");
}

/// An expression in WGSL, and as double precision has it.
#[derive(Clone, Debug)]
enum Expr {
    Value(usize),
    Number(f32),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Call(&'static str, Box<Expr>),
}

impl Expr {
    fn wgsl(&self) -> String {
        match self {
            Expr::Value(at) => format!("x{at}"),
            Expr::Number(number) => format!("f32({number:?})"),
            Expr::Binary(sign, a, b) => format!("({} {sign} {})", a.wgsl(), b.wgsl()),
            Expr::Call(function, of) => format!("{function}({})", of.wgsl()),
        }
    }

    /// The value, and how large the numbers on the way were.
    fn value(&self, values: &[f64]) -> (f64, f64) {
        match self {
            Expr::Value(at) => (values[*at], values[*at].abs()),
            Expr::Number(number) => (f64::from(*number), f64::from(number.abs())),
            Expr::Binary(sign, a, b) => {
                let ((a, of_a), (b, of_b)) = (a.value(values), b.value(values));
                match *sign {
                    "+" => (a + b, of_a + of_b),
                    "-" => (a - b, of_a + of_b),
                    _ => (a * b, of_a * of_b),
                }
            }
            Expr::Call(function, of) => {
                let (x, size) = of.value(values);
                match *function {
                    "abs" => (x.abs(), size),
                    _ => (x.clamp(-1.0, 1.0), size),
                }
            }
        }
    }
}

fn expressions() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        (0_usize..3).prop_map(Expr::Value),
        (-4.0_f32..4.0).prop_map(Expr::Number),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        prop_oneof![
            (
                prop_oneof![Just("+"), Just("-"), Just("*")],
                inner.clone(),
                inner.clone()
            )
                .prop_map(|(sign, a, b)| Expr::Binary(sign, a.into(), b.into())),
            (prop_oneof![Just("abs"), Just("own")], inner)
                .prop_map(|(function, of)| Expr::Call(function, of.into())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_bodies_of_places_are_what_double_precision_has(
        expr in expressions(),
        data in prop::collection::vec(-3.0_f32..3.0, 1..40),
        steps in [-50_i64..50, -3..3, -1..2],
    ) {
        let looks: String = steps
            .iter()
            .enumerate()
            .map(|(at, step)| format!("let x{at} = data(i + {step});\n"))
            .collect();
        let code = format!(
            "fn own(x: f32) -> f32 {{ return clamp(x, -1.0, 1.0); }}
            fn at(i: i32) -> f32 {{\n{looks}return {} + 0.0 * x0; }}",
            expr.wgsl()
        );
        let own = expr.clone();
        let kernel = KernelDefinition::new("random", code).input("data").cpu_at(move |i, data, _| {
            own.value(&steps.map(|step| f64::from(data[0].get(i + step)))).0 as f32
        });
        let kernel = kernel.build().unwrap();
        for gpu in both() {
            let got = computed(&gpu, |batch| {
                let data = batch.upload(data.clone());
                batch.apply(&kernel, &[data], &[])
            });
            for (i, got) in (0_i64..).zip(got.unwrap()) {
                let look = |step: i64| {
                    let place = (i + step).clamp(0, data.len() as i64 - 1);
                    f64::from(data[place as usize])
                };
                let (want, size) = expr.value(&steps.map(look));
                let off = (f64::from(got) - want).abs();
                prop_assert!(off <= 1e-5 * size.max(1e-6), "{got} is not {want}");
            }
        }
    }

    #[test]
    fn random_bodies_are_what_double_precision_has(
        expr in expressions(),
        data in prop::collection::vec(-3.0_f32..3.0, 1..40),
        other in -3.0_f32..3.0,
    ) {
        let code = format!(
            "fn own(x: f32) -> f32 {{ return clamp(x, -1.0, 1.0); }}
            fn element(x0: f32, x1: f32, x2: f32) -> f32 {{ return {} + 0.0 * x0; }}",
            expr.wgsl()
        );
        let own = expr.clone();
        let kernel = KernelDefinition::new("random", code).cpu(move |values, _| {
            own.value(&[0, 1, 2].map(|at| f64::from(values[at]))).0 as f32
        });
        let kernel = kernel.build().unwrap();
        for gpu in both() {
            let got = computed(&gpu, |batch| {
                let x = batch.upload(&data);
                let twice = batch.scale(x, 2.0)?;
                let other = batch.upload(vec![other]);
                batch.apply(&kernel, &[x, twice, other], &[])
            });
            for (got, x) in got.unwrap().iter().zip(&data) {
                let (want, size) = expr.value(&[*x, 2.0 * x, other].map(f64::from));
                let off = (f64::from(*got) - want).abs();
                prop_assert!(off <= 1e-5 * size.max(1e-6), "{got} is not {want}");
            }
        }
    }
}
