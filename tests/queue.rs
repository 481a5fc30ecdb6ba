//! A full queue natively: wait, reject, latest; and when batches are sent.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
mod stall;

use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use engines::{in_time, manual, open};
use framebatch::{
    Axes, BatchConfig, Call, Capacity, Code, Config, EngineChoice, Gpu, Overflow, Policy, Preset,
};
use pollster::block_on;
use stall::Stall;

/// A session that takes three calls and sends when told, or when full.
fn three(overflow: Overflow) -> Gpu {
    let batch = BatchConfig {
        overflow,
        queue_capacity: Capacity {
            calls: 3,
            bytes: 1 << 20,
        },
        ..manual()
    };
    open(EngineChoice::Cpu, batch)
}

fn ask(gpu: &Gpu, value: f32) -> Call<f32> {
    gpu.lerp(&[value], &[value], 0.5)
}

#[test]
fn reject_refuses_what_does_not_fit() {
    in_time(|| {
        let gpu = three(Overflow::Reject);
        let stall = Stall::new(&gpu);
        let taken = [1.0, 2.0, 3.0].map(|value| ask(&gpu, value));
        assert_eq!(gpu.desired_size(), 0);
        let error = ask(&gpu, 4.0).wait().unwrap_err();
        assert_eq!(error.code(), Code::QueueFull);
        assert!(error.to_string().contains("3 calls"), "{error}");
        drop(stall);
        // Nobody flushed: a full queue is sent whatever the policy.
        let answers = taken.map(|call| call.wait().unwrap());
        assert_eq!(answers, [[1.0], [2.0], [3.0]]);
        assert_eq!(gpu.desired_size(), 3);
    });
}

#[test]
fn latest_gives_a_newer_call_the_place_of_an_older_one() {
    in_time(|| {
        let gpu = three(Overflow::Latest);
        let stall = Stall::new(&gpu);
        let (cursor, other) = (gpu.keyed(7), gpu.keyed(8));
        let oldest = ask(&cursor, 1.0);
        let middle = ask(&gpu, 2.0);
        let third = ask(&cursor, 3.0);
        let newest = ask(&cursor, 4.0);
        assert_eq!(oldest.wait().unwrap_err().code(), Code::Superseded);
        for stranger in [ask(&other, 5.0), ask(&gpu, 6.0)] {
            assert_eq!(stranger.wait().unwrap_err().code(), Code::QueueFull);
        }
        drop(stall);
        let answers = [middle, third, newest].map(|call| call.wait().unwrap());
        assert_eq!(answers, [[2.0], [3.0], [4.0]]);
        let stats = gpu.stats();
        // With the call of the stall; the refused ones were never taken.
        assert_eq!((stats.calls, stats.settled, stats.rejected), (5, 4, 1));
    });
}

#[test]
fn wait_takes_calls_and_tells_producers() {
    in_time(|| {
        let gpu = three(Overflow::Wait);
        pollster::block_on(gpu.ready()).unwrap();
        let stall = Stall::new(&gpu);
        let calls = [1.0, 2.0, 3.0, 4.0, 5.0].map(|value| ask(&gpu, value));
        assert!(gpu.desired_size() < 0);
        let (sender, receiver) = mpsc::channel();
        let blocked = [gpu.clone(), gpu.clone()].map(|gpu| {
            let sender = sender.clone();
            thread::spawn(move || {
                pollster::block_on(gpu.ready()).unwrap();
                let answer = gpu.blocking().lerp(&[6.0], &[6.0], 0.5).unwrap();
                sender.send(answer).unwrap();
            })
        });
        let early = receiver.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "no room while the worker stands still");
        drop(stall);
        let answers = calls.map(|call| call.wait().unwrap());
        assert_eq!(answers, [[1.0], [2.0], [3.0], [4.0], [5.0]]);
        // Two calls do not fill the queue.
        while gpu.stats().calls < 8 {
            thread::yield_now();
        }
        gpu.flush();
        assert_eq!(
            [receiver.recv(), receiver.recv()],
            [Ok(vec![6.0]), Ok(vec![6.0])]
        );
        for thread in blocked {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_blocking_call_waits_for_room_before_it_is_copied() {
    in_time(|| {
        let gpu = three(Overflow::Wait);
        let stall = Stall::new(&gpu);
        let calls = [1.0, 2.0, 3.0].map(|value| ask(&gpu, value));
        let blocking = gpu.blocking();
        let blocked = thread::spawn(move || blocking.lerp(&[4.0], &[4.0], 0.5).unwrap());
        thread::sleep(Duration::from_millis(50));
        assert_eq!(gpu.stats().pending, 3, "the fourth is not taken");
        drop(stall);
        for call in calls {
            call.wait().unwrap();
        }
        while gpu.stats().calls < 5 {
            thread::yield_now();
        }
        gpu.flush();
        assert_eq!(blocked.join().unwrap(), [4.0]);
    });
}

#[test]
fn threads_that_wait_for_room_learn_of_disposal() {
    in_time(|| {
        let gpu = three(Overflow::Wait);
        let stall = Stall::new(&gpu);
        let pending = [1.0, 2.0, 3.0].map(|value| ask(&gpu, value));
        let blocking = gpu.blocking();
        let call = thread::spawn(move || blocking.lerp(&[4.0], &[4.0], 0.5));
        let blocking = gpu.blocking();
        let ready = thread::spawn(move || blocking.ready());
        thread::sleep(Duration::from_millis(20));
        gpu.dispose();
        assert_eq!(call.join().unwrap().unwrap_err().code(), Code::Disposed);
        assert_eq!(ready.join().unwrap().unwrap_err().code(), Code::Disposed);
        for call in pending {
            assert_eq!(call.wait().unwrap_err().code(), Code::Disposed);
        }
        drop(stall);
    });
}

#[test]
fn a_batch_below_its_minimum_waits_no_longer_than_it_may() {
    in_time(|| {
        let eager = |min_batch_size, max_wait| {
            let batch = BatchConfig {
                min_batch_size,
                max_wait: Some(max_wait),
                ..Preset::Eager.config()
            };
            open(EngineChoice::Cpu, batch)
        };
        let impatient = eager(1000, 5.0);
        assert_eq!(ask(&impatient, 1.0).wait().unwrap(), [1.0]);
        let patient = eager(3, 1e6);
        let calls = [1.0, 2.0, 3.0].map(|value| ask(&patient, value));
        let answers = calls.map(|call| call.wait().unwrap());
        assert_eq!(answers, [[1.0], [2.0], [3.0]]);
        assert_eq!(patient.stats().batches, 1);
    });
}

#[test]
fn the_longest_wait_is_longer_than_clocks_count_and_ended_by_a_flush() {
    in_time(|| {
        let batch = BatchConfig {
            policy: Policy::Frame,
            max_wait: Some(f64::MAX),
            ..manual()
        };
        let gpu = open(EngineChoice::Cpu, batch);
        for _ in 0..3 {
            let call = ask(&gpu, 1.0);
            // Long enough for the worker to fall asleep again.
            thread::sleep(Duration::from_millis(20));
            gpu.flush();
            assert_eq!(call.wait().unwrap(), [1.0]);
        }
    });
}

#[test]
fn a_call_that_waits_too_long_fails_and_its_neighbors_do_not() {
    in_time(|| {
        for engine in [EngineChoice::Cpu, EngineChoice::Gpu] {
            let gpu = open(engine, manual());
            let within = |ms| gpu.with_deadline(Duration::from_millis(ms));
            let kept = [ask(&gpu, 1.0), ask(&within(600_000), 2.0)];
            let (late, later) = (ask(&within(20), 3.0), ask(&within(60), 4.0));
            // Nothing else wakes the worker.
            assert_eq!(later.wait().unwrap_err().code(), Code::Timeout);
            assert_eq!(late.wait().unwrap_err().code(), Code::Timeout);
            assert_eq!(gpu.stats().pending, 2);
            gpu.flush();
            assert_eq!(kept.map(|call| call.wait().unwrap()), [[1.0], [2.0]]);
            assert_eq!(
                ask(&within(0), 5.0).wait().unwrap_err().code(),
                Code::Timeout
            );
        }
    });
}

#[test]
fn a_call_whose_deadline_passed_makes_room() {
    in_time(|| {
        let gpu = three(Overflow::Reject);
        let hasty = gpu.with_deadline(Duration::from_millis(20));
        let calls = [1.0, 2.0].map(|value| ask(&hasty, value));
        assert_eq!(gpu.desired_size(), 1);
        for call in calls {
            assert_eq!(call.wait().unwrap_err().code(), Code::Timeout);
        }
        assert_eq!((gpu.desired_size(), gpu.stats().batches), (3, 0));
    });
}

#[test]
fn where_there_are_no_frames_a_wait_or_the_program_sends() {
    in_time(|| {
        let gpu = |policy| {
            let batch = BatchConfig {
                policy,
                max_wait: Some(1.0),
                ..Preset::Eager.config()
            };
            open(EngineChoice::Cpu, batch)
        };
        assert_eq!(ask(&gpu(Policy::Frame), 1.0).wait().unwrap(), [1.0]);
        let manual = gpu(Policy::Manual);
        let call = ask(&manual, 2.0);
        thread::sleep(Duration::from_millis(50));
        assert_eq!(manual.stats().pending, 1, "nothing goes by time");
        manual.flush();
        assert_eq!(call.wait().unwrap(), [2.0]);
    });
}

#[test]
fn a_longest_wait_ends_while_the_device_is_busy() {
    in_time(|| {
        for policy in [Policy::Auto, Policy::Eager] {
            let batch = BatchConfig {
                policy,
                max_wait: Some(5.0),
                min_batch_size: 100,
                ..Preset::Eager.config()
            };
            let gpu = open(EngineChoice::Gpu, batch);
            // Each of these waits for a larger batch, and goes when it has waited enough.
            let large = vec![1.0; 1 << 20];
            let busy: Vec<_> = (0..2).map(|_| gpu.lerp(&large, &large, 0.5)).collect();
            let behind = ask(&gpu, 3.0);
            assert_eq!(behind.wait().unwrap(), [3.0], "{policy:?}");
            for call in busy {
                assert_eq!(call.wait().unwrap(), large);
            }
        }
    });
}

/// Whether a call whose longest wait is over is sent while a product of matrices of this size is
/// still computed.
fn is_sent_meanwhile(policy: Policy, size: u32) -> bool {
    let batch = BatchConfig {
        policy,
        max_wait: Some(1.0),
        min_batch_size: 100,
        ..Preset::Eager.config()
    };
    let gpu = open(EngineChoice::Gpu, batch);
    let side = gpu.tensor(&vec![0.5; (size * size) as usize], &[size; 2]);
    let side = side.expect("its shape");
    let product = || {
        let mut batch = gpu.batch();
        let x = batch.tensor(&side).expect("its own");
        let y = batch.matmul(x, x).expect("it is square");
        let y = batch.sum(y, Axes::ALL).expect("floats");
        batch.keep(y).expect("its own");
        batch
    };
    let submits = || gpu.stats().device.submits;
    for _ in 0..2 {
        block_on(product().execute()).expect("kernels are compiled");
        ask(&gpu, 2.0).wait().expect("likewise");
    }
    let before = submits();
    let mut batch = product();
    let mut long = pin!(batch.execute());
    while submits() == before {
        thread::yield_now();
    }
    let before = submits();
    let behind = ask(&gpu, 3.0);
    let mut context = Context::from_waker(Waker::noop());
    let mut is_over = false;
    while submits() == before && !is_over {
        is_over = long.as_mut().poll(&mut context).is_ready();
        thread::yield_now();
    }
    let is_sent = !is_over && long.as_mut().poll(&mut context).is_pending();
    assert_eq!(behind.wait().expect("computed behind it"), [3.0]);
    is_sent
}

#[test]
fn batches_are_sent_while_another_is_awaited() {
    in_time(|| {
        for policy in [Policy::Auto, Policy::Eager] {
            let mut sizes = [256, 512, 1024, 2048].into_iter();
            assert!(
                sizes.any(|size| is_sent_meanwhile(policy, size)),
                "{policy:?}"
            );
        }
    });
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let base = Preset::Eager.config();
    let none = |calls, bytes| BatchConfig {
        queue_capacity: Capacity { calls, bytes },
        ..base.clone()
    };
    let cases = [
        (none(0, 1), "queue capacity in calls"),
        (none(1, 0), "queue capacity in bytes"),
        (
            BatchConfig {
                max_wait: Some(f64::NAN),
                ..base.clone()
            },
            "max wait",
        ),
        (
            BatchConfig {
                min_batch_size: 0,
                ..base.clone()
            },
            "min batch size",
        ),
        (
            BatchConfig {
                max_batch_size: Some(129),
                ..none(128, 1)
            },
            "a queue capacity of 128 calls is below max batch size 129",
        ),
        (
            BatchConfig {
                max_in_flight: 0,
                ..base.clone()
            },
            "max in flight",
        ),
    ];
    for (batch, name) in cases {
        let config = Config {
            batch,
            ..Config::default()
        };
        let error = pollster::block_on(Gpu::open(config)).unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(name), "{error}");
    }
}
