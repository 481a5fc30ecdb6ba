//! Full queues, and who waits for room in one.

use std::task::{Context, Waker};

use super::*;
use crate::batch::{Capacity, Overflow};

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
        // The device stalls, so these calls keep the queue full.
        let calls: Vec<Call<f32>> = (0..8).map(|value| ask(&gpu, value)).collect();
        let registered = || gpu.shared().lock().waiting.len();
        let mut ready = Box::pin(gpu.ready());
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..100 {
            let polled = ready.as_mut().poll(&mut context);
            assert!(registered() <= 1, "{polled:?}");
            if polled.is_ready() {
                break; // All calls went in the batch that does not come back.
            }
        }
        drop(ready);
        assert_eq!(registered(), 0);
        drop(calls);
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
