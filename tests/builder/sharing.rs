//! Builders of many callers: computed together, and no bit different for it.

use std::thread;

use framebatch::device::Engine;
use framebatch::{Batch, Call, Error, Gpu, Tensor, Value};
use pollster::block_on;

use crate::engines::{both, both_manual};
use crate::samples::Samples;

/// gelu(x · factor + weights) · x, and the dot of x and that.
fn record<'a>(
    gpu: &Gpu,
    x: &'a [f32],
    factor: f32,
    weights: Option<&Tensor>,
) -> Result<(Batch<'a>, [Value; 2]), Error> {
    let mut batch = gpu.batch();
    let x = batch.upload(x);
    let y = batch.scale(x, factor)?;
    let y = match weights {
        Some(weights) => {
            let weights = batch.tensor(weights)?;
            batch.add(y, weights)?
        }
        None => y,
    };
    let y = batch.gelu(y)?;
    let y = batch.mul(y, x)?;
    batch.keep(y)?;
    let dot = batch.dot(x, y)?;
    Ok((batch, [y, dot]))
}

fn bits(batch: &Batch<'_>, values: [Value; 2]) -> [Vec<u32>; 2] {
    values.map(|value| {
        let floats = block_on(batch.read(value)).unwrap();
        floats.into_iter().map(f32::to_bits).collect()
    })
}

#[test]
fn builders_of_one_structure_are_one_submission_and_no_bit_differs() {
    for gpu in both_manual() {
        let weights = gpu.tensor(&[0.25], &[1]).unwrap();
        for weights in [None, Some(&weights)] {
            let mut samples = Samples(3);
            // Shorter ones are summed by another kernel.
            let lengths = [64, 100, 300, 33, 1000, 40, 999, 64];
            let data = lengths.map(|length| samples.floats(length));
            let run = |data: &[(&[f32], f32)]| {
                let recorded = data
                    .iter()
                    .map(|(x, factor)| record(&gpu, x, *factor, weights));
                let mut recorded: Vec<_> = recorded.collect::<Result<_, _>>().unwrap();
                let before = gpu.stats();
                let running: Vec<_> = recorded.iter_mut().map(|(b, _)| b.execute()).collect();
                gpu.flush();
                for execution in running {
                    block_on(execution).unwrap();
                }
                let after = gpu.stats();
                let took = (
                    after.batches - before.batches,
                    after.device.dispatches - before.device.dispatches,
                    after.device.submits - before.device.submits,
                );
                let results = recorded.iter().map(|(batch, values)| bits(batch, *values));
                (results.collect::<Vec<_>>(), took)
            };
            let calls: Vec<(&[f32], f32)> = (data.iter().zip(1_u8..))
                .map(|(x, k)| (&x[..], f32::from(k) / 4.0))
                .collect();
            let (together, took) = run(&calls);
            let alone: Vec<_> = calls.iter().map(|call| run(&[*call])).collect();
            assert_eq!(took.0, 1);
            assert_eq!((took.1, took.2), (alone[0].1.1, alone[0].1.2));
            for (call, (together, (alone, _))) in together.iter().zip(&alone).enumerate() {
                assert!(*together == alone[0], "call {call}");
            }
        }
    }
}

#[test]
fn threads_with_builders_of_their_own_get_their_own_values() {
    for gpu in both() {
        thread::scope(|scope| {
            for thread in 0..6_u8 {
                let gpu = gpu.blocking();
                scope.spawn(move || {
                    for round in 0..15_u8 {
                        let value = f32::from(thread) * 100.0 + f32::from(round);
                        let data = vec![value; 1 + usize::from(round)];
                        let mut batch = gpu.batch();
                        let x = batch.upload(&data);
                        let y = batch.scale(x, 2.0).unwrap();
                        let z = batch.sub(y, x).unwrap();
                        batch.execute().unwrap();
                        assert_eq!(batch.read(z).unwrap(), data);
                    }
                });
            }
        });
    }
}

#[test]
fn single_operations_share_a_submission_with_batches_and_calls() {
    for gpu in both_manual() {
        // What is compiled first would go by itself.
        let cold = |gpu: &Gpu| drop((gpu.scale(&[1.0], 1.0), gpu.lerp(&[0.0], &[2.0], 0.5)));
        block_on(gpu.warmup(cold)).unwrap();
        let before = gpu.stats();
        let singles: Vec<Call<f32>> = (1..50_u8)
            .map(|k| gpu.scale(&vec![1.0; k.into()], k.into()))
            .collect();
        let mut batch = gpu.batch();
        let x = batch.upload(&[2.0, 3.0]);
        let y = batch.scale(x, 0.5).unwrap();
        let execution = batch.execute();
        let lerp = gpu.lerp(&[0.0], &[2.0], 0.5);
        gpu.flush();
        for (k, single) in (1..50_u8).zip(singles) {
            assert_eq!(block_on(single).unwrap(), vec![f32::from(k); k.into()]);
        }
        block_on(execution).unwrap();
        assert_eq!(block_on(batch.read(y)).unwrap(), [1.0, 1.5]);
        assert_eq!(block_on(lerp).unwrap(), [1.0]);
        let stats = gpu.stats();
        assert_eq!((stats.calls, stats.batches), (51, 1));
        if gpu.info().engine == Engine::Gpu {
            let submits = stats.device.submits - before.device.submits;
            let dispatches = stats.device.dispatches - before.device.dispatches;
            assert_eq!((submits, dispatches), (1, 2));
        }
    }
}

#[test]
fn new_lengths_and_factors_compile_nothing() {
    for gpu in both() {
        let run = |length: u16, factor: f32| {
            let data: Vec<f32> = (0..length).map(f32::from).collect();
            let (mut batch, values) = record(&gpu, &data, factor, None).unwrap();
            block_on(batch.execute()).unwrap();
            bits(&batch, values)
        };
        for length in [300, 3] {
            run(length, 0.5); // One for each of the ways to sum.
        }
        let compiled = gpu.stats().device.pipelines_compiled;
        for k in 0..1000 {
            run(1 + k % 200, f32::from(k) / 7.0);
        }
        assert_eq!(gpu.stats().device.pipelines_compiled, compiled);
    }
}

#[test]
fn plans_can_be_explained_with_tensors_in_them() {
    for gpu in both() {
        let bias = gpu.tensor(&[1.0; 8], &[8]).unwrap();
        let plan = gpu.explain(|gpu| {
            for _ in 0..3 {
                let mut batch = gpu.batch();
                let x = batch.upload(&[2.0; 8]);
                let bias = batch.tensor(&bias).unwrap();
                let y = batch.relu(x).unwrap();
                let y = batch.scale(y, 3.0).unwrap();
                batch.add(y, bias).unwrap();
                assert!(block_on(batch.execute()).is_err(), "it is never sent");
            }
        });
        assert_eq!(plan.matches("dispatch").count(), 1, "{plan}");
        assert!(plan.contains("(relu(in0) * c0) + "), "{plan}");
        assert_eq!(gpu.stats().calls, 0);
    }
}
