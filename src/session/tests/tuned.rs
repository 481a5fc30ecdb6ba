//! A session goes by what its tuner says.

use super::*;
use crate::session::launch::LaunchId;

/// A session on a device that passes for a GPU.
fn on_gpu(config: BatchConfig) -> Session<Frail> {
    Session::new(Frail::in_chunks(1 << 30, 2 << 20).gpu(), config).expect("valid settings")
}

fn auto() -> BatchConfig {
    Preset::Auto.config()
}

/// Sends batches of one call each, one after the other, that take a millisecond and one more for
/// each 100,000 floats; the host takes half of a millisecond for each.
fn work(session: &mut Session<Frail>, batches: u32) {
    for number in 0..batches {
        let rows = 100_000 * (1 + number % 4);
        put(session, 1.0, rows);
        session.flush();
        let sent = Millis(f64::from(number) * 20.0);
        let launch = session.launch(sent).expect("a batch to send");
        session.note_encode(0.5);
        let (id, took) = (launch.batch, 1.0 + f64::from(rows) / 1e5);
        for flight in launch.flights {
            let outcome = pollster::block_on(flight);
            let generation = session.generation();
            let now = Millis(sent.0 + took);
            let launch = LaunchId {
                batch: id,
                generation,
            };
            session.note_landing(launch, &outcome, now);
            assert!(session.settle(id, generation, outcome).is_some());
        }
    }
}

/// When a call is due that is made at moment 0 while a batch is in flight.
fn due_while_busy(session: &mut Session<Frail>) -> Due {
    put(session, 1.0, 4);
    let busy = launch(session);
    put(session, 1.0, 4);
    let due = session.due(NOW);
    drop(busy);
    due
}

#[test]
fn calls_wait_less_where_batches_cost_little() {
    let mut session = on_gpu(auto());
    assert_eq!(session.tuning().wait_ms, Some(16.0));
    work(&mut session, 64 * 8);
    assert_eq!(session.tuning().wait_ms, Some(1.0));
    assert!(session.take_retuned() && !session.take_retuned());
    assert_eq!(due_while_busy(&mut session), Due::At(Millis(1.0)));
}

#[test]
fn batches_are_bound_by_what_is_tuned_and_by_memory() {
    let mut session = on_gpu(auto());
    // 1.2 MB of operands and results take a millisecond, as a batch does: 9 times that is too
    // little for 16 MiB, and enough for 8.
    work(&mut session, 64 * 8);
    assert_eq!(session.tuning().batch_bytes, Some(8 << 20));
    assert_eq!(session.queue.config().max_batch_bytes, 8 << 20);
    let tensor = session.hold();
    session.fill(tensor, &[0; 64]).expect("there is memory");
    assert_eq!(session.queue.config().max_batch_bytes, 8 << 20);
}

#[test]
fn what_was_given_is_never_tuned() {
    let given = BatchConfig {
        max_wait: Some(7.0),
        max_batch_size: Some(1 << 40),
        queue_capacity: crate::batch::Capacity {
            calls: usize::MAX,
            ..auto().queue_capacity
        },
        ..auto()
    };
    let mut session = on_gpu(given);
    work(&mut session, 64 * 8);
    let tuned = session.tuning();
    assert_eq!((tuned.wait_ms, tuned.batch_bytes), (None, None));
    assert_eq!(due_while_busy(&mut session), Due::At(Millis(7.0)));
    assert_eq!(session.explain_tuning(), "");
}

/// A target's wait counts under every policy that goes by time, frames included.
#[test]
fn a_target_bounds_the_wait_in_frames_too() {
    for policy in [Policy::Auto, Policy::Frame, Policy::Eager] {
        let config = BatchConfig {
            policy,
            target_latency: Some(10.0),
            ..auto()
        };
        let mut session = on_gpu(config);
        put(&mut session, 1.0, 4);
        let due = session.due_in_frames(NOW);
        let expected = match policy {
            Policy::Eager => Due::TaskEnd,
            _ => Due::At(Millis(5.0)),
        };
        assert_eq!(due, expected, "{policy:?}");
    }
}

#[test]
fn a_target_needs_something_to_tune() {
    let both = BatchConfig {
        target_latency: Some(10.0),
        ..Preset::Balanced.config()
    };
    let wrong = [Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)];
    let wrong = wrong.map(|target_latency| BatchConfig {
        target_latency,
        ..auto()
    });
    for config in wrong.into_iter().chain([both]) {
        let refused = Session::new(Frail::new(1 << 20), config);
        assert!(matches!(refused, Err(Error::InvalidInput(_))));
    }
}

#[test]
fn the_cpu_alone_is_not_observed() {
    let mut session = Session::new(Frail::new(1 << 30), auto()).expect("valid settings");
    work(&mut session, 64 * 2);
    assert_eq!(session.tuning().batches, 0);
    assert_eq!(session.tuning().wait_ms, Some(16.0));
}

#[test]
fn a_plan_tells_what_is_tuned() {
    let mut session = on_gpu(auto());
    work(&mut session, 64 * 8);
    session.begin_explain();
    put(&mut session, 1.0, 4);
    let plan = session.end_explain();
    let last = plan.lines().last().expect("a line");
    assert_eq!(
        last,
        "tuned    batches of 8388608 bytes waits of 1000 us by 512 batches"
    );
}
