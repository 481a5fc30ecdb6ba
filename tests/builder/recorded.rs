//! Functions: what is recorded once is what batches compute, call after call.

use framebatch::device::Engine;
use framebatch::{Axes, Batch, Code, EngineChoice, Error, Function, Gpu, Tensor, Value};
use framebatch::{KernelDefinition, Number, Priority};
use pollster::block_on;

use crate::engines::{both, both_manual, in_time, manual, open};
use crate::samples::Samples;

/// gelu(x · gain + bias) · 2, and its sum.
fn network(
    batch: &mut Batch<'_>,
    bias: &Tensor,
    [x, gain]: [Value; 2],
) -> Result<[Value; 2], Error> {
    let bias = batch.tensor(bias)?;
    let y = batch.mul(x, gain)?;
    let y = batch.add(y, bias)?;
    let y = batch.gelu(y)?;
    let y = batch.scale(y, 2.0)?;
    Ok([y, batch.sum(y, Axes::ALL)?])
}

fn function(gpu: &Gpu, bias: &Tensor, count: usize) -> Function<2, [Value; 2]> {
    let shapes: [&[u32]; 2] = [&[u32::try_from(count).unwrap()], &[]];
    gpu.function(shapes, |batch, given| network(batch, bias, given))
        .unwrap()
}

fn bits(results: &[Vec<f32>]) -> Vec<Vec<u32>> {
    let bits = |result: &Vec<f32>| result.iter().map(|x| x.to_bits()).collect();
    results.iter().map(bits).collect()
}

#[test]
fn calls_have_the_bits_of_batches_and_share_their_dispatches() {
    for gpu in both_manual() {
        let bias = gpu.tensor(&[0.25], &[1]).unwrap();
        let mut samples = Samples(11);
        // Longer ones than 32, which are summed by one kernel.
        let lengths = [64, 100, 300, 64, 1000, 40];
        let data = lengths.map(|length| samples.floats(length));
        let gains = [0.5_f32, -1.0, 2.0, 3.0, 0.25, 0.0];
        let functions = lengths.map(|length| function(&gpu, &bias, length));
        let by_builder = |together: &[usize]| -> (Vec<Vec<Vec<u32>>>, u64) {
            let mut batches = Vec::new();
            for at in together {
                let mut batch = gpu.batch();
                let x = batch.upload(&data[*at]);
                let gain = batch.upload_shaped(&gains[*at..=*at], &[]).unwrap();
                let values = network(&mut batch, &bias, [x, gain]).unwrap();
                batch.keep(values[0]).unwrap();
                batches.push((batch, values));
            }
            let before = gpu.stats().device.dispatches;
            let running: Vec<_> = batches.iter_mut().map(|(b, _)| b.execute()).collect();
            gpu.flush();
            running
                .into_iter()
                .for_each(|execution| block_on(execution).unwrap());
            let results = batches.iter().map(|(batch, values)| {
                bits(&values.map(|value| block_on(batch.read(value)).unwrap()))
            });
            let dispatches = gpu.stats().device.dispatches - before;
            (results.collect(), dispatches)
        };
        let (expected, dispatches) = by_builder(&[0]);
        let call = |at: usize| functions[at].call([&data[at], &gains[at..=at]]);
        for _ in 0..2 {
            let alone = call(0);
            gpu.flush();
            assert_eq!(bits(&alone.wait().unwrap()), expected[0]);
        }
        let (expected, _) = by_builder(&[0, 1, 2, 3, 4, 5]);
        for _ in 0..3 {
            let before = gpu.stats();
            let calls: Vec<_> = (0..6).map(call).collect();
            // A batch of the same operations is computed with them.
            let mut batch = gpu.batch();
            let x = batch.upload(&data[2]);
            let gain = batch.upload_shaped(&gains[2..3], &[]).unwrap();
            let values = network(&mut batch, &bias, [x, gain]).unwrap();
            batch.keep(values[0]).unwrap();
            let execution = batch.execute();
            gpu.flush();
            for (at, call) in calls.into_iter().enumerate() {
                assert_eq!(bits(&block_on(call).unwrap()), expected[at], "call {at}");
            }
            block_on(execution).unwrap();
            let after = gpu.stats();
            assert_eq!(after.batches - before.batches, 1);
            assert_eq!(
                after.device.dispatches - before.device.dispatches,
                dispatches
            );
        }
    }
}

#[test]
fn a_function_gives_what_it_returns_and_nothing_else() {
    for gpu in both() {
        let both = gpu
            .function([&[3]], |batch, [x]| {
                let doubled = batch.scale(x, 2.0)?;
                let unread = batch.relu(x)?;
                batch.keep(unread)?;
                Ok(vec![doubled, x, doubled])
            })
            .unwrap();
        let results = block_on(both.call([&[1.0, -2.0, 3.0]])).unwrap();
        let doubled = vec![2.0, -4.0, 6.0];
        assert_eq!(results, [doubled.clone(), vec![1.0, -2.0, 3.0], doubled]);
        let constant = gpu.function([], |batch, []| {
            let x = batch.upload(&[1.0, 2.0]);
            let own = batch.upload(vec![3.0, 4.0]);
            batch.mul(x, own)
        });
        let constant = constant.unwrap();
        for _ in 0..2 {
            assert_eq!(constant.call([]).wait().unwrap(), [3.0, 8.0]);
        }
        let empty = gpu.function([&[0, 2]], |batch, [x]| batch.relu(x));
        assert!(empty.unwrap().call([&[]]).wait().unwrap().is_empty());
        let sum = gpu.function([&[0]], |batch, [x]| batch.sum(x, Axes::ALL));
        assert_eq!(sum.unwrap().call([&[]]).wait().unwrap(), [0.0]);
    }
}

#[test]
fn a_step_stores_and_reads_what_was_there_before() {
    in_time(|| {
        for gpu in both() {
            let places = gpu.tensor(&[0.0, 10.0], &[2]).unwrap();
            let speeds = gpu.tensor(&[1.0, -2.0], &[2]).unwrap();
            let step = gpu
                .function([&[]], |batch, [dt]| {
                    let (x, v) = (batch.tensor(&places)?, batch.tensor(&speeds)?);
                    let way = batch.mul(v, dt)?;
                    let moved = batch.add(x, way)?;
                    batch.compute_into(moved, &places)?;
                    batch.scale(x, 10.0)
                })
                .unwrap();
            drop(speeds); // The function keeps it.
            assert_eq!(block_on(step.call([&[1.0]])).unwrap(), [0.0, 100.0]);
            drop(step.call([&[1.0]])); // Goes on.
            let third = step.call([&[0.5]]);
            assert_eq!(block_on(gpu.read(&places)).unwrap(), [2.5, 5.0]);
            assert_eq!(block_on(third).unwrap(), [20.0, 60.0]);
            let write = gpu.function([&[2]], |batch, [x]| batch.compute_into(x, &places));
            let write = write.unwrap();
            write.call([&[7.0, 8.0]]).wait().unwrap();
            assert_eq!(block_on(gpu.read(&places)).unwrap(), [7.0, 8.0]);
        }
    });
}

#[test]
fn what_does_not_fit_is_refused_with_the_fix() {
    let gpu = open(EngineChoice::Cpu, manual());
    let other = open(EngineChoice::Cpu, manual());
    let said = |outcome: Result<(), Error>, what: &str| {
        let error = outcome.unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(what), "{error}");
    };
    let double = gpu
        .function([&[2, 2], &[]], |batch, [x, y]| batch.mul(x, y))
        .unwrap();
    let good = double.call([&[1.0; 4], &[2.0]]);
    let wrong = double.call([&[1.0; 4], &[2.0, 3.0]]);
    said(
        block_on(wrong).map(drop),
        "array 1 has 2 floats, but shape [] has 1; give as many, or record another function",
    );
    let wrong = double.call([&[1.0; 3], &[2.0]]);
    said(
        wrong.wait().map(drop),
        "array 0 has 3 floats, but shape [2, 2] has 4",
    );
    gpu.flush();
    assert_eq!(block_on(good).unwrap(), [2.0; 4]);

    let executes = gpu.function([&[2]], |batch, [x]| {
        let y = batch.relu(x)?;
        block_on(batch.execute())?;
        Ok(y)
    });
    said(
        executes.map(drop),
        "execute: what a function is given has no values",
    );
    let reads = gpu.function([&[2]], |batch, [x]| {
        block_on(batch.read(x))?;
        Ok(x)
    });
    said(
        reads.map(drop),
        "read: what a function is given has no values",
    );
    let computes = gpu.function([&[2]], |batch, [x]| batch.compute(x).map(|_| x));
    said(computes.map(drop), "give `compute_into` a tensor");
    let indexes = gpu.function([&[2]], |batch, [x]| batch.argmax(x, Axes::ALL));
    said(indexes.map(drop), "holds whole numbers");
    let nothing = gpu.function([&[2]], |batch, [x]| batch.relu(x).map(drop));
    said(
        nothing.map(drop),
        "it computes nothing; return a value, or store one",
    );
    let mut batch = gpu.batch();
    let theirs = batch.upload(&[1.0]);
    let foreign = gpu.function([&[2]], |_, [_]| Ok(theirs));
    said(foreign.map(drop), "a value is of another batch");
    let shapes = gpu.function([&[2], &[3]], |batch, [x, y]| batch.add(x, y));
    said(shapes.map(drop), "do not broadcast");
    let tensor = gpu.tensor(&[1.0], &[1]).unwrap();
    let reading = gpu.function([&[1]], |batch, [x]| {
        let y = batch.tensor(&tensor)?;
        batch.add(x, y)
    });
    let abroad = reading.unwrap().through(&other).call([&[1.0]]);
    said(block_on(abroad).map(drop), "of another session");
    gpu.dispose();
    let error = double.call([&[1.0; 4], &[2.0]]).wait().unwrap_err();
    assert_eq!(error.code(), Code::Disposed);
}

#[test]
fn a_lost_device_costs_no_call_of_a_function() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, manual());
        let bias = gpu.tensor(&[0.25], &[1]).unwrap();
        let function = function(&gpu, &bias, 50);
        let data = Samples(5).floats(50);
        let call = || function.call([&data, &[0.5]]);
        let first = call();
        gpu.flush();
        let expected = block_on(first).unwrap();
        for _ in 0..2 {
            let pending = call();
            gpu.wgpu_device().unwrap().destroy();
            gpu.flush();
            assert_eq!(block_on(pending).unwrap(), expected);
            let after = call();
            gpu.flush();
            assert_eq!(block_on(after).unwrap(), expected);
        }
        assert_eq!(gpu.info().engine, Engine::Gpu);
    });
}

#[test]
fn other_handles_explain_warm_up_and_hurry_calls() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, manual());
        let bias = gpu.tensor(&[0.25], &[1]).unwrap();
        let own = function(&gpu, &bias, 40);
        let target = gpu.tensor(&[0.0; 40], &[40]).unwrap();
        let step = gpu
            .function([&[40]], |batch, [x]| {
                let bias = batch.tensor(&bias)?;
                let y = batch.add(x, bias)?;
                batch.compute_into(y, &target)
            })
            .unwrap();
        let plan = gpu.explain(|gpu| {
            for _ in 0..3 {
                drop(own.through(gpu).call([&[1.0; 40], &[1.0]]));
            }
            drop(step.through(gpu).call([&[1.0; 40]]));
        });
        assert_eq!(plan.matches("gelu").count(), 1, "{plan}");
        assert_eq!(gpu.stats().calls, 0);
        block_on(gpu.warmup(|gpu| {
            drop(own.through(gpu).call([&[1.0; 40], &[1.0]]));
        }))
        .unwrap();
        let compiled = gpu.stats().device.pipelines_compiled;
        // High calls are sent whatever the policy.
        let urgent = own.through(&gpu.with_priority(Priority::High));
        let [_, sum] = urgent.call([&[1.0; 40], &[1.0]]).wait().unwrap();
        assert_eq!(sum.len(), 1);
        assert_eq!(gpu.stats().device.pipelines_compiled, compiled);
    });
}

#[test]
fn kernels_of_the_programs_own_are_operations_of_functions() {
    in_time(|| {
        let code = "fn at(i: i32) -> f32 { return (x(i - 1) + x(i + 1)) * params.by; }";
        let smooth = KernelDefinition::new("smooth_in_function", code)
            .input("x")
            .param("by", 0.0_f32)
            .cpu_at(|i, inputs, params| match params {
                [Number::F32(by)] => (inputs[0].get(i - 1) + inputs[0].get(i + 1)) * by,
                _ => f32::NAN,
            })
            .build()
            .unwrap();
        for gpu in both() {
            let twice = gpu.function([&[3]], |batch, [x]| {
                let y = batch.apply(&smooth, &[x], &[0.5.into()])?;
                batch.apply(&smooth, &[y], &[0.5.into()])
            });
            let twice = twice.unwrap();
            for scale in [1.0, 2.0] {
                let data = [0.0, 2.0 * scale, 8.0 * scale];
                let expected = [2.5 * scale, 3.0 * scale, 4.5 * scale];
                assert_eq!(twice.call([&data]).wait().unwrap(), expected);
            }
        }
    });
}

#[test]
fn a_call_that_is_dropped_is_given_up() {
    let gpu = open(EngineChoice::Cpu, manual());
    let double = gpu.function([&[1]], |batch, [x]| batch.scale(x, 2.0));
    let double = double.unwrap();
    let kept = double.call([&[1.0]]);
    drop(double.call([&[2.0]]));
    gpu.flush();
    assert_eq!(block_on(kept).unwrap(), [2.0]);
    assert_eq!(gpu.stats().pending, 0);
    assert_eq!(gpu.stats().settled, 1);
}

#[test]
fn more_functions_than_structures_are_kept_all_stay_right() {
    let gpu = open(
        EngineChoice::Cpu,
        crate::engines::within_memory(framebatch::Preset::Eager.config()),
    );
    let functions: Vec<_> = (1..1300_u32)
        .map(|count| {
            let function = gpu.function([&[count]], |batch, [x]| batch.sum(x, Axes::ALL));
            (vec![1.0; count as usize], function.unwrap())
        })
        .collect();
    for _ in 0..2 {
        for (data, function) in &functions {
            let sum = function.call([data]).wait().unwrap();
            assert_eq!(sum, [data.len() as f32]);
        }
    }
}
