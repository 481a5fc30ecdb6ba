//! The native handle: from any thread and any runtime, and to its end.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;
#[allow(dead_code, reason = "each test target uses its own part")]
mod stall;

use std::pin::Pin;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use engines::{both, both_manual, in_time, manual, open};
use framebatch::device::Engine;
use framebatch::{Axes, Blocking, Call, Code, Config, EngineChoice, Error, Gpu, Preset, Tensor};
use samples::Samples;
use stall::Stall;

#[test]
fn handles_and_calls_go_to_any_thread() {
    fn is_send(_: &impl Send) {}
    fn is_sync<T: Sync>() {}
    fn is_clone<T: Clone>() {}
    is_send(&Gpu::open(Config::default()));
    let [gpu, _] = both();
    is_send(&gpu);
    is_send(&gpu.ready());
    is_send(&gpu.lerp(&[], &[], 0.0));
    is_sync::<Gpu>();
    is_sync::<Blocking>();
    is_clone::<Gpu>();
    is_clone::<Blocking>();
}

#[test]
fn calls_made_before_awaiting_share_one_submission() {
    for gpu in both_manual() {
        let calls: Vec<Call<f32>> = (0..1000_u16)
            .map(|k| {
                gpu.lerp(
                    &vec![f32::from(k); 1 + usize::from(k) % 200],
                    &vec![0.0; 1 + usize::from(k) % 200],
                    0.5,
                )
            })
            .collect();
        gpu.flush();
        for (k, call) in (0..1000_u16).zip(calls) {
            let expected = vec![f32::from(k) / 2.0; 1 + usize::from(k) % 200];
            assert_eq!(call.wait().unwrap(), expected);
        }
        let stats = gpu.stats();
        assert_eq!((stats.calls, stats.settled, stats.batches), (1000, 1000, 1));
        if gpu.info().engine == Engine::Gpu {
            let counts = (
                stats.device.submits,
                stats.device.readbacks,
                stats.device.dispatches,
            );
            assert_eq!(counts, (1, 1, 1));
        }
    }
}

#[test]
fn many_threads_get_their_own_answers() {
    in_time(|| {
        for gpu in both() {
            thread::scope(|scope| {
                for thread in 0..8_u16 {
                    let gpu = gpu.blocking();
                    scope.spawn(move || {
                        for round in 0..20_u16 {
                            let value = f32::from(thread * 100 + round);
                            let length = 1 + usize::from(round);
                            let answer = gpu.lerp(&vec![value; length], &vec![0.0; length], 0.0);
                            assert_eq!(answer.unwrap(), vec![value; length]);
                        }
                    });
                }
            });
            let stats = gpu.stats();
            assert_eq!((stats.calls, stats.settled, stats.pending), (160, 160, 0));
        }
    });
}

#[test]
fn all_threads_of_the_programs_pool_may_wait() {
    /// What `ask` asks, from all threads of the pool that rayon gives every program.
    fn everywhere(gpu: &Gpu, ask: impl Fn(&Gpu) -> Call<f32> + Sync) -> Vec<Vec<f32>> {
        let all_asked = Barrier::new(rayon::current_num_threads());
        rayon::broadcast(|_| {
            let call = ask(gpu);
            if all_asked.wait().is_leader() {
                gpu.flush();
            }
            call.wait().unwrap()
        })
    }
    in_time(|| {
        let gpu = open(EngineChoice::Cpu, manual());
        // Enough work to be computed on all cores.
        let (a, b) = ([0.0, 0.0, 0.0, 1.0].repeat(20_000), [0.5; 80_000]);
        let turned = everywhere(&gpu, |gpu| gpu.slerp(&a, &b, 1.0));
        assert!(turned.iter().all(|result| result.len() == b.len()));
        // Results in memory that was used before are copied on all cores.
        let (a, b) = (vec![0.0; 1 << 18], vec![1.0; 1 << 18]);
        for _ in 0..2 {
            for result in everywhere(&gpu, |gpu| gpu.lerp(&a, &b, 0.5)) {
                assert!(result.iter().all(|x| *x == 0.5));
                gpu.recycle(result);
            }
        }
    });
}

#[test]
fn tasks_of_a_runtime_get_their_own_answers() {
    in_time(|| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            for gpu in both() {
                let tasks: Vec<_> = (0..500_u16)
                    .map(|k| {
                        let gpu = gpu.clone();
                        tokio::spawn(async move {
                            let value = f32::from(k);
                            gpu.ready().await?;
                            gpu.slerp(&[0.0, 0.0, 0.0, value], &[0.0, 0.0, 0.0, value], 0.5)
                                .await
                        })
                    })
                    .collect();
                for (k, task) in (0..500_u16).zip(tasks) {
                    let answer = task.await.unwrap().unwrap();
                    assert_eq!(answer, [0.0, 0.0, 0.0, f32::from(k)]);
                }
            }
        });
    });
}

#[test]
fn a_dropped_call_is_given_up_and_its_neighbors_are_not() {
    in_time(|| {
        for gpu in both_manual() {
            let before = gpu.lerp(&[1.0], &[1.0], 0.5);
            drop(gpu.lerp(&[2.0], &[2.0], 0.5));
            let after = gpu.lerp(&[3.0], &[3.0], 0.5);
            assert_eq!(gpu.stats().pending, 2);
            gpu.flush();
            assert_eq!(before.wait().unwrap(), [1.0]);
            assert_eq!(after.wait().unwrap(), [3.0]);
            let stats = gpu.stats();
            assert_eq!((stats.calls, stats.settled, stats.rejected), (3, 2, 1));
        }
    });
}

#[test]
fn calls_dropped_at_any_moment_leave_nothing_pending() {
    in_time(|| {
        for gpu in both() {
            let mut samples = Samples(11);
            for _ in 0..50 {
                let calls = [1.0, 2.0, 3.0].map(|value| gpu.lerp(&[value], &[value], 0.5));
                thread::sleep(Duration::from_micros(samples.bits() % 300));
                let [first, dropped, third] = calls;
                drop(dropped);
                assert_eq!(first.wait().unwrap(), [1.0]);
                assert_eq!(third.wait().unwrap(), [3.0]);
            }
            let stats = gpu.stats();
            assert_eq!(stats.pending, 0);
            assert_eq!(stats.settled + stats.rejected, 150);
        }
    });
}

#[test]
fn disposal_rejects_what_is_pending_for_all_handles() {
    in_time(|| {
        for gpu in both_manual() {
            let calls = [1.0, 2.0].map(|value| gpu.lerp(&[value], &[value], 0.5));
            let clone = gpu.clone();
            clone.dispose();
            clone.dispose();
            let late = [gpu.lerp(&[1.0], &[1.0], 0.5), gpu.lerp(&[], &[], 0.5)];
            for call in calls.into_iter().chain(late) {
                assert_eq!(call.wait(), Err(Error::Disposed));
            }
            gpu.flush();
            assert_eq!(pollster::block_on(gpu.ready()), Err(Error::Disposed));
            let stats = gpu.stats();
            assert_eq!((stats.calls, stats.rejected, stats.pending), (2, 2, 0));
        }
    });
}

#[test]
fn disposal_amid_traffic_settles_every_call() {
    in_time(|| {
        for engine in [EngineChoice::Cpu, EngineChoice::Gpu] {
            for pause in [0, 1, 5, 20] {
                let gpu = open(engine, Preset::Eager.config());
                thread::scope(|scope| {
                    for _ in 0..4 {
                        let gpu = gpu.blocking();
                        scope.spawn(move || {
                            loop {
                                match gpu.lerp(&[1.0; 100], &[3.0; 100], 0.5) {
                                    Ok(answer) => assert_eq!(answer, [2.0; 100]),
                                    Err(error) => break assert_eq!(error, Error::Disposed),
                                }
                            }
                        });
                    }
                    thread::sleep(Duration::from_millis(pause));
                    gpu.dispose();
                });
            }
        }
    });
}

#[test]
fn dropping_the_last_handle_rejects_what_is_pending() {
    in_time(|| {
        for gpu in both_manual() {
            let call = gpu.lerp(&[1.0], &[1.0], 0.5);
            let clone = gpu.clone();
            drop(gpu);
            assert_eq!(clone.stats().pending, 1, "another handle is left");
            drop(clone);
            assert_eq!(call.wait(), Err(Error::Disposed));
        }
    });
}

#[test]
fn dropping_the_last_handle_waits_for_the_worker() {
    in_time(|| {
        let gpu = open(EngineChoice::Cpu, manual());
        let stall = Stall::new(&gpu);
        let (sender, receiver) = mpsc::channel();
        let dropping = thread::spawn(move || {
            drop(gpu);
            sender.send(()).unwrap();
        });
        let early = receiver.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "the worker is still at work");
        drop(stall);
        receiver.recv().unwrap();
        dropping.join().unwrap();
    });
}

/// A task that holds a handle until it is woken.
struct Holder(Mutex<Option<Gpu>>, mpsc::Sender<()>);

impl Wake for Holder {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().expect("one user").take());
        self.1.send(()).expect("the test waits");
    }
}

#[test]
fn the_last_handle_may_be_dropped_by_the_worker_itself() {
    in_time(|| {
        let gpu = open(EngineChoice::Cpu, manual());
        let (sender, receiver) = mpsc::channel();
        let mut call = gpu.lerp(&[1.0], &[1.0], 0.5);
        let holder = Arc::new(Holder(Mutex::new(Some(gpu.clone())), sender));
        let waker = Waker::from(holder);
        let state = Pin::new(&mut call).poll(&mut Context::from_waker(&waker));
        assert_eq!(state, Poll::Pending);
        gpu.flush();
        drop(gpu);
        receiver.recv().unwrap();
        // Dropping `gpu` may have come before or after the answer.
        assert!(matches!(
            call.wait().as_deref(),
            Ok([1.0]) | Err(Error::Disposed)
        ));
    });
}

/// Keeps a GPU in software at work for a good part of a second.
fn long_work(gpu: &Blocking, matrix: &Tensor) -> Result<Vec<f32>, Error> {
    let mut batch = gpu.batch();
    let matrix = batch.tensor(matrix)?;
    let product = batch.matmul(matrix, matrix)?;
    let sum = batch.sum(product, Axes::ALL)?;
    batch.execute()?;
    batch.read(sum)
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a caller's wait is compared with the work that it must not wait for"
)]
fn callers_wait_for_no_work_of_the_gpu() {
    const SIDE: u16 = 1024;
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, Preset::Eager.config());
        let dims = [u32::from(SIDE); 2];
        let matrix = gpu.tensor(&vec![0.5; usize::from(SIDE) * usize::from(SIDE)], &dims);
        let matrix = matrix.expect("4 MiB");
        let side = f32::from(SIDE);
        let sum = [side * side * side / 4.0];
        let blocking = gpu.blocking();
        assert_eq!(long_work(&blocking, &matrix).unwrap(), sum); // Compiled.
        let tensors: Vec<Tensor> = (0..100)
            .map(|_| gpu.tensor(&[1.0; 1 << 14], &[1 << 14]).unwrap())
            .collect();
        let before = gpu.stats().device.dispatches;
        let is_at_work = || gpu.stats().device.dispatches > before;
        let start = Instant::now();
        thread::scope(|scope| {
            let working = scope.spawn(|| {
                let outcome = long_work(&blocking, &matrix);
                (outcome, start.elapsed())
            });
            while !is_at_work() {
                thread::yield_now();
            }
            let mut longest = Duration::ZERO;
            for tensor in tensors {
                let start = Instant::now();
                drop(tensor);
                let call = gpu.lerp(&[0.0; 64], &[1.0; 64], 0.5);
                longest = longest.max(start.elapsed());
                drop(call);
            }
            let (outcome, all) = working.join().unwrap();
            assert_eq!(outcome.unwrap(), sum);
            // One wait for the work would be nearly all of it.
            assert!(4 * longest < all, "{longest:?} of {all:?}");
        });
    });
}

#[test]
fn a_stall_limit_is_a_time_above_zero() {
    for stall_ms in [0.0, -1.0, f64::NAN] {
        let config = Config {
            engine: EngineChoice::Cpu,
            stall_ms: Some(stall_ms),
            ..Config::default()
        };
        let error = Blocking::open(config).expect_err("no limit");
        assert!(matches!(error, Error::InvalidInput(_)), "{error}");
        assert!(error.to_string().contains("stall_ms"), "{error}");
    }
}

#[test]
fn work_beyond_the_stall_limit_is_a_lost_device_and_ends_with_the_last_handle() {
    in_time(|| {
        let config = Config {
            engine: EngineChoice::Gpu,
            stall_ms: Some(100.0), // Less than the product takes a GPU in software.
            ..Config::default()
        };
        let gpu = Blocking::open(config).unwrap();
        let matrix = gpu.tensor(&vec![0.5; 1 << 22], &[1 << 11; 2]).unwrap();
        // The batch is refused, or one of the next devices is faster, or the CPU.
        match long_work(&gpu, &matrix) {
            Ok(sum) => assert!(
                (sum[0] / (1_u64 << 31) as f32 - 1.0).abs() < 1e-5,
                "{sum:?}"
            ),
            Err(error) => assert_eq!(error.code(), Code::DeviceLost, "{error}"),
        }
        drop((gpu, matrix));
    });
}
