//! The batcher by example, and as a state machine.

mod under_random_events;

use super::calls::Entry;
use super::*;
use crate::Code;

fn config() -> BatchConfig {
    BatchConfig {
        policy: Policy::Eager,
        max_wait: Some(16.0),
        ..Preset::Eager.config()
    }
}

fn batcher(config: BatchConfig) -> Batcher {
    Batcher::new(config).expect("valid settings")
}

fn request() -> Request {
    Request {
        items: 1,
        cost: 0,
        bytes: 16,
        key: None,
    }
}

fn keyed(key: u32) -> Request {
    Request {
        key: Some(key),
        ..request()
    }
}

fn send(batcher: &mut Batcher) -> (BatchId, Vec<Ticket>) {
    batcher.flush();
    let id = batcher.take().expect("a batch");
    (
        id,
        batcher
            .in_flight(id)
            .expect("just taken")
            .tickets()
            .collect(),
    )
}

#[test]
fn a_call_is_found_in_its_batch_where_numbers_wrap() {
    let mut batch = Batch::new(BatchId(0), 4);
    let tickets = [u32::MAX - 1, u32::MAX, 0, 1].map(Ticket);
    for ticket in tickets {
        let request = request();
        batch.entries.push(Entry { ticket, request });
        batch.add(&request);
    }
    for (left, ticket) in [(3, 1), (2, 2), (1, 0), (0, 3)] {
        let ticket = tickets[ticket];
        assert_eq!(batch.remove(ticket), Some(request()), "{ticket:?}");
        assert_eq!(batch.remove(ticket), None);
        assert_eq!((batch.items, batch.tickets().len() as u64), (left, left));
    }
}

#[test]
fn waits_are_counted_from_the_oldest_call() {
    let mut batcher = batcher(BatchConfig {
        min_batch_size: 8,
        ..config()
    });
    assert_eq!(batcher.due(Millis(0.0)), Due::Idle);
    batcher.push(request(), Millis(100.0)).unwrap();
    assert_eq!(batcher.due(Millis(100.0)), Due::At(Millis(116.0)));
    batcher.push(request(), Millis(110.0)).unwrap();
    assert_eq!(
        batcher.due(Millis(110.0)),
        Due::At(Millis(116.0)),
        "a newcomer restarts nothing"
    );
    assert_eq!(batcher.due(Millis(116.0)), Due::TaskEnd);
}

#[test]
fn each_policy_has_its_moment() {
    let wait = Some(5.0);
    let cases = [
        (Policy::Frame, None, 1, Due::Idle),
        (Policy::Frame, wait, 1, Due::At(Millis(5.0))),
        (Policy::Manual, None, 1, Due::Idle),
        (Policy::Manual, wait, 1, Due::At(Millis(5.0))),
        (Policy::Eager, None, 1, Due::TaskEnd),
        (Policy::Eager, wait, 1, Due::TaskEnd),
        (Policy::Eager, wait, 2, Due::At(Millis(5.0))),
        (Policy::Eager, None, 2, Due::TaskEnd),
    ];
    for (policy, max_wait, min_batch_size, expected) in cases {
        let mut batcher = batcher(BatchConfig {
            policy,
            max_wait,
            min_batch_size,
            ..config()
        });
        batcher.push(request(), Millis(0.0)).unwrap();
        assert_eq!(
            batcher.due(Millis(0.0)),
            expected,
            "{policy:?}, {max_wait:?}, {min_batch_size}"
        );
    }
}

#[test]
fn an_eager_batcher_collects_while_the_device_is_busy() {
    let mut batcher = batcher(config());
    batcher.push(request(), Millis(0.0)).unwrap();
    let (flying, _) = send(&mut batcher);
    batcher.push(request(), Millis(1.0)).unwrap();
    batcher.push(request(), Millis(2.0)).unwrap();
    assert_eq!(batcher.due(Millis(50.0)), Due::Idle);
    batcher.settle(flying).unwrap();
    assert_eq!(batcher.due(Millis(50.0)), Due::TaskEnd);
    assert_eq!(send(&mut batcher).1.len(), 2);
}

#[test]
fn a_flush_that_cannot_go_yet_takes_newcomers_along() {
    let mut batcher = batcher(BatchConfig {
        policy: Policy::Frame,
        max_in_flight: 1,
        ..config()
    });
    batcher.push(request(), Millis(0.0)).unwrap();
    let (flying, _) = send(&mut batcher);
    for moment in 1_u8..=5 {
        batcher.push(request(), Millis(moment.into())).unwrap();
        batcher.flush();
        assert_eq!(batcher.take(), None, "one is on its way");
    }
    batcher.settle(flying).unwrap();
    assert_eq!(batcher.due(Millis(9.0)), Due::Now);
    let id = batcher.take().expect("what was asked for");
    let batch = batcher.in_flight(id).expect("just taken");
    assert_eq!((batch.tickets().len(), batch.oldest), (5, Millis(1.0)));
    batcher.settle(id).unwrap();

    batcher.push(request(), Millis(10.0)).unwrap();
    assert_eq!(batcher.take(), None, "one flush sends one batch");
}

#[test]
fn a_flush_does_not_outlive_its_calls() {
    let mut batcher = batcher(BatchConfig {
        policy: Policy::Manual,
        max_in_flight: 1,
        max_wait: None,
        ..config()
    });
    batcher.flush();
    batcher.push(request(), Millis(0.0)).unwrap();
    assert_eq!(batcher.take(), None, "there was nothing to flush");
    let (flying, _) = send(&mut batcher);
    let given_up = batcher.push(request(), Millis(1.0)).unwrap().ticket;
    batcher.flush();
    batcher.abort(given_up);
    batcher.push(request(), Millis(2.0)).unwrap();
    batcher.settle(flying).unwrap();
    assert_eq!(batcher.take(), None, "nobody asked for the newcomer");
}

#[test]
fn what_is_wanted_at_once_passes_the_limit() {
    let limits = || BatchConfig {
        policy: Policy::Frame,
        max_wait: None,
        max_in_flight: 2,
        max_batch_size: Some(2),
        ..config()
    };
    let mut batcher = batcher(limits());
    let push = |batcher: &mut Batcher| {
        let accepted = batcher.push(request(), Millis(0.0)).unwrap();
        (accepted.ticket, accepted.batch)
    };
    let batches = [0, 1].map(|_| {
        push(&mut batcher);
        send(&mut batcher).0
    });
    let aside = batches[0];
    batcher.set_aside(aside);
    push(&mut batcher);
    let other = send(&mut batcher).0;
    // One is full, one is open.
    let waiting = [0; 3].map(|_| push(&mut batcher).1);
    batcher.flush();
    assert_eq!(
        (batcher.due(Millis(0.0)), batcher.take()),
        (Due::Idle, None)
    );
    assert!(!batcher.may_resume() && !batcher.resume(aside));

    batcher.flush_at_once();
    assert_eq!(batcher.due(Millis(0.0)), Due::Now);
    assert_eq!(batcher.take(), Some(waiting[0]));
    assert_eq!(batcher.take(), Some(waiting[2]));
    assert!(batcher.may_resume() && batcher.resume(aside));
    // What comes later waits for all of them.
    push(&mut batcher);
    batcher.flush();
    assert_eq!(
        (batcher.due(Millis(0.0)), batcher.take()),
        (Due::Idle, None)
    );
    for id in [batches[1], other, waiting[0], waiting[2]] {
        assert_eq!(batcher.take(), None);
        batcher.settle(id).unwrap();
    }
    let last = batcher.take().expect("fewer than two are in flight");
    // What is sent again is in no hurry, nor does the flush outlive its calls.
    push(&mut batcher);
    batcher.flush_at_once();
    let urgent = batcher.take().expect("whatever is in flight");
    batcher.requeue(urgent);
    assert_eq!(
        (batcher.due(Millis(0.0)), batcher.take()),
        (Due::Idle, None)
    );
    batcher.settle(last).unwrap();
    assert_eq!(batcher.take(), Some(urgent));
    let given_up = push(&mut batcher).0;
    batcher.flush_at_once();
    batcher.abort(given_up);
    push(&mut batcher);
    assert_eq!(batcher.take(), None);
}

#[test]
fn everything_given_up_comes_oldest_first() {
    let mut batcher = batcher(config());
    let mut batches = Vec::new();
    for _ in 0..2 {
        batcher.push(request(), Millis(0.0)).unwrap();
        batches.push(send(&mut batcher).0);
    }
    batcher.push(request(), Millis(0.0)).unwrap();
    assert!(
        batcher.requeue(batches[0]),
        "sent again behind a younger one"
    );
    assert_eq!(batcher.take(), Some(batches[0]));
    assert_eq!(batcher.drain(), [Ticket(0), Ticket(1), Ticket(2)]);
}

#[test]
fn a_full_batch_opens_the_next_one() {
    let mut batcher = batcher(BatchConfig {
        max_batch_size: Some(2),
        ..config()
    });
    let batches: Vec<u32> = (0..5)
        .map(|_| batcher.push(request(), Millis(0.0)).unwrap().batch.0)
        .collect();
    assert_eq!(batches, [0, 0, 1, 1, 2]);
    assert_eq!(batcher.due(Millis(0.0)), Due::Now);
}

#[test]
fn a_call_larger_than_a_batch_goes_alone() {
    let mut batcher = batcher(BatchConfig {
        max_batch_bytes: 100,
        ..config()
    });
    let sizes = [16, 500, 16];
    let batches: Vec<u32> = sizes
        .map(|bytes| {
            batcher
                .push(Request { bytes, ..request() }, Millis(0.0))
                .unwrap()
                .batch
                .0
        })
        .to_vec();
    assert_eq!(batches, [0, 1, 2]);
}

#[test]
fn a_batch_is_full_by_what_its_calls_cost() {
    let mut batcher = batcher(BatchConfig {
        max_batch_cost: 100,
        ..config()
    });
    let costs = [40, 50, 20, 80, 500, 1];
    let batches: Vec<u32> = costs
        .map(|cost| {
            let given = Request { cost, ..request() };
            batcher.push(given, Millis(0.0)).unwrap().batch.0
        })
        .to_vec();
    assert_eq!(batches, [0, 0, 1, 1, 2, 3]);
    let mut fill = || {
        let id = batcher.take().expect("a full batch");
        let fill = batcher.fill(batcher.in_flight(id).expect("just taken"));
        batcher.settle(id);
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
        let mut batcher = batcher(BatchConfig {
            overflow,
            queue_capacity,
            ..config()
        });
        batcher.push(keyed(7), Millis(0.0)).unwrap();
        batcher.push(keyed(8), Millis(0.0)).unwrap();
        batcher
    };

    let mut waiting = full(Overflow::Wait);
    assert_eq!(waiting.desired_size(), 0);
    assert!(waiting.push(keyed(7), Millis(0.0)).is_ok());
    assert_eq!(waiting.desired_size(), -1);
    assert_eq!(waiting.due(Millis(0.0)), Due::Now, "full means flush");

    let mut rejecting = full(Overflow::Reject);
    assert_eq!(
        rejecting.push(keyed(7), Millis(0.0)).unwrap_err().code(),
        Code::QueueFull
    );
    assert_eq!(rejecting.pending(), 2);
    assert_eq!(rejecting.due(Millis(0.0)), Due::Now, "full means flush");

    let mut latest = full(Overflow::Latest);
    let accepted = latest.push(keyed(8), Millis(0.0)).unwrap();
    assert_eq!(accepted.superseded, Some(Ticket(1)));
    assert_eq!(latest.pending(), 2);
    assert_eq!(
        latest.push(keyed(9), Millis(0.0)).unwrap_err().code(),
        Code::QueueFull
    );
    assert_eq!(
        latest.push(request(), Millis(0.0)).unwrap_err().code(),
        Code::QueueFull
    );
}

#[test]
fn a_queue_is_bounded_in_bytes_too() {
    let queue_capacity = Capacity {
        calls: 100,
        bytes: 64,
    };
    let mut batcher = batcher(BatchConfig {
        overflow: Overflow::Reject,
        queue_capacity,
        ..config()
    });
    let large = Request {
        bytes: 48,
        ..request()
    };
    batcher.push(large, Millis(0.0)).unwrap();
    assert_eq!(
        batcher.push(large, Millis(0.0)).unwrap_err().code(),
        Code::QueueFull
    );
    let (id, _) = send(&mut batcher);
    assert_eq!(
        batcher.push(large, Millis(0.0)).unwrap_err().code(),
        Code::QueueFull,
        "in flight counts"
    );
    batcher.settle(id).unwrap();
    assert!(batcher.push(large, Millis(0.0)).is_ok());
}

#[test]
fn a_call_beyond_the_capacity_still_fits_an_empty_queue() {
    let queue_capacity = Capacity {
        calls: 1,
        bytes: 64,
    };
    let mut batcher = batcher(BatchConfig {
        overflow: Overflow::Reject,
        queue_capacity,
        ..config()
    });
    assert!(
        batcher
            .push(
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
                ..base
            },
            "below min batch size",
        ),
    ];
    for (config, part) in cases {
        let error = Batcher::new(config).expect_err(part);
        assert_eq!(error.code(), Code::InvalidInput);
        assert!(error.to_string().contains(part), "{error}");
    }
}
