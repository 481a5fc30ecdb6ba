//! What is told of batches natively, on both engines.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use engines::{both, both_manual, in_time, open};
use framebatch::device::Engine;
use framebatch::{
    Batch, Blocking, EngineChoice, Error, Facts, Gpu, Kernel, KernelDefinition, Preset, Value,
    Watch,
};
use samples::Samples;

/// Listens, and what was heard.
fn heard(gpu: &Gpu) -> (Watch, mpsc::Receiver<Facts>) {
    let (sender, receiver) = mpsc::channel();
    let watch = gpu.on_batch(move |facts| sender.send(*facts).unwrap_or_default());
    (watch, receiver)
}

#[test]
fn facts_agree_with_the_counts() {
    in_time(|| {
        for gpu in both_manual() {
            let states = Samples(1).states(50_000);
            let alone = gpu.compute_gradients(&states);
            gpu.flush();
            let alone = alone.wait().unwrap();
            let before = gpu.stats();
            let (watch, batches) = heard(&gpu);
            let calls = [(); 3].map(|()| gpu.compute_gradients(&states));
            gpu.flush();
            for call in calls {
                // The same bits, measured or not.
                assert_eq!(call.wait().unwrap(), alone);
            }
            let facts = batches.recv().unwrap();
            let after = gpu.stats();
            let is_gpu = gpu.info().engine == Engine::Gpu;
            assert_eq!((facts.calls, facts.engine), (3, gpu.info().engine));
            assert_eq!(facts.last.0 - facts.first.0, 2);
            assert_eq!((facts.items, facts.failed), (3 * 50_000, 0));
            assert_eq!(facts.submits, after.device.submits - before.device.submits);
            assert_eq!(facts.memory_bytes > 0, is_gpu);
            assert_eq!(
                facts.items_per_second(),
                Some(150_000.0 / facts.wall_ms * 1e3)
            );
            assert_eq!(facts.pieces, after.pieces - before.pieces);
            assert_eq!(
                facts.bytes_up,
                after.device.bytes_up - before.device.bytes_up
            );
            assert_eq!(
                facts.bytes_down,
                after.device.bytes_down - before.device.bytes_down
            );
            assert!(facts.wall_ms > 0.0 && facts.encode_ms <= facts.wall_ms);
            // Nineteen megabytes of results go in two chunks, and lavapipe has timestamps.
            assert_eq!(facts.pieces > 1, is_gpu);
            assert_eq!(facts.gpu_ms.is_some(), is_gpu);
            assert_eq!(facts.resolution_ms.is_some(), is_gpu);
            assert_eq!(after.measured.utilization, facts.utilization());
            assert_eq!(after.measured.read_ms, Some(facts.read_ms));
            drop(watch);
            let call = gpu.compute_gradients(&states);
            gpu.flush();
            assert_eq!(call.wait().unwrap(), alone);
            assert!(batches.recv().is_err(), "nobody listens any more");
            assert_eq!(gpu.stats().measured, after.measured);
        }
    });
}

#[test]
fn listeners_come_and_go_while_batches_do() {
    in_time(|| {
        for gpu in both_manual() {
            let send = |gpu: &Gpu| {
                let call = gpu.lerp(&[0.0], &[1.0], 0.5);
                gpu.flush();
                call.wait().unwrap();
            };
            let (one, first) = heard(&gpu);
            let (two, second) = heard(&gpu);
            send(&gpu);
            assert!(first.recv().is_ok() && second.recv().is_ok());
            drop(one);
            send(&gpu);
            assert!(first.recv().is_err() && second.recv().is_ok());
            // One that ends itself, and uses the session meanwhile.
            let (sender, told) = mpsc::channel();
            let slot: Arc<Mutex<Option<Watch>>> = Arc::default();
            let (own, handle) = (Arc::clone(&slot), gpu.clone());
            *slot.lock().unwrap() = Some(gpu.on_batch(move |facts| {
                own.lock().unwrap().take();
                sender.send((facts.calls, handle.stats().calls)).unwrap();
            }));
            send(&gpu);
            assert_eq!(told.recv().unwrap(), (1, 3));
            send(&gpu);
            assert!(told.recv().is_err());
            drop(two);
        }
    });
}

#[test]
fn a_listener_that_panics_hears_no_more() {
    in_time(|| {
        for gpu in both_manual() {
            let send = || {
                let call = gpu.lerp(&[0.0], &[1.0], 0.5);
                gpu.flush();
                assert_eq!(call.wait().unwrap(), [0.5]);
            };
            let (sender, told) = mpsc::channel();
            let panicking = gpu.on_batch(move |_| {
                sender.send(()).unwrap();
                panic!("as a listener may");
            });
            let (watch, batches) = heard(&gpu);
            send();
            assert!(told.recv().is_ok() && batches.recv().is_ok());
            assert!(told.recv().is_err(), "it is gone");
            send();
            assert!(batches.recv().is_ok(), "the others listen on");
            drop(watch);
            // Without others nothing is measured any more.
            let (sender, told) = mpsc::channel::<()>();
            let last = gpu.on_batch(move |_| panic!("once more, {sender:?}"));
            send();
            assert!(told.recv().is_err());
            let before = gpu.stats().measured;
            send();
            assert_eq!(gpu.stats().measured, before);
            drop((panicking, last));
        }
    });
}

#[test]
fn a_profile_is_of_its_own_runs() {
    in_time(|| {
        for gpu in both_manual() {
            let states = Samples(1).states(5000);
            let mut runs = 0;
            let profile = gpu.profile(4, || {
                runs += 1;
                let calls = [(); 3].map(|()| gpu.compute_gradients(&states));
                async {
                    for call in calls {
                        call.await?;
                    }
                    Ok(())
                }
            });
            let profile = pollster::block_on(profile).unwrap();
            assert_eq!((runs, profile.iterations), (5, 4));
            assert_eq!((profile.batches, profile.calls), (1.0, 3.0));
            assert_eq!(profile.items, 15_000.0);
            assert!(profile.run_ms.min > 0.0 && profile.run_ms.min <= profile.run_ms.max);
            let is_gpu = gpu.info().engine == Engine::Gpu;
            assert_eq!(profile.gpu_ms.is_some(), is_gpu);
            // Nobody listens any more.
            let before = gpu.stats().measured;
            let call = gpu.lerp(&[0.0], &[1.0], 0.5);
            gpu.flush();
            call.wait().unwrap();
            assert_eq!(gpu.stats().measured, before);
        }
    });
}

/// Records what a run computes.
type Record = fn(&mut Batch<'_, Blocking>) -> Result<Value, Error>;

/// What is computed, and by hand its operations and the bytes of its operands and results.
type Counted = (&'static str, Record, Option<f64>, f64);

const COUNTED: [Counted; 7] = [
    // 1000 sums of two vectors.
    (
        "add",
        |batch| {
            let (a, b) = (batch.upload(&ONES[..1000]), batch.upload(&ONES[..1000]));
            batch.add(a, b)
        },
        Some(1000.0),
        12_000.0,
    ),
    // 30 x 20 by 20 x 50: a product and a sum for each of 30,000 pairs.
    (
        "matmul",
        |batch| {
            let a = batch.upload_shaped(&ONES[..600], &[30, 20])?;
            let b = batch.upload_shaped(&ONES[..1000], &[20, 50])?;
            batch.matmul(a, b)
        },
        Some(60_000.0),
        4.0 * (600.0 + 1000.0 + 1500.0),
    ),
    // An exponential, a product and a sum of each element.
    (
        "chain",
        |batch| {
            let a = batch.upload(&ONES[..1000]);
            let (grown, scaled) = (batch.exp(a)?, batch.scale(a, 0.5)?);
            batch.add(grown, scaled)
        },
        Some(3000.0),
        8000.0,
    ),
    // Two operations of a kernel that counts them, and a sum behind it, in one pass.
    (
        "kernel",
        |batch| {
            let a = batch.upload(&ONES[..1000]);
            let applied = batch.apply(&fused(Some(2)), &[a, a], &[])?;
            batch.add(applied, a)
        },
        Some(3000.0),
        8000.0,
    ),
    // The same kernel without a count.
    (
        "unknown kernel",
        |batch| {
            let a = batch.upload(&ONES[..1000]);
            batch.apply(&fused(None), &[a, a], &[])
        },
        None,
        8000.0,
    ),
    // Nine operations for each of 100 vectors of three numbers.
    (
        "vectors",
        |batch| {
            let a = batch.upload_shaped(&ONES[..300], &[100, 3])?;
            batch.apply(&unit(), &[a], &[])
        },
        Some(900.0),
        2400.0,
    ),
    // Ten operations an element. The values are then copied to the result, and looked through for
    // loops that did not end: another operation for each.
    (
        "loop",
        |batch| {
            let a = batch.upload(&ONES[..1000]);
            batch.apply(&looping(), &[a], &[])
        },
        Some(11_000.0),
        5.0 * 4000.0 + 4.0,
    ),
];

/// A kernel with a loop of ten products.
fn looping() -> Kernel {
    let code = "fn element(a: f32) -> f32 {
        var x = a;
        for (var k = 0; k < 10; k++) { x *= a; }
        return x;
    }";
    let made = KernelDefinition::new("power", code).cpu(|values, _| values[0].powi(11));
    made.flops(10).build().expect("a kernel")
}

/// A kernel of two operations on single numbers.
fn fused(flops: Option<u32>) -> Kernel {
    let code = "fn element(a: f32, b: f32) -> f32 { return a * b + 1.0; }";
    let made = KernelDefinition::new("fused", code).cpu(|values, _| values[0] * values[1] + 1.0);
    let made = match flops {
        Some(flops) => made.flops(flops),
        None => made,
    };
    made.build().expect("a kernel")
}

/// A kernel of vectors: three products, two sums, a root and three divisions.
fn unit() -> Kernel {
    let code = "fn element(v: vec3f) -> vec3f { return v / sqrt(dot(v, v)); }";
    let made = KernelDefinition::new("unit", code).cpu_into(|values, _, to| {
        let length = values.iter().map(|x| x * x).sum::<f32>().sqrt();
        to.iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = x / length);
    });
    made.flops(9).build().expect("a kernel")
}

static ONES: [f32; 1000] = [1.0; 1000];

#[test]
fn operations_and_bytes_of_kernels_are_those_counted_by_hand() {
    in_time(|| {
        for gpu in both() {
            let is_gpu = gpu.info().engine == Engine::Gpu;
            let gpu = gpu.blocking();
            for (name, record, flops, bytes) in COUNTED {
                let run = || {
                    let mut batch = gpu.batch();
                    let value = record(&mut batch)?;
                    batch.execute()?;
                    batch.read(value)
                };
                let profile = gpu.profile(2, run).unwrap();
                assert_eq!(profile.flops, flops, "{name}");
                assert_eq!(profile.kernel_bytes, Some(bytes), "{name}");
                // Kernels this small may take less than a clock can tell.
                let rates = [
                    (profile.flops_per_second(), flops),
                    (profile.kernel_bytes_per_second(), Some(bytes)),
                ];
                for (rate, count) in rates {
                    let expected = (profile.gpu_ms.zip(count)).map(|(ms, n)| n / ms.mean * 1e3);
                    assert_eq!(rate, expected, "{name}");
                    assert!(is_gpu || rate.is_none(), "{name}");
                }
            }
        }
    });
}

#[test]
fn sizes_are_profiled_one_after_the_other() {
    in_time(|| {
        for gpu in both_manual() {
            let ones = [1.0; 64];
            let mut given = Vec::new();
            let profile = gpu.profile_sizes(2, &[64, 1], |size| {
                given.push(size);
                gpu.lerp(&ones[..size], &ones[..size], 0.5)
            });
            let profile = pollster::block_on(profile).unwrap();
            assert_eq!(given, [64, 64, 64, 1, 1, 1]);
            let told = profile.sizes.iter();
            let told: Vec<_> = told.map(|one| (one.size, one.profile.items)).collect();
            assert_eq!(told, [(64, 64.0), (1, 1.0)]);
            assert!(profile.best().is_some());
            assert_eq!(profile.to_string().lines().count(), 3);
            for sizes in [&[][..], &[1, 0]] {
                let wrong = gpu.profile_sizes(1, sizes, |_| gpu.lerp(&[0.0], &[1.0], 0.5));
                let wrong = pollster::block_on(wrong).unwrap_err();
                assert_eq!(wrong.code(), framebatch::Code::InvalidInput);
            }
        }
    });
}

#[test]
fn a_run_that_fails_ends_the_profile() {
    in_time(|| {
        for gpu in both_manual() {
            let none = gpu.profile(0, || gpu.lerp(&[0.0], &[1.0], 0.5));
            let error = pollster::block_on(none).unwrap_err();
            assert!(error.to_string().contains("from 1"), "{error}");
            let mut runs = 0;
            let failing = gpu.profile(5, || {
                runs += 1;
                gpu.lerp(&[0.0; 2], &[1.0; 3], 0.5)
            });
            assert!(pollster::block_on(failing).is_err());
            assert_eq!(runs, 1);
        }
    });
}

/// What one session tuned, the next one of the process begins with; answers stay as they are.
#[test]
fn tuned_values_are_kept_for_later_sessions() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, Preset::Auto.config());
        let (a, b) = (vec![0.5; 1000], vec![1.5; 1000]);
        for _ in 0..320 {
            assert_eq!(gpu.lerp(&a, &b, 0.5).wait().unwrap(), vec![1.0; 1000]);
        }
        let tuned = gpu.tuning();
        assert!(tuned.batches >= 256, "{tuned:?}");
        assert!(tuned.wait_ms < Some(16.0), "{tuned:?}");
        let plan = gpu.explain(|gpu| drop(gpu.lerp(&a, &b, 0.5)));
        assert!(plan.lines().last().unwrap().starts_with("tuned "), "{plan}");
        gpu.dispose();
        let next = open(EngineChoice::Gpu, Preset::Auto.config());
        next.lerp(&a, &b, 0.5).wait().unwrap(); // The worker has begun.
        assert_eq!(next.tuning().wait_ms, tuned.wait_ms);
        assert_eq!(next.tuning().batch_bytes, tuned.batch_bytes);
        let given = open(EngineChoice::Gpu, Preset::Balanced.config());
        given.lerp(&a, &b, 0.5).wait().unwrap();
        assert_eq!(
            (given.tuning().wait_ms, given.tuning().batch_bytes),
            (None, None)
        );
    });
}
