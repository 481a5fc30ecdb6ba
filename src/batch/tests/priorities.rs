//! Priorities: what goes first, in which slices, and that nobody starves.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const PRIORITIES: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

/// A call of so many units of work, which are its bytes.
fn work(units: u64) -> Request {
    Request {
        bytes: units,
        ..request()
    }
}

/// Takes a call, which has room; its ticket.
fn put(queue: &mut Queue, priority: Priority, units: u64, now: f64) -> Ticket {
    let accepted = queue.accept_in(priority, work(units), Millis(now));
    accepted.expect("room").ticket
}

/// Calls of low priority that wait.
fn waiting_low(queue: &Queue) -> usize {
    let low = queue
        .waiting()
        .filter(|batch| batch.priority == Priority::Low);
    low.map(Batch::live).sum()
}

/// The tickets of each batch that goes now.
fn sent(queue: &mut Queue, now: f64) -> Vec<Vec<Ticket>> {
    let batches = std::iter::from_fn(|| queue.launch_at(Millis(now)));
    let batches: Vec<BatchId> = batches.collect();
    let tickets = |id: BatchId| queue.sent(id).expect("sent").live_tickets().collect();
    batches.into_iter().map(tickets).collect()
}

#[test]
fn high_goes_first_and_low_last_each_in_its_own_batch() {
    let mut queue = queue(config());
    let low = put(&mut queue, Priority::Low, 1, 0.0);
    let normal = put(&mut queue, Priority::Normal, 1, 0.0);
    let high = [(); 2].map(|()| put(&mut queue, Priority::High, 1, 0.0));
    queue.flush();
    assert_eq!(
        sent(&mut queue, 0.0),
        [high.to_vec(), vec![normal], vec![low]]
    );
}

#[test]
fn high_waits_for_no_policy_and_low_for_a_flush_by_hand_alone() {
    for policy in [Policy::Auto, Policy::Frame, Policy::Eager, Policy::Manual] {
        let mut queue = queue(BatchConfig { policy, ..config() });
        let [low, _, high] = PRIORITIES.map(|priority| put(&mut queue, priority, 1, 0.0));
        assert!(queue.has_turn(Millis(0.0)));
        let expected = match policy {
            Policy::Manual => vec![vec![high]],
            _ => vec![vec![high], vec![low]],
        };
        assert_eq!(sent(&mut queue, 0.0), expected, "{policy:?}");
        assert!(!queue.has_turn(Millis(0.0)));
    }
}

#[test]
fn one_batch_of_high_priority_passes_the_limit() {
    let limits = BatchConfig {
        max_in_flight: 1,
        ..config()
    };
    let mut queue = queue(limits);
    put(&mut queue, Priority::Normal, 1, 0.0);
    let (normal, _) = send(&mut queue);
    let first = put(&mut queue, Priority::High, 1, 0.0);
    assert_eq!(sent(&mut queue, 0.0), [[first]]);
    let second = put(&mut queue, Priority::High, 1, 0.0);
    assert!(sent(&mut queue, 0.0).is_empty(), "another one is in flight");
    queue.land(normal);
    assert!(sent(&mut queue, 0.0).is_empty(), "and has the place");
    let flying = queue.in_flight()[0].batch.id;
    queue.land(flying);
    assert_eq!(sent(&mut queue, 0.0), [[second]]);
}

#[test]
fn low_work_leaves_an_idle_device_to_normal_calls() {
    let mut queue = queue(config());
    put(&mut queue, Priority::Low, 1, 0.0);
    assert_eq!(sent(&mut queue, 0.0).len(), 1);
    put(&mut queue, Priority::Normal, 1, 0.0);
    assert_eq!(
        queue.due(Millis(0.0)),
        Due::TaskEnd,
        "as if nothing were in flight"
    );
}

#[test]
fn low_work_rests_as_long_as_the_caller_says_so() {
    let mut queue = queue(config());
    queue.set_low_work(LowWork::Rests);
    put(&mut queue, Priority::Low, 1, 0.0);
    assert!(queue.has_low() && sent(&mut queue, 0.0).is_empty());
    queue.set_low_work(LowWork::Goes);
    assert_eq!(sent(&mut queue, 0.0).len(), 1);
    assert!(!queue.has_low());
}

#[test]
fn a_place_is_kept_for_low_work_that_is_owed_and_rests() {
    let limits = BatchConfig {
        max_in_flight: 2,
        ..config()
    };
    let mut queue = queue(limits);
    queue.set_low_work(LowWork::Rests);
    let low = put(&mut queue, Priority::Low, 1, 0.0);
    queue.took(Priority::Normal, 0.0, 100.0);
    put(&mut queue, Priority::Normal, 1, 0.0);
    send(&mut queue);
    put(&mut queue, Priority::Normal, 1, 0.0);
    queue.flush();
    assert!(sent(&mut queue, 0.0).is_empty());
    queue.set_low_work(LowWork::Goes);
    assert_eq!(sent(&mut queue, 0.0), [[low]]);
    // Whoever goes on with what was queued waits for nobody.
    queue.set_low_work(LowWork::Rests);
    put(&mut queue, Priority::Low, 1, 0.0);
    queue.flush_at_once();
    assert_eq!(sent(&mut queue, 0.0).len(), 1);
}

/// A queue whose calls of more than five units have low batches of their own.
fn queue_of_low_batches(units: &[u64]) -> (Queue, Vec<Ticket>) {
    let limits = BatchConfig {
        policy: Policy::Manual,
        max_batch_bytes: 10,
        max_in_flight: 1,
        ..config()
    };
    let mut queue = queue(limits);
    let tickets = units
        .iter()
        .map(|units| put(&mut queue, Priority::Low, *units, 0.0))
        .collect();
    (queue, tickets)
}

/// The work of each batch that goes, one after the other.
fn sent_in_turn(queue: &mut Queue) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    while let Some(id) = queue.launch_at(Millis(0.0)) {
        let batch = queue.sent(id).expect("sent");
        all.push(batch.calls().iter().map(|call| call.work).collect());
        queue.land(id);
    }
    all
}

fn has(batch: &Batch, work: u32) -> bool {
    batch.calls().iter().any(|call| call.work == work)
}

/// Has what precedes a call of this priority go before it: the batch of `needed`, and what
/// the pairs say goes before that.
fn promote(queue: &mut Queue, to: Priority, needed: u32, pairs: &[(u32, u32)]) {
    let order = Order {
        precedes_call: &|batch: &Batch| has(batch, needed),
        precedes: &|batch: &Batch, later: &Batch| {
            let mut pairs = pairs.iter();
            pairs.any(|(first, second)| has(batch, *first) && has(later, *second))
        },
    };
    queue.promote(to, &order, |()| ());
}

#[test]
fn only_what_a_call_depends_on_is_promoted() {
    // What low batches the call needs, which precede others, and what goes with the call.
    for (needed, pairs, expected) in [
        (8, &[][..], vec![8]),
        (8, &[(6, 8)], vec![6, 8]),
        (9, &[(6, 8), (7, 9)], vec![7, 9]),
        (9, &[(6, 7), (7, 9)], vec![6, 7, 9]),
        (5, &[(6, 7)], vec![]),
    ] {
        let mut expected: Vec<Vec<u32>> = expected.into_iter().map(|work| vec![work]).collect();
        expected.push(vec![1]);
        let (mut queue, low) = queue_of_low_batches(&[6, 7, 8, 9]);
        promote(&mut queue, Priority::Normal, needed, pairs);
        put(&mut queue, Priority::Normal, 1, 0.0);
        assert!(sent_in_turn(&mut queue).is_empty(), "nobody flushed");
        queue.flush();
        let sent = sent_in_turn(&mut queue);
        assert_eq!(sent[..expected.len()], expected, "{needed} {pairs:?}");
        assert_eq!(sent.len(), low.len() + 1);

        let (mut queue, low) = queue_of_low_batches(&[6, 7, 8, 9]);
        promote(&mut queue, Priority::High, needed, pairs);
        put(&mut queue, Priority::High, 1, 0.0);
        assert_eq!(sent_in_turn(&mut queue), expected, "without a flush");
        assert_eq!(waiting_low(&queue), low.len() + 1 - expected.len());
    }
}

#[test]
fn what_a_promoted_normal_batch_depends_on_comes_along() {
    let (mut queue, _) = queue_of_low_batches(&[6, 7]);
    promote(&mut queue, Priority::Normal, 7, &[]);
    put(&mut queue, Priority::Normal, 1, 0.0);
    promote(&mut queue, Priority::High, 1, &[(7, 1)]);
    put(&mut queue, Priority::High, 2, 0.0);
    assert_eq!(sent_in_turn(&mut queue), [[7], [1], [2]]);
}

#[test]
fn a_call_that_joins_a_batch_already_asked_for_waits_for_low_work_that_it_depends_on() {
    let (mut queue, _) = queue_of_low_batches(&[]);
    put(&mut queue, Priority::Normal, 3, 0.0);
    queue.flush();
    let first = queue.launch_at(Millis(0.0)).expect("a batch");
    put(&mut queue, Priority::Normal, 1, 0.0);
    queue.flush();
    put(&mut queue, Priority::Low, 6, 0.0);
    promote(&mut queue, Priority::Normal, 6, &[]);
    put(&mut queue, Priority::Normal, 2, 0.0);
    assert!(queue.launch_at(Millis(0.0)).is_none(), "one is in flight");
    queue.land(first);
    assert_eq!(sent_in_turn(&mut queue), [vec![6], vec![1, 2]]);
}

#[test]
fn a_high_call_that_was_given_up_lends_its_hurry_to_no_other() {
    let limits = BatchConfig {
        max_in_flight: 1,
        max_batch_bytes: 10,
        ..config()
    };
    let mut queue = queue(limits);
    let given_up = put(&mut queue, Priority::High, 1, 0.0);
    let first = put(&mut queue, Priority::High, 10, 0.0);
    assert!(queue.abort(given_up));
    queue.flush_at_once();
    assert_eq!(sent(&mut queue, 0.0), [[first]]);
    put(&mut queue, Priority::High, 1, 0.0);
    assert!(sent(&mut queue, 0.0).is_empty(), "another is on its way");
}

#[test]
fn low_work_whose_successor_is_given_up_stays_low_work() {
    let (mut queue, _) = queue_of_low_batches(&[6]);
    promote(&mut queue, Priority::Normal, 6, &[]);
    let normal = put(&mut queue, Priority::Normal, 1, 0.0);
    assert!(queue.abort(normal));
    assert!(!queue.is_ready() && waiting_low(&queue) == 1);
    queue.flush();
    assert_eq!(sent_in_turn(&mut queue), [[6]]);
}

#[test]
fn a_slice_that_leaves_an_awaited_batch_leaves_the_rest_awaited() {
    let limits = BatchConfig {
        max_in_flight: 1,
        ..config()
    };
    let mut queue = queue(limits);
    for _ in 0..3 {
        put(&mut queue, Priority::Low, 6, 0.0);
    }
    promote(&mut queue, Priority::Normal, 6, &[]);
    put(&mut queue, Priority::Normal, 1, 0.0);
    let slice = queue
        .launch_at(Millis(0.0))
        .expect("the first slice is a call");
    queue.land(slice);
    queue.flush();
    assert_eq!(sent_in_turn(&mut queue), [vec![6, 6], vec![1]]);
}

#[test]
fn where_the_caller_computes_slices_are_short_and_go_alone() {
    let mut queue = queue(config());
    // A unit takes a millisecond.
    queue.took(Priority::Low, 10.0, 10.0);
    for _ in 0..30 {
        put(&mut queue, Priority::Low, 1, 0.0);
    }
    queue.set_low_work(LowWork::GoesBriefly);
    let brief = sent(&mut queue, 0.0);
    let sizes: Vec<usize> = brief.iter().map(Vec::len).collect();
    assert!(sizes.len() == 1 && sizes[0] <= 5, "{sizes:?}");
    queue.set_low_work(LowWork::Goes);
    assert!(
        !sent(&mut queue, 0.0).is_empty(),
        "a device of its own works on"
    );
}

/// A device that computes one batch after the other.
struct Device {
    /// Milliseconds of a unit of work, and of the way there and back.
    rate: f64,
    trip: f64,
    now: f64,
    /// When the last batch was back, and the time that was spent on each priority.
    last: f64,
    busy: [f64; 3],
    flying: VecDeque<(BatchId, f64)>,
    /// The longest that a slice of several calls took lately.
    longest_slice: f64,
}

impl Device {
    fn new(rate: f64, trip: f64) -> Device {
        Device {
            rate,
            trip,
            now: 0.0,
            last: 0.0,
            busy: [0.0; 3],
            flying: VecDeque::new(),
            longest_slice: 0.0,
        }
    }

    /// Sends all that may go; the priorities of what went.
    fn send(&mut self, queue: &mut Queue) -> Vec<Priority> {
        let mut sent = Vec::new();
        while let Some(id) = queue.launch_at(Millis(self.now)) {
            let flying = queue.sent(id).expect("sent");
            sent.push(flying.priority);
            self.flying.push_back((id, self.now));
        }
        sent
    }

    /// Lands the batch that was sent first; the tickets that it answers.
    fn land(&mut self, queue: &mut Queue) -> Vec<Ticket> {
        let Some((id, sent)) = self.flying.pop_front() else {
            return Vec::new();
        };
        let batch = queue.sent(id).expect("in flight");
        let (priority, live) = (batch.priority, batch.live());
        let units = batch.bytes as f64;
        let took = units * self.rate;
        let back = (sent + self.trip).max(self.last) + took;
        self.busy[priority as usize] += back - sent.max(self.last);
        if priority == Priority::Low && live > 1 {
            self.longest_slice = self.longest_slice.max(took);
        }
        queue.took(priority, units, back - sent.max(self.last));
        (self.last, self.now) = (back, self.now.max(back));
        queue.land(id).expect("in flight")
    }
}

fn limits(max_in_flight: usize) -> BatchConfig {
    BatchConfig {
        max_in_flight,
        max_batch_size: Some(200),
        max_batch_bytes: 1 << 40,
        ..config()
    }
}

proptest! {
    /// Calls of random priorities at random times on a device of any speed: each is answered
    /// once, those of one priority in their order, and no normal one goes while one of high
    /// priority waits.
    #[test]
    fn calls_keep_their_order_within_a_priority(
        calls in prop::collection::vec((0_usize..3, 1_u64..50, 0.0..3.0_f64, any::<bool>()), 1..200),
        rate in 0.001..1.0_f64,
        max_in_flight in 1_usize..4,
    ) {
        let mut queue = queue(limits(max_in_flight));
        let mut device = Device::new(rate, 0.5);
        let mut waiting: [VecDeque<Ticket>; 3] = Default::default();
        let mut answered = 0;
        let mut land = |device: &mut Device, queue: &mut Queue, waiting: &mut [VecDeque<Ticket>; 3]| {
            for ticket in device.land(queue) {
                let own = waiting.iter_mut().find(|own| own.contains(&ticket));
                assert_eq!(own.expect("waits").pop_front(), Some(ticket), "in order");
                answered += 1;
            }
        };
        for (priority, units, pause, lands) in &calls {
            let ticket = put(&mut queue, PRIORITIES[*priority], *units, device.now);
            waiting[*priority].push_back(ticket);
            if queue.due(Millis(device.now)) == Due::TaskEnd {
                queue.flush();
            }
            let had_high = queue.has_high();
            let sent = device.send(&mut queue);
            // A slice that is owed goes before all others.
            let is_first = sent.first().is_none_or(|first| *first != Priority::Normal);
            prop_assert!(!had_high || is_first, "{:?} went before", sent);
            prop_assert!(device.flying.len() <= max_in_flight + 1);
            device.now += pause;
            if *lands {
                land(&mut device, &mut queue, &mut waiting);
            }
        }
        while queue.pending() > 0 {
            queue.flush();
            device.send(&mut queue);
            land(&mut device, &mut queue, &mut waiting);
        }
        prop_assert_eq!(answered, calls.len());
        prop_assert_eq!(queue.pending_bytes(), 0);
    }

    /// Under a steady flow of other work that the device cannot keep up with, low work gets
    /// about a tenth of the device's time.
    #[test]
    fn low_work_gets_a_tenth_of_the_time(
        rate in 0.01..0.5_f64,
        (units, low_units) in (1_u64..40, 1_u64..10),
        max_in_flight in 1_usize..4,
        is_high in any::<bool>(),
    ) {
        let mut queue = queue(limits(max_in_flight));
        let mut device = Device::new(rate, 0.2);
        let other = if is_high { Priority::High } else { Priority::Normal };
        for _ in 0..2000 {
            while waiting_low(&queue) < 100 {
                put(&mut queue, Priority::Low, low_units, device.now);
            }
            if !queue.any_in(other, |batch| !batch.is_empty()) {
                put(&mut queue, other, units, device.now);
            }
            queue.flush();
            device.send(&mut queue);
            device.land(&mut queue);
        }
        let [low, normal, high] = device.busy;
        let share = low / (low + normal + high);
        // Where single calls take longer than what is owed, shares come in steps.
        prop_assert!((0.07..0.35).contains(&share), "{} of the time", share);
    }

    /// With ten calls of high priority a second, slices take 4 ms or are one call, and the
    /// device is at work on low calls for most of the time.
    #[test]
    fn slices_are_short_while_high_calls_are_recent(
        call in 0.03..1.0_f64,
        low_units in 1_u64..30,
        trip in 0.0..0.5_f64,
    ) {
        let rate = call / low_units as f64;
        let mut queue = queue(limits(3));
        let mut device = Device::new(rate, trip);
        let mut next_high = 0.0;
        let mut slowest: f64 = 0.0;
        while device.now < 5000.0 {
            while waiting_low(&queue) < 200 {
                put(&mut queue, Priority::Low, low_units, device.now);
            }
            if device.now >= next_high {
                put(&mut queue, Priority::High, 1, device.now);
                next_high += 100.0;
                slowest = slowest.max(if device.now > 1000.0 { device.now - next_high + 100.0 } else { 0.0 });
            }
            if device.now < 1000.0 {
                device.longest_slice = 0.0; // Sizes are still to be learned.
            }
            device.send(&mut queue);
            device.land(&mut queue);
        }
        // Of the smallest slice all counts as the way there and back, up to a millisecond.
        let most = 4.0 + 1.0 + call;
        prop_assert!(device.longest_slice <= most, "a slice of {} ms", device.longest_slice);
        prop_assert!(slowest <= most + trip, "a call of high priority waited for {} ms", slowest);
        let pace = device.busy[0] / device.now;
        prop_assert!(pace >= 0.7, "low work had {} of the time", pace);
    }
}
