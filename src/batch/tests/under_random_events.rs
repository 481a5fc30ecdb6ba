//! The batcher as a state machine under random events, against a plain list.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Event {
    Push(Request),
    Tick(f64),
    Flush,
    FlushAtOnce,
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
    let push = (0_u64..5, 0_u64..9, 0_u64..40, prop::option::of(0_u32..3)).prop_map(
        |(items, cost, bytes, key)| {
            Event::Push(Request {
                items,
                cost,
                bytes,
                key,
            })
        },
    );
    let event = prop_oneof![
        8 => push,
        3 => (0.0..20.0).prop_map(Event::Tick),
        2 => Just(Event::Flush),
        1 => Just(Event::FlushAtOnce),
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
    let limits = (
        prop::option::of(4_u64..12),
        6_u64..40,
        30_u64..200,
        1_usize..4,
    );
    let queue = (1_usize..12, 20_u64..300);
    (policy, overflow, limits, queue, prop::option::of(0.0..30.0)).prop_map(
        |(
            policy,
            overflow,
            (max_batch_size, max_batch_cost, max_batch_bytes, max_in_flight),
            (calls, bytes),
            max_wait,
        )| BatchConfig {
            policy,
            overflow,
            max_batch_size,
            max_batch_cost,
            max_batch_bytes,
            memory_budget: None,
            max_in_flight,
            max_pieces_in_flight: None,
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
    /// Those set aside when all was asked for at once.
    urgent: Vec<BatchId>,
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
        let config = batcher.config().clone();
        while let Some(id) = batcher.take() {
            let batch = batcher.in_flight(id).expect("just taken");
            let calls = batch.tickets();
            let calls = calls.filter_map(|t| self.waiting.iter().find(|w| w.0 == t));
            let (bytes, cost) = calls.fold((0, 0), |(bytes, cost), (_, request)| {
                (bytes + request.bytes, cost + request.cost)
            });
            assert!(
                bytes <= config.max_batch_bytes && cost <= config.max_batch_cost
                    || batch.tickets().len() == 1,
                "a batch of {bytes} bytes and cost {cost}"
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
        let mut most = self.flying.len().max(batcher.config().max_in_flight);
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
            Event::FlushAtOnce => {
                batcher.flush_at_once();
                self.launch(batcher);
                assert!(!batcher.is_ready(), "all that was queued is in flight");
                self.urgent.clone_from(&self.aside);
                most = usize::MAX;
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
                    let id = self.aside.remove(at);
                    most += usize::from(self.urgent.contains(&id));
                    self.urgent.retain(|urgent| *urgent != id);
                    self.flying.push(id);
                } else {
                    assert!(self.flying.len() >= batcher.config().max_in_flight);
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
        assert!(self.flying.len() <= most);
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
