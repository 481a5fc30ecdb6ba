//! Kernels of a place, which look at any place of their inputs.

use framebatch::{Config, EngineChoice, Kernel, KernelDefinition, Number};

use super::engines::{both, both_manual, in_time, open_as, small};
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

fn quotient() -> Kernel {
    let code = "fn element(a: i32, b: i32) -> i32 { return a / b; }";
    let quotient = KernelDefinition::new("quotient", code);
    let quotient = quotient.cpu_numbers(|of, to| match of.values {
        [Number::I32(a), Number::I32(b)] => to[0] = (a / b).into(),
        _ => unreachable!("two values, of type i32"),
    });
    quotient.build().unwrap()
}

/// Functions on the CPU that fail where there is no element: behind the last one a quotient of
/// whole numbers has no value.
#[test]
fn functions_are_asked_for_the_elements_there_are() {
    in_time(|| {
        let code = "fn at(i: i32) -> f32 { return x(i) * f32(i + 1); }";
        let by_place = KernelDefinition::new("by_place", code).input("x");
        let by_place = by_place.cpu_at(|i, x, _| {
            assert!(i < x[0].len(), "there is no element {i}");
            x[0].get(i) * (i + 1) as f32
        });
        let by_place = by_place.build().unwrap();
        let quotient = quotient();
        for gpu in both_manual() {
            // Many calls of a batch, in an order in which whole fours lie beside others.
            let counts = [
                1_usize, 4, 8, 8, 3, 3, 2, 5, 12, 12, 7, 1000, 1001, 1001, 30_003,
            ];
            let sixes: Vec<i32> = (1..=30_003).map(|i| i * 6).collect();
            let threes = vec![3; 30_003];
            let mut batches: Vec<_> = counts
                .iter()
                .map(|count| {
                    let mut batch = gpu.batch();
                    let x = batch.upload(vec![2.0; *count]);
                    let placed = batch.apply(&by_place, &[x], &[]).unwrap();
                    let shape = [*count as u32];
                    let a = batch.upload_i32(&sixes[..*count], &shape).unwrap();
                    let b = batch.upload_i32(&threes[..*count], &shape).unwrap();
                    let divided = batch.apply(&quotient, &[a, b], &[]).unwrap();
                    batch.keep(placed).unwrap();
                    batch.keep(divided).unwrap();
                    (batch, placed, divided)
                })
                .collect();
            let calls: Vec<_> = batches
                .iter_mut()
                .map(|(batch, ..)| batch.execute())
                .collect();
            gpu.flush();
            for call in calls {
                pollster::block_on(call).unwrap();
            }
            for ((batch, placed, divided), count) in batches.iter().zip(counts) {
                let got = pollster::block_on(batch.read(*placed)).unwrap();
                assert_near(&got, (1..=count).map(|i| 2.0 * i as f64));
                let got = pollster::block_on(batch.read_i32(*divided)).unwrap();
                assert_eq!(got, (1..=count as i32).map(|i| 2 * i).collect::<Vec<_>>());
            }
        }
    });
}

/// The same in a call that is cut between its elements.
#[test]
fn functions_are_asked_for_the_elements_of_a_slice() {
    in_time(|| {
        let quotient = quotient();
        for engine in [EngineChoice::Gpu, EngineChoice::Cpu] {
            let gpu = open_as(small(Config {
                engine,
                ..Config::default()
            }));
            let sixes: Vec<i32> = (1..=500_003).map(|i| i * 6).collect();
            let mut batch = gpu.batch();
            let a = batch.upload_i32(&sixes, &[500_003]).unwrap();
            let threes = vec![3; 500_003];
            let b = batch.upload_i32(&threes, &[500_003]).unwrap();
            let divided = batch.apply(&quotient, &[a, b], &[]).unwrap();
            pollster::block_on(batch.execute()).unwrap();
            let got = pollster::block_on(batch.read_i32(divided)).unwrap();
            assert_eq!(got, (1..=500_003).map(|i| 2 * i).collect::<Vec<_>>());
            assert!(gpu.stats().pieces > 1, "{engine:?}");
        }
    });
}

/// The same where results are stored.
#[test]
fn functions_are_asked_for_no_more_where_results_are_stored() {
    in_time(|| {
        let code = "fn at(i: i32) -> f32 { return x(i) + 1.0; }";
        let kernel = KernelDefinition::new("within", code).input("x");
        let kernel = kernel.cpu_at(|i, x, _| {
            assert!(i < x[0].len(), "there is no element {i}");
            x[0].get(i) + 1.0
        });
        let kernel = kernel.build().unwrap();
        for gpu in both() {
            for count in [3, 4, 7, 1001] {
                let state = gpu.tensor(&ramp(count, 0.3), &[count as u32]).unwrap();
                for _ in 0..2 {
                    let mut batch = gpu.batch();
                    let x = batch.tensor(&state).unwrap();
                    let y = batch.apply(&kernel, &[x], &[]).unwrap();
                    batch.compute_into(y, &state).unwrap();
                    pollster::block_on(batch.execute()).unwrap();
                }
                let got = computed(&gpu, |batch| {
                    let x = batch.tensor(&state)?;
                    batch.apply(&kernel, &[x], &[])
                });
                let want = ramp(count, 0.3);
                assert_near(&got.unwrap(), want.iter().map(|x| f64::from(*x) + 3.0));
            }
        }
    });
}
