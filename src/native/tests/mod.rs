//! The handle, its calls and its worker under random schedules: whatever happens in whatever order,
//! each call is answered once, and nobody waits for ever.
//!
//! Each story runs under as many schedules as `MODEL_SCHEDULES` says, or 300. A failure prints its
//! schedule, which `shuttle::replay` repeats.

mod calls;
mod devices;
mod indexes;
mod result_buffer;
mod room;
mod session_end;
mod sharing;
mod tensors;

use std::sync::Arc;

use shuttle::scheduler::RandomScheduler;
use shuttle::{FailurePersistence, Runner};

use super::platform::thread::{self, JoinHandle};
use super::platform::{AnyDevice, Fate, Opens, World, block_on};
use super::shared::Shared;
use super::{Call, Config, EngineChoice, Gpu, Tensor};
use crate::batch::{BatchConfig, Policy, Preset};
use crate::{Code, Error};

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

/// The errors of calls in [`ROUGH`].
const ROUGHLY: &[Code] = &[Code::OutOfMemory, Code::Shader, Code::DeviceLost];

/// The errors of a session that ends in such a world.
const ENDING: &[Code] = &[
    Code::Disposed,
    Code::OutOfMemory,
    Code::Shader,
    Code::DeviceLost,
];

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

/// Runs a story under many schedules, and checks that nothing is left behind.
fn explore(world: World, batch: BatchConfig, story: fn(Gpu)) {
    explore_on(EngineChoice::Gpu, world, batch, story);
}

/// Runs a story as [`explore`] does, on devices of this choice.
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
            // The model's clock goes on by 0.1 ms with each look at it.
            stall_ms: Some(20.0),
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

/// Checks that nothing is pending, and that every call was counted once.
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
    // The last call is awaited first: answers do not depend on the order of waiting.
    for (value, call) in values.into_iter().zip(calls).rev() {
        check(value, call.wait(), allowed);
    }
    check(7, gpu.blocking().lerp(&[7.0], &[9.0], 0.5), allowed);
}
