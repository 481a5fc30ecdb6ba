//! The queue by example, and as a state machine.

mod limits;
mod priorities;
mod restoration;
mod under_random_events;

use super::*;
use crate::{Code, Error};

fn config() -> BatchConfig {
    BatchConfig {
        policy: Policy::Eager,
        max_wait: Some(16.0),
        ..Preset::Eager.config()
    }
}

/// A queue whose calls compute a number, for tests that choose among calls.
type Queue = super::Queue<u32, (), ()>;
type Batch = super::Batch<u32, ()>;

fn queue(config: BatchConfig) -> Queue {
    Queue::new(config, ()).expect("valid settings")
}

impl Queue {
    /// Takes a call.
    fn accept(&mut self, request: Request, now: Millis) -> Result<Accepted, Error> {
        let Admission { superseded, .. } = self.admit(&request, |()| ())?;
        let work = u32::try_from(request.bytes).expect("small");
        let (ticket, batch) = self.push(request, work, now, |()| ());
        Ok(Accepted {
            ticket,
            batch,
            superseded,
        })
    }

    /// Takes a call of this priority.
    fn accept_in(
        &mut self,
        priority: Priority,
        request: Request,
        now: Millis,
    ) -> Result<Accepted, Error> {
        if priority == Priority::Normal {
            return self.accept(request, now);
        }
        let superseded = self.admit_in(&request)?;
        self.open_in(priority, &request, || ());
        let work = u32::try_from(request.bytes).expect("small");
        let (ticket, batch) = self.push_in(priority, request, work, now);
        Ok(Accepted {
            ticket,
            batch,
            superseded,
        })
    }

    /// Sends the next batch, if one may go.
    fn launch(&mut self) -> Option<BatchId> {
        self.launch_at(Millis::default())
    }

    /// Sends the next batch, if one may go; of low work a slice, whose units are bytes.
    fn launch_at(&mut self, now: Millis) -> Option<BatchId> {
        let at = self.take(now, (), |()| ())?;
        let most = self.slice(now);
        let batch = self.flying(at);
        let id = batch.id;
        if batch.priority != Priority::Low {
            return Some(id);
        }
        let mut units = 0.0;
        let leaves = batch.calls().iter().enumerate().map(|(place, call)| {
            units += call.request.bytes as f64;
            place > 0 && units > most
        });
        let leaves: Vec<bool> = leaves.collect();
        if leaves.contains(&true) {
            let mut other = self.offshoot(at, ());
            let batch = self.flying_mut(at);
            other.append(batch.extract(&leaves), batch.origin);
            self.wait_in_low(other);
        }
        Some(id)
    }

    /// A batch in flight.
    fn sent(&self, id: BatchId) -> Option<&Batch> {
        let at = self.place_in_flight(id)?;
        Some(self.flying(at))
    }

    /// Settles a batch in flight. Returns the tickets of its live calls.
    fn land(&mut self, id: BatchId) -> Option<Vec<Ticket>> {
        let at = self.place_in_flight(id)?;
        Some(self.settle(at).batch.live_tickets().collect())
    }

    /// Has a batch in flight wait again.
    fn lose(&mut self, id: BatchId) {
        let at = self.place_in_flight(id).expect("in flight");
        self.requeue(at);
    }

    /// Parks a batch in flight.
    fn put_aside(&mut self, id: BatchId) {
        let at = self.place_in_flight(id).expect("in flight");
        self.park_flying(at);
    }

    /// Parks the marked calls of a batch in flight, as many as are live.
    fn divide(&mut self, id: BatchId, leaves: &[bool]) -> BatchId {
        let at = self.place_in_flight(id).expect("in flight");
        let mut other = self.offshoot(at, ());
        let batch = self.flying_mut(at);
        batch.reunite();
        batch.purge();
        other.append(batch.extract(leaves), batch.origin);
        let id = other.id;
        self.park(other);
        id
    }

    /// Sends a parked batch, if it may go.
    fn relaunch(&mut self, id: BatchId) -> bool {
        self.resume(id, ()).is_some()
    }
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

fn send(queue: &mut Queue) -> (BatchId, Vec<Ticket>) {
    queue.flush();
    let id = queue.launch().expect("a batch");
    let batch = queue.sent(id).expect("just sent");
    (id, batch.live_tickets().collect())
}

#[test]
fn a_call_is_found_in_its_batch_where_numbers_wrap() {
    let mut batch = Batch::new(BatchId(0), (), 4);
    let tickets = [u32::MAX - 1, u32::MAX, 0, 1].map(Ticket);
    for ticket in tickets {
        batch.push(ticket, request(), 0);
    }
    for (left, ticket) in [(3, 1), (2, 2), (1, 0), (0, 3)] {
        let ticket = tickets[ticket];
        assert_eq!(batch.give_up(ticket), Some(request()), "{ticket:?}");
        assert_eq!(batch.give_up(ticket), None);
        assert_eq!((batch.items, batch.live() as u64), (left, left));
        assert_eq!(batch.live_tickets().count() as u64, left);
    }
    batch.purge();
    assert!(batch.calls().is_empty());
}

#[test]
fn waits_are_counted_from_the_oldest_call() {
    let mut queue = queue(BatchConfig {
        min_batch_size: 8,
        ..config()
    });
    assert_eq!(queue.due(Millis(0.0)), Due::Idle);
    queue.accept(request(), Millis(100.0)).unwrap();
    assert_eq!(queue.due(Millis(100.0)), Due::At(Millis(116.0)));
    queue.accept(request(), Millis(110.0)).unwrap();
    assert_eq!(
        queue.due(Millis(110.0)),
        Due::At(Millis(116.0)),
        "a newcomer restarts nothing"
    );
    assert_eq!(queue.due(Millis(116.0)), Due::TaskEnd);
}

#[test]
fn each_policy_has_its_moment() {
    let wait = Some(5.0);
    let at = |moment| Due::At(Millis(moment));
    // A device that is idle, one that is busy, and one that is busy where frames come.
    let cases = [
        (Policy::Auto, None, 1, [Due::TaskEnd, at(16.0), Due::Idle]),
        (Policy::Auto, wait, 1, [Due::TaskEnd, at(5.0), at(5.0)]),
        (Policy::Auto, None, 2, [at(16.0), at(16.0), Due::Idle]),
        (Policy::Auto, wait, 2, [at(5.0), at(5.0), at(5.0)]),
        (Policy::Frame, None, 1, [Due::Idle; 3]),
        (Policy::Frame, wait, 1, [at(5.0); 3]),
        (Policy::Manual, None, 1, [Due::Idle; 3]),
        (Policy::Manual, wait, 1, [Due::Idle; 3]),
        (Policy::Eager, None, 1, [Due::TaskEnd, Due::Idle, Due::Idle]),
        (Policy::Eager, wait, 1, [Due::TaskEnd, at(5.0), at(5.0)]),
        (Policy::Eager, wait, 2, [at(5.0), at(5.0), at(5.0)]),
        (Policy::Eager, None, 2, [Due::TaskEnd, Due::Idle, Due::Idle]),
    ];
    for (policy, max_wait, min_batch_size, [idle, busy, in_frames]) in cases {
        let about = format!("{policy:?}, {max_wait:?}, {min_batch_size}");
        let config = BatchConfig {
            policy,
            max_wait,
            min_batch_size,
            max_in_flight: 2,
            ..config()
        };
        let mut queue = queue(config);
        queue.accept(request(), Millis(0.0)).unwrap();
        assert_eq!(queue.due(Millis(0.0)), idle, "{about}");
        send(&mut queue);
        queue.accept(request(), Millis(0.0)).unwrap();
        assert_eq!(queue.due(Millis(0.0)), busy, "busy: {about}");
        assert_eq!(queue.due_in_frames(Millis(0.0)), in_frames, "{about}");
        if let Due::At(moment) = busy {
            assert_eq!(queue.due(moment), Due::TaskEnd, "{about}");
        }
        send(&mut queue);
        queue.accept(request(), Millis(0.0)).unwrap();
        assert_eq!(
            queue.due(Millis(99.0)),
            Due::Idle,
            "two on their way: {about}"
        );
    }
}

#[test]
fn an_eager_queue_collects_while_the_device_is_busy() {
    let mut queue = queue(BatchConfig {
        max_wait: None,
        ..config()
    });
    queue.accept(request(), Millis(0.0)).unwrap();
    let (flying, _) = send(&mut queue);
    queue.accept(request(), Millis(1.0)).unwrap();
    queue.accept(request(), Millis(2.0)).unwrap();
    assert_eq!(queue.due(Millis(50.0)), Due::Idle);
    queue.land(flying).unwrap();
    assert_eq!(queue.due(Millis(50.0)), Due::TaskEnd);
    assert_eq!(send(&mut queue).1.len(), 2);
}

#[test]
fn a_flush_that_cannot_go_yet_takes_newcomers_along() {
    let mut queue = queue(BatchConfig {
        policy: Policy::Frame,
        max_in_flight: 1,
        ..config()
    });
    queue.accept(request(), Millis(0.0)).unwrap();
    let (flying, _) = send(&mut queue);
    for moment in 1_u8..=5 {
        queue.accept(request(), Millis(moment.into())).unwrap();
        queue.flush();
        assert_eq!(queue.launch(), None, "one is on its way");
    }
    queue.land(flying).unwrap();
    assert_eq!(queue.due(Millis(9.0)), Due::Now);
    let id = queue.launch().expect("what was asked for");
    let batch = queue.sent(id).expect("just taken");
    assert_eq!((batch.live(), batch.oldest), (5, Millis(1.0)));
    queue.land(id).unwrap();

    queue.accept(request(), Millis(10.0)).unwrap();
    assert_eq!(queue.launch(), None, "one flush sends one batch");
}

#[test]
fn a_flush_does_not_outlive_its_calls() {
    let mut queue = queue(BatchConfig {
        policy: Policy::Manual,
        max_in_flight: 1,
        max_wait: None,
        ..config()
    });
    queue.flush();
    queue.accept(request(), Millis(0.0)).unwrap();
    assert_eq!(queue.launch(), None, "there was nothing to flush");
    let (flying, _) = send(&mut queue);
    let given_up = queue.accept(request(), Millis(1.0)).unwrap().ticket;
    queue.flush();
    queue.abort(given_up);
    queue.accept(request(), Millis(2.0)).unwrap();
    queue.land(flying).unwrap();
    assert_eq!(queue.launch(), None, "nobody asked for the newcomer");
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
    let mut queue = queue(limits());
    let push = |queue: &mut Queue| {
        let accepted = queue.accept(request(), Millis(0.0)).unwrap();
        (accepted.ticket, accepted.batch)
    };
    let batches = [0, 1].map(|_| {
        push(&mut queue);
        send(&mut queue).0
    });
    let aside = batches[0];
    queue.put_aside(aside);
    push(&mut queue);
    let other = send(&mut queue).0;
    // One batch is full, another one is open.
    let waiting = [0; 3].map(|_| push(&mut queue).1);
    queue.flush();
    assert_eq!((queue.due(Millis(0.0)), queue.launch()), (Due::Idle, None));
    assert!(!queue.may_resume() && !queue.relaunch(aside));

    queue.flush_at_once();
    assert_eq!(queue.due(Millis(0.0)), Due::Now);
    assert_eq!(queue.launch(), Some(waiting[0]));
    assert_eq!(queue.launch(), Some(waiting[2]));
    assert!(queue.may_resume() && queue.relaunch(aside));
    // A batch that comes later waits for all batches in flight.
    push(&mut queue);
    queue.flush();
    assert_eq!((queue.due(Millis(0.0)), queue.launch()), (Due::Idle, None));
    for id in [batches[1], other, waiting[0], waiting[2]] {
        assert_eq!(queue.launch(), None);
        queue.land(id).unwrap();
    }
    let last = queue.launch().expect("fewer than two are in flight");
    // A batch that is sent again is in no hurry, and a flush does not outlive its calls.
    push(&mut queue);
    queue.flush_at_once();
    let urgent = queue.launch().expect("whatever is in flight");
    queue.lose(urgent);
    assert_eq!((queue.due(Millis(0.0)), queue.launch()), (Due::Idle, None));
    queue.land(last).unwrap();
    assert_eq!(queue.launch(), Some(urgent));
    let given_up = push(&mut queue).0;
    queue.flush_at_once();
    queue.abort(given_up);
    push(&mut queue);
    assert_eq!(queue.launch(), None);
}

#[test]
fn everything_given_up_comes_oldest_first() {
    let mut queue = queue(config());
    let mut batches = Vec::new();
    for _ in 0..2 {
        queue.accept(request(), Millis(0.0)).unwrap();
        batches.push(send(&mut queue).0);
    }
    queue.accept(request(), Millis(0.0)).unwrap();
    queue.lose(batches[0]); // The batch is sent again behind a younger one.
    assert_eq!(queue.launch(), Some(batches[0]));
    assert_eq!(queue.drain(()), [Ticket(0), Ticket(1), Ticket(2)]);
}
