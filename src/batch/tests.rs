//! The batcher by example, and as a state machine under random events.

use std::collections::BTreeSet;

use proptest::prelude::*;

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

#[derive(Clone, Debug)]
enum Event {
    Push(Request),
    Tick(f64),
    Flush,
    /// Success and failure are the same to the batcher.
    Return(prop::sample::Index),
    /// The device was lost: the batch is sent again.
    Lose(prop::sample::Index),
    /// Of a batch in flight, the calls whose bits are set cannot go yet.
    Divide(prop::sample::Index, u16),
    Resume(prop::sample::Index),
    Abort(prop::sample::Index),
    Dispose,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let push = (0_u64..5, 0_u64..40, prop::option::of(0_u32..3))
        .prop_map(|(items, bytes, key)| Event::Push(Request { items, bytes, key }));
    let event = prop_oneof![
        8 => push,
        3 => (0.0..20.0).prop_map(Event::Tick),
        2 => Just(Event::Flush),
        3 => any::<prop::sample::Index>().prop_map(Event::Return),
        1 => any::<prop::sample::Index>().prop_map(Event::Lose),
        2 => (any::<prop::sample::Index>(), any::<u16>()).prop_map(|(which, leaves)| Event::Divide(which, leaves)),
        2 => any::<prop::sample::Index>().prop_map(Event::Resume),
        2 => any::<prop::sample::Index>().prop_map(Event::Abort),
        1 => Just(Event::Dispose),
    ];
    prop::collection::vec(event, 1..120)
}

fn any_config() -> impl Strategy<Value = BatchConfig> {
    let policy = prop_oneof![
        Just(Policy::Frame),
        Just(Policy::Eager),
        Just(Policy::Manual)
    ];
    let overflow = prop_oneof![
        Just(Overflow::Wait),
        Just(Overflow::Reject),
        Just(Overflow::Latest)
    ];
    let limits = (prop::option::of(4_u64..12), 30_u64..200, 1_usize..4);
    let queue = (1_usize..12, 20_u64..300);
    (policy, overflow, limits, queue, prop::option::of(0.0..30.0)).prop_map(
        |(
            policy,
            overflow,
            (max_batch_size, max_batch_bytes, max_in_flight),
            (calls, bytes),
            max_wait,
        )| BatchConfig {
            policy,
            overflow,
            max_batch_size,
            max_batch_bytes,
            memory_budget: None,
            max_in_flight,
            queue_capacity: Capacity { calls, bytes },
            max_wait,
            min_batch_size: 2,
        },
    )
}

/// What must hold whatever happens: a plain list of who is waiting.
#[derive(Default)]
struct Model {
    waiting: Vec<(Ticket, Request)>,
    gone: BTreeSet<Ticket>,
    flying: Vec<BatchId>,
    aside: Vec<BatchId>,
    now: f64,
}

impl Model {
    fn leave(&mut self, ticket: Ticket) {
        let index = self
            .waiting
            .iter()
            .position(|(waiting, _)| *waiting == ticket);
        self.waiting
            .remove(index.expect("only waiting calls leave"));
        assert!(self.gone.insert(ticket), "{ticket:?} settled twice");
    }

    fn launch(&mut self, batcher: &mut Batcher) {
        let limit = batcher.config().max_batch_bytes;
        while let Some(id) = batcher.take() {
            let batch = batcher.in_flight(id).expect("just taken");
            let bytes: u64 = batch
                .tickets()
                .filter_map(|t| self.waiting.iter().find(|w| w.0 == t))
                .map(|w| w.1.bytes)
                .sum();
            assert!(
                bytes <= limit || batch.tickets().len() == 1,
                "a batch of {bytes} bytes"
            );
            assert!(batch.tickets().is_sorted(), "calls keep their order");
            self.flying.push(batch.id);
        }
    }

    fn divide(&mut self, batcher: &mut Batcher, id: BatchId, leaves: u16) {
        let batch = batcher.in_flight(id).expect("flying");
        let all: Vec<Ticket> = batch.tickets().collect();
        let leaves: Vec<bool> = (0..all.len())
            .map(|at| leaves >> (at % 16) & 1 == 1)
            .collect();
        if leaves.iter().all(|leaves| *leaves) {
            batcher.set_aside(id);
            self.flying.retain(|flying| *flying != id);
            return self.aside.push(id);
        }
        if !leaves.contains(&true) {
            return;
        }
        let other = batcher.divide(id, &leaves).expect("flying");
        let staying = all.iter().zip(&leaves).filter(|(_, leaves)| !**leaves);
        let batch = batcher.in_flight(id).expect("still flying");
        assert!(batch.tickets().eq(staying.map(|(ticket, _)| *ticket)));
        assert!(batcher.is_waiting(other) && batcher.has_aside());
        self.aside.push(other);
    }

    fn push(&mut self, batcher: &mut Batcher, request: &Request) {
        let before = self.waiting.len();
        if let Ok(accepted) = batcher.push(*request, Millis(self.now)) {
            if let Some(older) = accepted.superseded {
                let same = |(t, r): &(Ticket, Request)| *t == older && r.key == request.key;
                assert!(
                    self.waiting.iter().any(same),
                    "only a call of the same key gives way"
                );
                self.leave(older);
            }
            self.waiting.push((accepted.ticket, *request));
        } else {
            assert_ne!(
                batcher.config().overflow,
                Overflow::Wait,
                "waiting never refuses"
            );
            assert_eq!(batcher.pending(), before, "a refusal changes nothing");
        }
    }

    fn step(&mut self, batcher: &mut Batcher, event: &Event) {
        match event {
            Event::Push(request) => self.push(batcher, request),
            Event::Tick(ms) => {
                self.now += ms;
                match batcher.due(Millis(self.now)) {
                    Due::Now => self.launch(batcher),
                    Due::TaskEnd => {
                        batcher.flush();
                        self.launch(batcher);
                    }
                    Due::At(moment) => {
                        assert!(moment > Millis(self.now), "a due moment lies ahead")
                    }
                    Due::Idle => {}
                }
            }
            Event::Flush => {
                batcher.flush();
                self.launch(batcher);
            }
            Event::Return(index) if !self.flying.is_empty() => {
                let id = self.flying.remove(index.index(self.flying.len()));
                for ticket in batcher.settle(id).expect("in flight") {
                    self.leave(ticket);
                }
                assert_eq!(batcher.settle(id), None, "a batch returns once");
            }
            Event::Abort(index) if !self.waiting.is_empty() => {
                let (ticket, _) = self.waiting[index.index(self.waiting.len())];
                assert!(batcher.abort(ticket));
                assert!(!batcher.abort(ticket), "a call is aborted once");
                self.leave(ticket);
            }
            Event::Lose(index) if !self.flying.is_empty() => {
                let id = self.flying.remove(index.index(self.flying.len()));
                assert!(batcher.requeue(id));
                assert_eq!(batcher.settle(id), None, "what is queued cannot return");
            }
            Event::Divide(index, leaves) if !self.flying.is_empty() => {
                let id = self.flying[index.index(self.flying.len())];
                self.divide(batcher, id, *leaves);
            }
            Event::Resume(index) if !self.aside.is_empty() => {
                let at = index.index(self.aside.len());
                if batcher.resume(self.aside[at]) {
                    self.flying.push(self.aside.remove(at));
                } else {
                    assert_eq!(self.flying.len(), batcher.config().max_in_flight);
                }
            }
            Event::Return(_) | Event::Abort(_) | Event::Lose(_) => {}
            Event::Divide(..) | Event::Resume(_) => {}
            Event::Dispose => {
                let tickets = batcher.drain();
                assert!(tickets.is_sorted(), "the oldest first");
                for ticket in tickets {
                    self.leave(ticket);
                }
                self.aside.clear();
                assert!(self.waiting.is_empty(), "disposal forgets nobody");
                self.flying.clear();
            }
        }
        assert_eq!(batcher.pending(), self.waiting.len());
        assert_eq!(
            batcher.pending_bytes(),
            self.waiting.iter().map(|(_, r)| r.bytes).sum::<u64>()
        );
        assert!(self.flying.len() <= batcher.config().max_in_flight);
    }
}

proptest! {
    /// Submit, tick, flush, settle, fail, abort, supersede, dispose in any
    /// order: every ticket leaves exactly once and every byte comes back.
    #[test]
    fn every_ticket_leaves_exactly_once(config in any_config(), events in events()) {
        let mut batcher = batcher(config);
        let mut model = Model::default();
        for event in &events {
            model.step(&mut batcher, event);
        }
        model.step(&mut batcher, &Event::Dispose);
        prop_assert_eq!(batcher.pending_bytes(), 0);
        prop_assert_eq!(batcher.due(Millis(1e9)), Due::Idle);
    }
}
