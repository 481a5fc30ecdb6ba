//! Kernels of a place, which look at any place of their inputs.

use framebatch::{Kernel, KernelDefinition, Number};

use super::engines::{both, both_manual, in_time};
use super::{assert_near, computed, ramp};

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
