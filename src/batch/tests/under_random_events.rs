//! The queue as a state machine under random events, against a plain list.

use std::collections::BTreeSet;
use std::ops::Range;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Event {
    Push(Priority, Request),
    Tick(f64),
    Flush,
    FlushAtOnce,
    /// Settles a batch: success and failure are the same to the queue.
    Return(prop::sample::Index),
    /// The device was lost: the batch is sent again.
    Lose(prop::sample::Index),
    /// Something becomes of a batch in flight.
    Way(prop::sample::Index, News),
    Resume(prop::sample::Index),
    Abort(prop::sample::Index),
    Dispose,
}

/// What becomes of a batch in flight.
#[derive(Clone, Copy, Debug)]
enum News {
    /// The calls whose bits are set cannot go yet: they are parked.
    Divided(u16),
    /// The calls whose bits are set go apart: they are the back.
    Parted(u16),
    /// A number of calls from a place on are answered.
    Answered(usize, usize),
}

fn news() -> impl Strategy<Value = News> {
    prop_oneof![
        2 => any::<u16>().prop_map(News::Divided),
        1 => any::<u16>().prop_map(News::Parted),
        2 => (0_usize..4, 0_usize..4).prop_map(|(from, count)| News::Answered(from, count)),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let priority = prop_oneof![
        4 => Just(Priority::Normal),
        1 => Just(Priority::High),
        1 => Just(Priority::Low),
    ];
    let request = (0_u64..5, 0_u64..9, 0_u64..40, prop::option::of(0_u32..3));
    let request = request.prop_map(|(items, cost, bytes, key)| Request {
        items,
        cost,
        bytes,
        key,
    });
    let push = (priority, request).prop_map(|(priority, request)| Event::Push(priority, request));
    let event = prop_oneof![
        8 => push,
        3 => (0.0..20.0).prop_map(Event::Tick),
        2 => Just(Event::Flush),
        1 => Just(Event::FlushAtOnce),
        3 => any::<prop::sample::Index>().prop_map(Event::Return),
        1 => any::<prop::sample::Index>().prop_map(Event::Lose),
        4 => (any::<prop::sample::Index>(), news()).prop_map(|(which, news)| Event::Way(which, news)),
        2 => any::<prop::sample::Index>().prop_map(Event::Resume),
        2 => any::<prop::sample::Index>().prop_map(Event::Abort),
        1 => Just(Event::Dispose),
    ];
    prop::collection::vec(event, 1..120)
}

fn any_config() -> impl Strategy<Value = BatchConfig> {
    let policy = prop_oneof![
        Just(Policy::Auto),
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
            queue_capacity: Capacity {
                calls: calls.max(max_batch_size.map_or(0, |most| most as usize)),
                bytes,
            },
            max_wait,
            target_latency: None,
            min_batch_size: 2,
        },
    )
}

/// The model: a plain list of who is waiting.
#[derive(Default)]
struct Model {
    waiting: Vec<(Ticket, Request)>,
    gone: BTreeSet<Ticket>,
    flying: Vec<BatchId>,
    aside: Vec<BatchId>,
    /// The batches that were parked when all was asked for at once.
    urgent: Vec<BatchId>,
    /// Bytes of all calls that were taken, gone or not.
    accepted: u64,
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

    fn launch(&mut self, queue: &mut Queue) {
        let config = queue.config().clone();
        while let Some(id) = queue.launch() {
            let batch = queue.sent(id).expect("just taken");
            let calls = batch.live_tickets();
            let calls = calls.filter_map(|t| self.waiting.iter().find(|w| w.0 == t));
            let (bytes, cost) = calls.fold((0, 0), |(bytes, cost), (_, request)| {
                (bytes + request.bytes, cost + request.cost)
            });
            let is_within = config.max_batch_size.is_none_or(|most| batch.items <= most);
            assert!(is_within || batch.live() == 1, "{} items", batch.items);
            assert!(
                bytes <= config.max_batch_bytes && cost <= config.max_batch_cost
                    || batch.live() == 1,
                "a batch of {bytes} bytes and cost {cost}"
            );
            assert!(batch.live_tickets().is_sorted(), "calls keep their order");
            self.flying.push(batch.id);
        }
    }

    /// Sends until nothing is due.
    fn send_due(&mut self, queue: &mut Queue) {
        loop {
            match queue.due(Millis(self.now)) {
                Due::Now => self.launch(queue),
                Due::TaskEnd => {
                    queue.flush();
                    self.launch(queue);
                }
                Due::At(moment) => {
                    return assert!(moment > Millis(self.now), "a due moment lies ahead");
                }
                Due::Idle => return,
            }
        }
    }

    /// What the settings promise of every batch, once what was due has been sent.
    fn check_promptness(&self, queue: &Queue) {
        let config = queue.config();
        if self.flying.len() >= config.max_in_flight || queue.open().is_empty() {
            return;
        }
        let is_low = |id: &BatchId| queue.sent(*id).expect("flying").priority == Priority::Low;
        let is_idle = self.flying.iter().all(is_low);
        let wait = match config.policy {
            Policy::Manual => None,
            Policy::Frame => config.max_wait,
            Policy::Eager | Policy::Auto if is_idle => {
                let is_enough = queue.open().items >= config.min_batch_size;
                assert!(!is_enough, "an idle device waits for no more");
                let otherwise = match config.policy {
                    Policy::Auto => 16.0,
                    _ => 0.0,
                };
                Some(config.max_wait.unwrap_or(otherwise))
            }
            Policy::Eager => config.max_wait,
            Policy::Auto => Some(config.max_wait.unwrap_or(16.0)),
        };
        let waited = self.now - queue.open().oldest.0;
        assert!(
            wait.is_none_or(|wait| waited < wait),
            "the oldest call has waited for {waited} ms"
        );
    }

    fn divide(&mut self, queue: &mut Queue, id: BatchId, leaves: u16) {
        let batch = queue.sent(id).expect("flying");
        let mut all: Vec<Ticket> = batch.live_tickets().collect();
        all.sort();
        let leaves: Vec<bool> = (0..all.len())
            .map(|at| leaves >> (at % 16) & 1 == 1)
            .collect();
        if leaves.iter().all(|leaves| *leaves) {
            queue.put_aside(id);
            self.flying.retain(|flying| *flying != id);
            return self.aside.push(id);
        }
        if !leaves.contains(&true) {
            return;
        }
        let other = queue.divide(id, &leaves);
        let staying = all.iter().zip(&leaves).filter(|(_, leaves)| !**leaves);
        let batch = queue.sent(id).expect("still flying");
        assert!(batch.live_tickets().eq(staying.map(|(ticket, _)| *ticket)));
        let parked = queue.parked().iter().any(|batch| batch.id == other);
        assert!(parked && queue.has_parked());
        self.aside.push(other);
    }

    fn travel(&mut self, queue: &mut Queue, id: BatchId, news: News) {
        match news {
            News::Divided(leaves) => self.divide(queue, id, leaves),
            News::Parted(chosen) => Self::reorder(queue, id, chosen),
            News::Answered(from, count) => self.answer(queue, id, from..from + count),
        }
    }

    fn reorder(queue: &mut Queue, id: BatchId, chosen: u16) {
        let at = queue.place_in_flight(id).expect("flying");
        let batch = queue.flying_mut(at);
        if !batch.behind().is_empty() {
            return; // The back is chosen once.
        }
        let mut before: Vec<Ticket> = batch.calls().iter().map(|call| call.ticket).collect();
        let is_chosen = |work: &u32| chosen >> (work % 16) & 1 == 1;
        batch.move_to_back(is_chosen);
        assert!(batch.behind().iter().all(|call| is_chosen(&call.work)));
        let runs = [batch.ahead(), batch.behind()];
        assert!(
            runs.iter()
                .all(|run| run.is_sorted_by_key(|call| call.ticket))
        );
        let mut after: Vec<Ticket> = batch.calls().iter().map(|call| call.ticket).collect();
        before.sort();
        after.sort();
        assert_eq!(before, after, "no call is lost");
    }

    fn answer(&mut self, queue: &mut Queue, id: BatchId, places: Range<usize>) {
        let at = queue.place_in_flight(id).expect("flying");
        let calls = queue.flying(at).calls();
        let places = places.start.min(calls.len())..places.end.min(calls.len());
        let answered = calls[places.clone()].iter().filter(|call| call.is_live);
        let answered: Vec<Ticket> = answered.map(|call| call.ticket).collect();
        let length = calls.len();
        queue.answered(at, places);
        assert_eq!(queue.flying(at).calls().len(), length);
        for ticket in answered {
            assert!(!queue.abort(ticket), "an answered call is over");
            self.leave(ticket);
        }
    }

    fn push(&mut self, queue: &mut Queue, priority: Priority, request: &Request) {
        let before = self.waiting.len();
        if let Ok(accepted) = queue.accept_in(priority, *request, Millis(self.now)) {
            if let Some(older) = accepted.superseded {
                let same = |(t, r): &(Ticket, Request)| *t == older && r.key == request.key;
                assert!(
                    self.waiting.iter().any(same),
                    "only a call of the same key gives way"
                );
                self.leave(older);
            }
            self.waiting.push((accepted.ticket, *request));
            self.accepted += request.bytes;
            let Capacity { calls, bytes } = queue.waiting_load();
            let most = queue.config().queue_capacity;
            let is_bounded = queue.config().overflow == Overflow::Reject;
            assert!(
                !is_bounded || calls == 1 || calls <= most.calls && bytes <= most.bytes,
                "{calls} calls of {bytes} bytes wait"
            );
        } else {
            assert_ne!(
                queue.config().overflow,
                Overflow::Wait,
                "waiting never refuses"
            );
            assert_eq!(queue.pending(), before, "a refusal changes nothing");
        }
        assert_eq!(queue.accepted_bytes(), self.accepted);
    }

    fn step(&mut self, queue: &mut Queue, event: &Event) {
        // A batch of high priority may pass the limit.
        let is_high = |id: &BatchId| queue.sent(*id).expect("flying").priority == Priority::High;
        let passing = usize::from(!self.flying.iter().any(is_high));
        let mut most = self.flying.len().max(queue.config().max_in_flight) + passing;
        match event {
            Event::Push(priority, request) => self.push(queue, *priority, request),
            Event::Tick(ms) => {
                self.now += ms;
                self.send_due(queue);
                self.check_promptness(queue);
            }
            Event::Flush => {
                queue.flush();
                self.launch(queue);
            }
            Event::FlushAtOnce => {
                queue.flush_at_once();
                self.launch(queue);
                assert!(!queue.is_ready(), "all that was queued is in flight");
                self.urgent.clone_from(&self.aside);
                most = usize::MAX;
            }
            Event::Return(index) if !self.flying.is_empty() => {
                let id = self.flying.remove(index.index(self.flying.len()));
                for ticket in queue.land(id).expect("in flight") {
                    self.leave(ticket);
                }
                assert_eq!(queue.land(id), None, "a batch returns once");
            }
            Event::Abort(index) if !self.waiting.is_empty() => {
                let (ticket, _) = self.waiting[index.index(self.waiting.len())];
                assert!(queue.abort(ticket));
                assert!(!queue.abort(ticket), "a call is aborted once");
                self.leave(ticket);
            }
            Event::Lose(index) if !self.flying.is_empty() => {
                let id = self.flying.remove(index.index(self.flying.len()));
                queue.lose(id);
                assert_eq!(queue.land(id), None, "what is queued cannot return");
            }
            Event::Resume(index) if !self.aside.is_empty() => {
                let at = index.index(self.aside.len());
                if queue.relaunch(self.aside[at]) {
                    let id = self.aside.remove(at);
                    most += usize::from(self.urgent.contains(&id));
                    self.urgent.retain(|urgent| *urgent != id);
                    self.flying.push(id);
                } else {
                    assert!(self.flying.len() >= queue.config().max_in_flight);
                }
            }
            Event::Way(index, news) if !self.flying.is_empty() => {
                let id = self.flying[index.index(self.flying.len())];
                self.travel(queue, id, *news);
            }
            Event::Return(_) | Event::Abort(_) | Event::Lose(_) => {}
            Event::Resume(_) | Event::Way(..) => {}
            Event::Dispose => {
                let tickets = queue.drain(());
                assert!(tickets.is_sorted(), "the oldest first");
                for ticket in tickets {
                    self.leave(ticket);
                }
                self.aside.clear();
                assert!(self.waiting.is_empty(), "disposal forgets nobody");
                self.flying.clear();
            }
        }
        assert_eq!(queue.pending(), self.waiting.len());
        assert_eq!(
            queue.pending_bytes(),
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
        let mut queue = queue(config);
        let mut model = Model::default();
        for event in &events {
            model.step(&mut queue, event);
        }
        model.step(&mut queue, &Event::Dispose);
        prop_assert_eq!(queue.pending_bytes(), 0);
        prop_assert_eq!(queue.due(Millis(1e9)), Due::Idle);
    }
}
