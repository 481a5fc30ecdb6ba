//! Calls that restore what went with a device: they go before all that waits.

use super::*;

fn put(queue: &mut Queue, priority: Priority) -> Ticket {
    let accepted = queue.accept_in(priority, request(), Millis(0.0));
    accepted.expect("room").ticket
}

/// Makes as many calls that restore.
fn restore(queue: &mut Queue, calls: usize) -> Vec<Ticket> {
    queue.begin_restoration(());
    let tickets = (0..calls).map(|_| put(queue, Priority::Normal)).collect();
    queue.end_restoration();
    tickets
}

fn sent(queue: &mut Queue) -> Vec<Vec<Ticket>> {
    let batches: Vec<BatchId> = std::iter::from_fn(|| queue.launch_at(Millis(0.0))).collect();
    let tickets = |id: BatchId| queue.sent(id).expect("sent").live_tickets().collect();
    batches.into_iter().map(tickets).collect()
}

#[test]
fn they_go_before_all_that_waits_whatever_its_priority() {
    let mut queue = queue(BatchConfig {
        max_in_flight: 8,
        ..config()
    });
    let low = put(&mut queue, Priority::Low);
    let high = put(&mut queue, Priority::High);
    let normal = put(&mut queue, Priority::Normal);
    let first = restore(&mut queue, 2);
    assert_eq!(restore(&mut queue, 0), []);
    let second = restore(&mut queue, 1);
    let later = put(&mut queue, Priority::Normal);
    queue.flush();
    let expected = [first, second, vec![high], vec![normal, later], vec![low]];
    assert_eq!(sent(&mut queue), expected);
}

#[test]
fn a_full_batch_of_theirs_is_followed_by_the_next() {
    let mut queue = queue(BatchConfig {
        max_batch_size: Some(2),
        ..config()
    });
    let waiting = put(&mut queue, Priority::Normal);
    let own = restore(&mut queue, 3);
    queue.flush();
    let expected = [own[..2].to_vec(), own[2..].to_vec(), vec![waiting]];
    assert_eq!(sent(&mut queue), expected);
}

#[test]
fn nothing_overtakes_them_while_they_are_parked() {
    let mut queue = queue(BatchConfig {
        max_in_flight: 8,
        ..config()
    });
    let high = put(&mut queue, Priority::High);
    let waiting = put(&mut queue, Priority::Normal);
    let own = restore(&mut queue, 1);
    queue.flush();
    let batch = queue.launch_at(Millis(0.0)).expect("they go first");
    let at = queue.in_flight().len() - 1;
    queue.park_flying(at);
    assert!(sent(&mut queue).is_empty());
    // Lost once more, they are first again.
    queue.resume_all();
    let next = restore(&mut queue, 1);
    assert_eq!(queue.launch_at(Millis(0.0)), Some(batch));
    assert_eq!(sent(&mut queue), [next, vec![high], vec![waiting]]);
    let tickets: Vec<Ticket> = queue.sent(batch).expect("sent").live_tickets().collect();
    assert_eq!(tickets, own);
}

#[test]
fn what_waits_for_a_flush_still_does() {
    let mut queue = queue(BatchConfig {
        policy: Policy::Manual,
        ..config()
    });
    let waiting = put(&mut queue, Priority::Normal);
    let own = restore(&mut queue, 1);
    assert_eq!(sent(&mut queue), [own]);
    queue.flush();
    let own = restore(&mut queue, 1);
    assert_eq!(sent(&mut queue), [own, vec![waiting]]);
}
