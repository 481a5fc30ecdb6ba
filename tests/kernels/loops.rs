//! Loops of kernels: those that end, and those that are stopped.

use framebatch::{Code, EngineChoice, Kernel, KernelDefinition, Number};

use super::computed;
use super::engines::{both, in_time, manual, open};

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
