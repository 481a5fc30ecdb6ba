//! The handle, its calls and its worker under random schedules: whatever
//! happens in whatever order, each call is answered once, and nobody waits for
//! ever.
//!
//! `MODEL_SCHEDULES` is how many a story is told, 300 unless given. A failure
//! prints its schedule, which `shuttle::replay` repeats.

mod free_list;
mod indexes;
mod result_buffer;
mod sharing;
mod tensors;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Waker};

use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::RandomScheduler;
use shuttle::{FailurePersistence, Runner};

use super::platform::thread::{self, JoinHandle};
use super::platform::{AnyDevice, Fate, Opens, World, block_on};
use super::shared::Shared;
use super::{Call, Config, EngineChoice, Gpu, Tensor};
use crate::batch::{BatchConfig, Capacity, Overflow, Policy, Preset};
use crate::device::{DeviceInfo, Engine};
use crate::ops::clips::{Track, Wrap};
use crate::{Code, Error, Model};

/// Nothing ever fails.
const KIND: World = World {
    flights: &[Fate::Arrives],
    kernels: &[Fate::Arrives],
    clips: &[Fate::Arrives],
    opens: &[Opens::Hardware],
};

/// Memory runs out and devices go away, but there is always another.
const ROUGH: World = World {
    flights: &[
        Fate::Arrives,
        Fate::Arrives,
        Fate::Fails,
        Fate::LostBefore,
        Fate::LostWith,
        Fate::LostAfter,
    ],
    kernels: &[Fate::Arrives, Fate::Arrives, Fate::Fails, Fate::LostWith],
    clips: &[Fate::Arrives],
    opens: &[Opens::Hardware, Opens::Hardware, Opens::Nothing],
};

/// What may become of a call in [`ROUGH`].
const ROUGHLY: &[Code] = &[Code::OutOfMemory, Code::Shader, Code::DeviceLost];

/// No wait ends by time, because the model never times out.
fn eager() -> BatchConfig {
    BatchConfig {
        max_wait: None,
        ..Preset::Eager.config()
    }
}

fn manual() -> BatchConfig {
    BatchConfig {
        policy: Policy::Manual,
        ..eager()
    }
}

fn two(overflow: Overflow) -> BatchConfig {
    BatchConfig {
        overflow,
        queue_capacity: Capacity {
            calls: 2,
            bytes: 1 << 20,
        },
        ..eager()
    }
}

/// Tells a story under many schedules, and looks at what it left behind.
fn explore(world: World, batch: BatchConfig, story: fn(Gpu)) {
    explore_on(EngineChoice::Gpu, world, batch, story);
}

/// The same on the devices of this choice.
fn explore_on(engine: EngineChoice, world: World, batch: BatchConfig, story: fn(Gpu)) {
    let schedules = std::env::var("MODEL_SCHEDULES").map_or(300, |given| {
        given.parse().expect("MODEL_SCHEDULES is a number")
    });
    let mut settings = shuttle::Config::new();
    settings.stack_size = 1 << 18;
    // A panic that is part of the story would print its schedule as well.
    let panics = |fate: &Fate| matches!(fate, Fate::PanicsAtLaunch | Fate::PanicsInFlight);
    if world.flights.iter().chain(world.kernels).any(panics) {
        settings.failure_persistence = FailurePersistence::None;
    }
    let told = Runner::new(RandomScheduler::new(schedules), settings).run(move || {
        world.begin();
        let config = Config {
            engine,
            batch: batch.clone(),
            stall_ms: 20.0, // A model's clock goes on by a tenth with each look at it.
            ..Config::default()
        };
        let gpu = block_on(Gpu::open(config)).unwrap();
        let shared = Arc::clone(gpu.shared());
        story(gpu);
        // With the last handle the worker ended as well.
        assert!(shared.lock().closed.is_some(), "the story kept a handle");
        assert_quiet(&shared);
    });
    assert_eq!(told, schedules);
}

/// Nothing is pending, and every call was counted once.
fn assert_quiet(shared: &Shared) {
    let state = shared.lock();
    assert_eq!(state.driver.session.pending(), 0);
    assert!(state.answers.is_empty());
    let stats = state.driver.session.stats();
    assert_eq!(stats.calls, stats.settled + stats.rejected);
}

fn ask(gpu: &Gpu, value: u16) -> Call<f32> {
    let value = f32::from(value);
    gpu.lerp(&[value], &[value + 2.0], 0.5)
}

/// The answer to [`ask`], where errors may be of the kinds `allowed`.
fn check(value: u16, answer: Result<Vec<f32>, Error>, allowed: &[Code]) {
    match answer {
        Ok(floats) => assert_eq!(floats, [f32::from(value) + 1.0]),
        Err(error) => assert!(allowed.contains(&error.code()), "{error}"),
    }
}

/// Threads that each do `work` with a handle of their own and their number.
fn threads(count: u16, gpu: &Gpu, work: fn(&Gpu, u16)) -> Vec<JoinHandle<()>> {
    (0..count)
        .map(|number| {
            let gpu = gpu.clone();
            thread::spawn(move || work(&gpu, number))
        })
        .collect()
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Two calls at once, and one when they are answered.
fn three_calls(gpu: &Gpu, thread: u16, allowed: &[Code]) {
    let values = [10 * thread, 10 * thread + 1];
    let calls = values.map(|value| ask(gpu, value));
    // The last one first: nobody depends on the order of waiting.
    for (value, call) in values.into_iter().zip(calls).rev() {
        check(value, call.wait(), allowed);
    }
    check(7, gpu.blocking().lerp(&[7.0], &[9.0], 0.5), allowed);
}

#[test]
fn threads_get_their_own_answers() {
    explore(KIND, eager(), |gpu| {
        join(threads(3, &gpu, |gpu, n| three_calls(gpu, n, &[])));
        assert_quiet(gpu.shared());
    });
}

#[test]
fn every_flush_reaches_the_worker() {
    explore(KIND, manual(), |gpu| {
        let flushing = threads(3, &gpu, |gpu, n| {
            let call = ask(gpu, n);
            gpu.flush();
            check(n, call.wait(), &[]);
        });
        join(flushing);
        assert_quiet(gpu.shared());
    });
}

#[test]
fn the_longest_wait_is_ended_by_a_flush() {
    let longest = BatchConfig {
        max_wait: Some(f64::MAX),
        ..manual()
    };
    explore(KIND, longest, |gpu| {
        let call = ask(&gpu, 1);
        thread::yield_now();
        gpu.flush();
        check(1, call.wait(), &[]);
    });
}

#[test]
fn calls_given_up_are_nobody_elses_matter() {
    explore(ROUGH, eager(), |gpu| {
        let fickle = threads(3, &gpu, |gpu, n| {
            let (dropped, kept) = (ask(gpu, 100 + n), ask(gpu, n));
            if thread_rng().r#gen() {
                thread::yield_now();
            }
            drop(dropped);
            check(n, kept.wait(), ROUGHLY);
        });
        join(fickle);
        assert_quiet(gpu.shared());
    });
}

#[test]
fn calls_given_up_leave_the_queue_unsent() {
    explore(KIND, manual(), |gpu| {
        join(threads(3, &gpu, |gpu, n| drop(ask(gpu, n))));
        assert_quiet(gpu.shared());
    });
}

#[test]
fn a_lost_device_is_replaced_under_everyone() {
    explore(ROUGH, eager(), |gpu| {
        let asking = threads(2, &gpu, |gpu, n| three_calls(gpu, n, ROUGHLY));
        let taking = threads(1, &gpu, |gpu, _| {
            for _ in 0..2 {
                if let AnyDevice::Gpu(device) = gpu.shared().lock().driver.session.device() {
                    device.lose();
                }
                thread::yield_now();
            }
        });
        join(asking);
        join(taking);
        assert_quiet(gpu.shared());
    });
}

#[test]
fn whichever_device_answers_everyone_is_answered() {
    explore_on(EngineChoice::Auto, ROUGH, eager(), |gpu| {
        let asking = threads(3, &gpu, |gpu, n| {
            // The processor may take over for good, and there is no GPU then.
            let allowed = &[ROUGHLY, &[Code::NoAdapter]].concat();
            let engines = [EngineChoice::Gpu, EngineChoice::Auto, EngineChoice::Cpu];
            let calls = engines.map(|engine| ask(&gpu.on(engine), n));
            for (engine, call) in engines.into_iter().zip(calls) {
                match engine {
                    EngineChoice::Cpu => check(n, call.wait(), &[]),
                    EngineChoice::Auto | EngineChoice::Gpu => check(n, call.wait(), allowed),
                }
            }
        });
        join(asking);
        assert_quiet(gpu.shared());
        let stats = gpu.stats();
        assert!(stats.ran_on_cpu >= 3, "{stats:?}");
    });
}

#[test]
fn what_devices_take_is_measured_once_in_a_process() {
    fn measured(gpu: &Gpu) -> Model {
        loop {
            match gpu.model().expect("it chooses") {
                (model, true) => return model,
                _ => thread::yield_now(),
            }
        }
    }
    explore_on(EngineChoice::Auto, KIND, eager(), |gpu| {
        check(1, ask(&gpu, 1).wait(), &[]);
        let first = measured(&gpu);
        let config = Config {
            batch: eager(),
            ..Config::default()
        };
        // Nothing is measured before there was a call.
        let next = block_on(Gpu::open(config)).unwrap();
        assert_eq!(measured(&next), first);
        assert_ne!(first, Model::default());
    });
}

#[test]
fn the_processor_takes_over_where_no_other_device_opens() {
    let world = World {
        flights: &[Fate::LostWith],
        opens: &[Opens::Nothing],
        ..KIND
    };
    // A batch is sent twice, and the second time to the processor.
    explore(world, eager(), |gpu| {
        join(threads(2, &gpu, |gpu, n| three_calls(gpu, n, &[])));
        assert_eq!(gpu.info().engine, Engine::Cpu);
    });
}

#[test]
fn a_gpu_in_software_takes_over_only_where_it_was_asked_for() {
    /// What answers once the device is gone.
    fn next(gpu: &Gpu) -> DeviceInfo {
        if let AnyDevice::Gpu(device) = gpu.shared().lock().driver.session.device() {
            device.lose();
        }
        check(1, ask(&gpu.on(EngineChoice::Gpu), 1).wait(), &[]);
        gpu.info()
    }
    let world = World {
        opens: &[Opens::Software],
        ..KIND
    };
    explore_on(EngineChoice::Auto, world, eager(), |gpu| {
        assert_eq!(next(&gpu).engine, Engine::Cpu);
    });
    explore_on(EngineChoice::Gpu, world, eager(), |gpu| {
        let info = next(&gpu);
        assert_eq!((info.engine, info.software), (Engine::Gpu, true));
    });
}

#[test]
fn the_processor_takes_over_from_devices_that_never_answer() {
    let world = World {
        flights: &[Fate::LostBefore, Fate::LostWith],
        ..KIND
    };
    explore(world, eager(), |gpu| {
        let asking = |gpu: &Gpu, n| three_calls(gpu, n, &[Code::DeviceLost]);
        join(threads(2, &gpu, asking));
        check(1, ask(&gpu, 1).wait(), &[Code::DeviceLost]);
        check(2, ask(&gpu, 2).wait(), &[Code::DeviceLost]);
        check(3, ask(&gpu, 3).wait(), &[]);
        assert_eq!(gpu.info().engine, Engine::Cpu);
    });
}

#[test]
fn devices_that_answer_nothing_count_as_lost() {
    let world = World {
        flights: &[Fate::Arrives, Fate::Stalls],
        ..KIND
    };
    explore(world, eager(), |gpu| {
        let asking = |gpu: &Gpu, n| three_calls(gpu, n, &[Code::DeviceLost]);
        join(threads(2, &gpu, asking));
        assert_quiet(gpu.shared());
    });
}

#[test]
fn the_last_handle_waits_for_no_device_that_answers_nothing() {
    let world = World {
        flights: &[Fate::Stalls],
        ..KIND
    };
    explore(world, eager(), |gpu| {
        let call = ask(&gpu, 1);
        let waiting = thread::spawn(move || check(1, call.wait(), &[Code::Disposed]));
        if thread_rng().r#gen() {
            thread::yield_now();
        }
        drop(gpu);
        join(vec![waiting]);
    });
}

#[test]
fn a_panic_under_the_lock_ends_the_session_and_answers_everyone() {
    explore(KIND, manual(), |gpu| {
        let calls = [1, 2].map(|value| (value, ask(&gpu, value)));
        let panicking = threads(1, &gpu, |gpu, _| {
            let shared = gpu.shared();
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _state = shared.lock();
                panic!("planned, with the session locked");
            }));
            assert!(caught.is_err());
        });
        for (value, call) in calls {
            let error = call.wait().expect_err("nobody sends it");
            assert_eq!(error.code(), Code::Fatal, "{value}");
        }
        join(panicking);
        assert_eq!(ask(&gpu, 3).wait().unwrap_err().code(), Code::Fatal);
        assert_quiet(gpu.shared());
    });
}

#[test]
fn a_lock_that_is_taken_while_a_thread_unwinds_ends_nothing() {
    explore(KIND, manual(), |gpu| {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _call = ask(&gpu, 1); // Given up as the thread unwinds.
            panic!("planned, by the program");
        }));
        assert!(caught.is_err());
        let call = ask(&gpu, 2);
        gpu.flush();
        check(2, call.wait(), &[]);
    });
}

#[test]
fn who_waits_for_room_is_registered_once_however_often_it_looks() {
    let stalled = World {
        flights: &[Fate::Stalls],
        ..KIND
    };
    let queue = BatchConfig {
        max_in_flight: 1,
        ..two(Overflow::Wait)
    };
    explore(stalled, queue, |gpu| {
        // Nothing comes back, so what is made now stays.
        let calls: Vec<Call<f32>> = (0..8).map(|value| ask(&gpu, value)).collect();
        let registered = || gpu.shared().lock().waiting.len();
        let mut ready = Box::pin(gpu.ready());
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..100 {
            let polled = ready.as_mut().poll(&mut context);
            assert!(registered() <= 1, "{polled:?}");
        }
        drop(ready);
        assert_eq!(registered(), 0);
        drop(calls);
    });
}

#[test]
fn disposal_at_any_moment_answers_everyone() {
    const ALLOWED: &[Code] = &[
        Code::Disposed,
        Code::OutOfMemory,
        Code::Shader,
        Code::DeviceLost,
    ];
    explore(ROUGH, eager(), |gpu| {
        let asking = threads(2, &gpu, |gpu, n| three_calls(gpu, n, ALLOWED));
        join(threads(2, &gpu, |gpu, _| gpu.dispose()));
        join(asking);
        assert_quiet(gpu.shared());
        let late = ask(&gpu, 1).wait().unwrap_err();
        assert_eq!(late.code(), Code::Disposed);
    });
}

#[test]
fn calls_outlive_the_last_handle() {
    const ALLOWED: &[Code] = &[
        Code::Disposed,
        Code::OutOfMemory,
        Code::Shader,
        Code::DeviceLost,
    ];
    explore(ROUGH, eager(), |gpu| {
        let calls = [1, 2].map(|value| (value, ask(&gpu, value)));
        let mut waiting: Vec<JoinHandle<()>> = calls
            .into_iter()
            .map(|(value, call)| thread::spawn(move || check(value, call.wait(), ALLOWED)))
            .collect();
        waiting.extend(threads(2, &gpu, |gpu, n| drop(ask(gpu, n))));
        drop(gpu);
        join(waiting);
    });
}

#[test]
fn a_full_queue_makes_producers_wait_and_lets_them_go() {
    explore(ROUGH, two(Overflow::Wait), |gpu| {
        let blocking = threads(3, &gpu, |gpu, n| {
            check(
                n,
                gpu.blocking()
                    .lerp(&[f32::from(n)], &[f32::from(n + 2)], 0.5),
                ROUGHLY,
            );
        });
        let polite = threads(2, &gpu, |gpu, n| {
            block_on(gpu.ready()).unwrap();
            check(n, ask(gpu, n).wait(), ROUGHLY);
        });
        join(blocking);
        join(polite);
        assert_quiet(gpu.shared());
        assert_eq!(gpu.desired_size(), 2);
    });
}

#[test]
fn disposal_frees_producers_that_wait_for_room() {
    const ALLOWED: &[Code] = &[Code::Disposed];
    explore(KIND, two(Overflow::Wait), |gpu| {
        let blocking = threads(3, &gpu, |gpu, n| three_calls(gpu, n, ALLOWED));
        let polite = threads(1, &gpu, |gpu, n| {
            if block_on(gpu.ready()).is_ok() {
                check(n, ask(gpu, n).wait(), ALLOWED);
            }
        });
        gpu.dispose();
        join(blocking);
        join(polite);
    });
}

#[test]
fn a_full_queue_answers_those_it_refuses_or_replaces() {
    for (overflow, code) in [
        (Overflow::Reject, Code::QueueFull),
        (Overflow::Latest, Code::Superseded),
    ] {
        let story: fn(Gpu) = match code {
            Code::QueueFull => |gpu| {
                let asking = |gpu: &Gpu, n| three_calls(gpu, n, &[Code::QueueFull]);
                join(threads(3, &gpu, asking));
                assert_quiet(gpu.shared());
            },
            _ => |gpu| {
                let allowed = |gpu: &Gpu, n| {
                    three_calls(&gpu.keyed(1), n, &[Code::QueueFull, Code::Superseded]);
                };
                join(threads(3, &gpu, allowed));
                assert_quiet(gpu.shared());
            },
        };
        explore(KIND, two(overflow), story);
    }
}

#[test]
fn warm_ups_are_answered_whatever_becomes_of_kernels_and_devices() {
    explore(ROUGH, eager(), |gpu| {
        let warming = threads(2, &gpu, |gpu, n| {
            let warm = gpu.warmup(|gpu| drop(ask(gpu, n)));
            let outcome = block_on(warm);
            check(n, ask(gpu, n).wait(), ROUGHLY);
            if let Err(error) = outcome {
                assert_eq!(error.code(), Code::Shader, "{error}");
            }
        });
        join(warming);
        let unheard = gpu.warmup(|gpu| drop(ask(gpu, 9)));
        drop(unheard);
        let late = gpu.warmup(|gpu| drop(ask(gpu, 9)));
        gpu.dispose();
        let allowed = [Code::Disposed, Code::Shader];
        assert!(block_on(late).map_or_else(|error| allowed.contains(&error.code()), |()| true));
    });
}

#[test]
fn readers_of_a_write_that_is_given_up_wait_for_nothing_else() {
    fn read(gpu: &Gpu, tensor: &Tensor) -> Result<Vec<f32>, Error> {
        let mut batch = gpu.batch();
        let x = batch.tensor(tensor)?;
        let y = batch.scale(x, 2.0)?;
        let done = batch.execute();
        block_on(done)?;
        batch.read(y).wait()
    }
    let world = World {
        clips: &[Fate::Stalls],
        ..KIND
    };
    explore(world, eager(), |gpu| {
        let tensor = gpu.tensor(&[4.0; 4], &[4]).unwrap();
        let track = Track {
            times: &[0.0],
            values: &[1.0],
            kind: Default::default(),
            interpolation: Default::default(),
            easing: Default::default(),
        };
        let clip = gpu.clip(&[track], None).unwrap();
        assert_eq!(read(&gpu, &tensor).unwrap(), [8.0; 4]);
        // Its kernel is never compiled, and what reads the tensor waits with it.
        let write = clip.sample_to(&tensor, 0, &[0.0; 4], Wrap::Clamp);
        let reader = gpu.clone();
        let reading = thread::spawn(move || read(&reader, &tensor).unwrap());
        for _ in 0..thread_rng().gen_range(0..20) {
            thread::yield_now();
        }
        drop(write);
        assert_eq!(reading.join().unwrap(), [8.0; 4]);
    });
}

/// Devices that bring the worker down now and then.
fn falls_over(flights: &'static [Fate], kernels: &'static [Fate]) {
    let world = World {
        flights,
        kernels,
        ..KIND
    };
    explore(world, eager(), |gpu| {
        join(threads(2, &gpu, |gpu, n| {
            three_calls(gpu, n, &[Code::Fatal])
        }));
        // At the latest this one does, if it is asked often enough.
        let error = (0..1000).find_map(|n| ask(&gpu, n).wait().err()).unwrap();
        assert!(
            error.to_string().contains("the GPU driver fell over"),
            "{error}"
        );
        assert_quiet(gpu.shared());
    });
}

#[test]
fn a_worker_that_panics_rejects_what_is_pending_and_what_comes() {
    falls_over(&[Fate::Arrives, Fate::PanicsInFlight], KIND.kernels);
}

#[test]
fn a_worker_that_panics_with_the_session_locked_does_as_well() {
    falls_over(&[Fate::Arrives, Fate::PanicsAtLaunch], KIND.kernels);
}

#[test]
fn a_compiler_that_panics_does_as_well() {
    falls_over(KIND.flights, &[Fate::PanicsInFlight]);
}
