//! Priorities natively: what goes first, and what is answered in the end.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
mod stall;

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use engines::{both_manual, in_time, manual, open};
use framebatch::clips::{Easing, Interpolation, Kind, Track, Wrap};
use framebatch::{BatchConfig, Call, Capacity, Clip, EngineChoice, Gpu, Policy, Priority};
use stall::Stall;

const PRIORITIES: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

/// A clip that goes from 0 to 8 in a second.
fn ramp(gpu: &Gpu) -> Clip {
    let track = Track {
        times: &[0.0, 1.0],
        values: &[0.0, 8.0],
        kind: Kind::Vector,
        interpolation: Interpolation::Linear,
        easing: Easing::Linear,
    };
    gpu.clip(&[track], None).expect("a sound track")
}

fn ask(gpu: &Gpu, value: f32) -> Call<f32> {
    gpu.lerp(&[value], &[value], 0.5)
}

/// Notes a call's name when the call is answered.
struct Note {
    name: &'static str,
    order: Arc<Mutex<Vec<&'static str>>>,
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.order.lock().expect("no panic").push(self.name);
    }
}

/// Calls, and the order in which they are answered.
#[derive(Default)]
struct Answers {
    order: Arc<Mutex<Vec<&'static str>>>,
    calls: Vec<Call<f32>>,
}

impl Answers {
    fn watch(&mut self, name: &'static str, mut call: Call<f32>) {
        let order = Arc::clone(&self.order);
        let waker = Waker::from(Arc::new(Note { name, order }));
        let state = std::pin::Pin::new(&mut call).poll(&mut Context::from_waker(&waker));
        assert!(matches!(state, Poll::Pending), "{name} waits");
        self.calls.push(call);
    }

    /// Waits for all calls; their names in the order of their answers.
    fn names(self) -> Vec<&'static str> {
        let answered = || self.order.lock().expect("no panic").len();
        while answered() < self.calls.len() {
            thread::yield_now();
        }
        for call in self.calls {
            call.wait().expect("answered");
        }
        let order = self.order.lock().expect("no panic");
        order.clone()
    }
}

#[test]
fn calls_of_every_priority_are_answered_under_every_policy_but_by_hand() {
    in_time(|| {
        for policy in [Policy::Auto, Policy::Eager] {
            for engine in [EngineChoice::Cpu, EngineChoice::Gpu] {
                let gpu = open(engine, BatchConfig { policy, ..manual() });
                let calls: Vec<_> = (0..300_u16)
                    .map(|n| {
                        let priority = PRIORITIES[usize::from(n % 3)];
                        ask(&gpu.with_priority(priority), n.into())
                    })
                    .collect();
                for (n, call) in (0..300_u16).zip(calls) {
                    assert_eq!(call.wait().unwrap(), [f32::from(n)]);
                }
            }
        }
    });
}

#[test]
fn high_goes_by_itself_by_hand_too_and_low_with_the_flush() {
    in_time(|| {
        for gpu in both_manual() {
            let [low, normal, high] =
                PRIORITIES.map(|priority| ask(&gpu.with_priority(priority), 1.0));
            assert_eq!(high.wait().unwrap(), [1.0]);
            assert_eq!(gpu.stats().pending, 2);
            gpu.flush();
            assert_eq!(
                [low, normal].map(|call| call.wait().unwrap()),
                [[1.0], [1.0]]
            );
        }
    });
}

#[test]
fn the_more_urgent_is_answered_first() {
    in_time(|| {
        let gpu = open(EngineChoice::Cpu, manual());
        let stall = Stall::new(&gpu);
        let mut answers = Answers::default();
        for (name, priority) in [
            ("low", Priority::Low),
            ("normal", Priority::Normal),
            ("high", Priority::High),
        ] {
            answers.watch(name, ask(&gpu.with_priority(priority), 1.0));
        }
        gpu.flush();
        drop(stall);
        assert_eq!(answers.names(), ["high", "normal", "low"]);
    });
}

#[test]
fn low_work_begins_with_a_small_slice() {
    in_time(|| {
        for gpu in both_manual() {
            let low = gpu.with_priority(Priority::Low);
            let stall = Stall::new(&gpu);
            let before = gpu.stats().batches;
            let calls: Vec<_> = (0..400_u16).map(|n| ask(&low, n.into())).collect();
            gpu.flush();
            drop(stall);
            for (n, call) in (0..400_u16).zip(calls) {
                assert_eq!(call.wait().unwrap(), [f32::from(n)]);
            }
            // The first is one call, and each at most four times as large as the largest before.
            let batches = gpu.stats().batches - before;
            assert!(batches >= 6, "{batches} batches");
        }
    });
}

#[test]
fn calls_keep_their_order_on_a_tensor_that_they_write() {
    in_time(|| {
        for gpu in both_manual() {
            let tensor = gpu.tensor(&[0.0; 4], &[4]).unwrap();
            let low = gpu.with_priority(Priority::Low);
            let clip = ramp(&low);
            let stored = clip.sample_to(&tensor, 0, &[0.5; 4], Wrap::Clamp);
            let high = gpu.with_priority(Priority::High);
            let mut batch = high.batch();
            let x = batch.tensor(&tensor).unwrap();
            let y = batch.scale(x, 1.0).unwrap();
            // Nobody flushes: what the urgent call reads is as urgent.
            pollster::block_on(batch.execute()).unwrap();
            assert_eq!(batch.read(y).wait().unwrap(), [4.0; 4]);
            stored.wait().unwrap();
        }
    });
}

#[test]
fn a_full_queue_counts_calls_of_every_priority() {
    in_time(|| {
        let batch = BatchConfig {
            queue_capacity: Capacity {
                calls: 3,
                bytes: 1 << 20,
            },
            ..manual()
        };
        let gpu = open(EngineChoice::Cpu, batch);
        let stall = Stall::new(&gpu);
        let calls = PRIORITIES.map(|priority| ask(&gpu.with_priority(priority), 1.0));
        assert_eq!(gpu.desired_size(), 0);
        drop(stall);
        gpu.flush();
        for call in calls {
            assert_eq!(call.wait().unwrap(), [1.0]);
        }
    });
}
