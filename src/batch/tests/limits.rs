//! Limits and backpressure, by example: how much a batch and a queue may hold.

use super::*;

#[test]
fn a_full_batch_opens_the_next_one() {
    let mut queue = queue(BatchConfig {
        max_batch_size: Some(2),
        ..config()
    });
    let batches: Vec<u32> = (0..5)
        .map(|_| queue.accept(request(), Millis(0.0)).unwrap().batch.0)
        .collect();
    assert_eq!(batches, [0, 0, 1, 1, 2]);
    assert_eq!(queue.due(Millis(0.0)), Due::Now);
}

#[test]
fn a_call_larger_than_a_batch_goes_alone() {
    let mut queue = queue(BatchConfig {
        max_batch_bytes: 100,
        ..config()
    });
    let sizes = [16, 500, 16];
    let batches: Vec<u32> = sizes
        .map(|bytes| {
            queue
                .accept(Request { bytes, ..request() }, Millis(0.0))
                .unwrap()
                .batch
                .0
        })
        .to_vec();
    assert_eq!(batches, [0, 1, 2]);
}

#[test]
fn a_batch_is_full_by_what_its_calls_cost() {
    let mut queue = queue(BatchConfig {
        max_batch_cost: 100,
        ..config()
    });
    let costs = [40, 50, 20, 80, 500, 1];
    let batches: Vec<u32> = costs
        .map(|cost| {
            let given = Request { cost, ..request() };
            queue.accept(given, Millis(0.0)).unwrap().batch.0
        })
        .to_vec();
    assert_eq!(batches, [0, 0, 1, 1, 2, 3]);
    let mut fill = || {
        let id = queue.launch().expect("a full batch");
        let fill = queue.fill(queue.sent(id).expect("just taken"));
        queue.land(id);
        fill
    };
    assert_eq!([fill(), fill(), fill()], [0.9, 1.0, 1.0]);
}

#[test]
fn a_full_queue_does_as_told() {
    let full = |overflow| {
        let queue_capacity = Capacity {
            calls: 2,
            bytes: 1 << 20,
        };
        let mut queue = queue(BatchConfig {
            overflow,
            queue_capacity,
            ..config()
        });
        queue.accept(keyed(7), Millis(0.0)).unwrap();
        queue.accept(keyed(8), Millis(0.0)).unwrap();
        queue
    };

    let mut waiting = full(Overflow::Wait);
    assert_eq!(waiting.desired_size(), 0);
    assert!(waiting.accept(keyed(7), Millis(0.0)).is_ok());
    assert_eq!(waiting.desired_size(), -1);
    assert_eq!(waiting.due(Millis(0.0)), Due::Now, "full means flush");

    let mut rejecting = full(Overflow::Reject);
    assert_eq!(
        rejecting.accept(keyed(7), Millis(0.0)).unwrap_err().code(),
        Code::QueueFull
    );
    assert_eq!(rejecting.pending(), 2);
    assert_eq!(rejecting.due(Millis(0.0)), Due::Now, "full means flush");

    let mut latest = full(Overflow::Latest);
    let accepted = latest.accept(keyed(8), Millis(0.0)).unwrap();
    assert_eq!(accepted.superseded, Some(Ticket(1)));
    assert_eq!(latest.pending(), 2);
    assert_eq!(
        latest.accept(keyed(9), Millis(0.0)).unwrap_err().code(),
        Code::QueueFull
    );
    assert_eq!(
        latest.accept(request(), Millis(0.0)).unwrap_err().code(),
        Code::QueueFull
    );
}

#[test]
fn a_queue_is_bounded_in_bytes_too() {
    let queue_capacity = Capacity {
        calls: 100,
        bytes: 64,
    };
    let mut queue = queue(BatchConfig {
        overflow: Overflow::Reject,
        queue_capacity,
        ..config()
    });
    let large = Request {
        bytes: 48,
        ..request()
    };
    queue.accept(large, Millis(0.0)).unwrap();
    assert_eq!(
        queue.accept(large, Millis(0.0)).unwrap_err().code(),
        Code::QueueFull
    );
    send(&mut queue);
    assert!(
        queue.accept(large, Millis(0.0)).is_ok(),
        "what is in flight does not wait"
    );
    assert_eq!(
        queue.accept(large, Millis(0.0)).unwrap_err().code(),
        Code::QueueFull
    );
}

#[test]
fn a_call_beyond_the_capacity_still_fits_an_empty_queue() {
    let queue_capacity = Capacity {
        calls: 1,
        bytes: 64,
    };
    let mut queue = queue(BatchConfig {
        overflow: Overflow::Reject,
        queue_capacity,
        ..config()
    });
    assert!(
        queue
            .accept(
                Request {
                    bytes: 1000,
                    ..request()
                },
                Millis(0.0)
            )
            .is_ok()
    );
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let base = config();
    let cases = [
        (
            BatchConfig {
                max_batch_size: Some(0),
                ..base.clone()
            },
            "max batch size is 0",
        ),
        (
            BatchConfig {
                min_batch_size: 0,
                ..base.clone()
            },
            "min batch size is 0",
        ),
        (
            BatchConfig {
                queue_capacity: Capacity { calls: 0, bytes: 1 },
                ..base.clone()
            },
            "in calls is 0",
        ),
        (
            BatchConfig {
                queue_capacity: Capacity { calls: 1, bytes: 0 },
                ..base.clone()
            },
            "in bytes is 0",
        ),
        (
            BatchConfig {
                max_wait: Some(f64::NAN),
                ..base.clone()
            },
            "max wait is neg",
        ),
        (
            BatchConfig {
                max_wait: Some(-1.0),
                ..base.clone()
            },
            "max wait is neg",
        ),
        (
            BatchConfig {
                max_batch_size: Some(1),
                min_batch_size: 2,
                ..base.clone()
            },
            "below min batch size",
        ),
        (
            BatchConfig {
                max_batch_size: Some(9),
                queue_capacity: Capacity { calls: 8, bytes: 1 },
                ..base
            },
            "8 calls is below max batch size 9; give at least 9",
        ),
    ];
    for (config, part) in cases {
        let error = Queue::new(config, ()).expect_err(part);
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_limit_of_the_wait_counts_while_the_device_is_busy_or_for_a_target() {
    for target_latency in [None, Some(8.0)] {
        let mut queue = queue(BatchConfig {
            target_latency,
            policy: Policy::Auto,
            max_wait: None,
            ..config()
        });
        queue.limit_wait(3.0);
        queue.accept(request(), Millis(0.0)).unwrap();
        assert_eq!(queue.due(Millis(0.0)), Due::TaskEnd);
        let in_frames = target_latency.map_or(Due::Idle, |_| Due::At(Millis(3.0)));
        assert_eq!(queue.due_in_frames(Millis(0.0)), in_frames);
        queue.flush();
        queue.launch().expect("asked for");
        queue.accept(request(), Millis(0.0)).unwrap();
        assert_eq!(queue.due(Millis(0.0)), Due::At(Millis(3.0)));
    }
}
