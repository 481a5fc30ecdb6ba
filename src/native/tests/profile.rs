//! How numbers are spread, and which batches are of which run.

use super::*;
use crate::batch::{BatchId, Millis, Ticket};
use crate::device::Engine;

#[test]
fn spreads_are_those_of_statistics() {
    let of = |mean, min, max, variance: f64, [p50, p95]: [f64; 2]| Spread {
        mean,
        min,
        max,
        sd: variance.sqrt(),
        p50,
        p95,
    };
    let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
    let cases: [(&[f64], Spread); 4] = [
        (&[8.0], of(8.0, 8.0, 8.0, 0.0, [8.0, 8.0])),
        (&[1.0, 5.0], of(3.0, 1.0, 5.0, 8.0, [1.0, 5.0])),
        (
            &[4.0, 2.0, 6.0, 8.0, 5.0],
            of(5.0, 2.0, 8.0, 5.0, [5.0, 8.0]),
        ),
        // The variance of 1 to n is n · (n + 1) / 12.
        (
            &hundred,
            of(50.5, 1.0, 100.0, 10_100.0 / 12.0, [50.0, 95.0]),
        ),
    ];
    for (values, expected) in cases {
        assert_eq!(spread(values), expected, "{values:?}");
    }
}

/// A batch of ten items that was sent at this moment.
fn batch(sent: f64, gpu_ms: Option<f64>) -> Facts {
    Facts {
        id: BatchId(0),
        first: Ticket(0),
        last: Ticket(0),
        calls: 2,
        items: 10,
        failed: 0,
        pieces: 1,
        submits: 1,
        engine: Engine::Gpu,
        bytes_up: 600,
        bytes_down: 800,
        flops: Some(3e6),
        kernel_bytes: Some(6e5),
        memory_bytes: 0,
        sent: Millis(sent),
        wait_ms: 0.0,
        encode_ms: 1.0,
        transfer_ms: 2.0,
        gpu_ms,
        read_ms: 4.0,
        wall_ms: 7.0,
        resolution_ms: None,
    }
}

#[test]
fn a_batch_is_of_the_run_in_which_it_was_sent() {
    let runs = [(10.0, 20.0), (20.5, 30.5)].map(|(start, end)| Run { start, end });
    // One before the runs, two in the first, one in the second, one behind.
    let heard = [5.0, 10.0, 15.0, 29.0, 31.0].map(|sent| batch(sent, Some(3.0)));
    let profile = summary(&runs, &heard);
    assert_eq!((profile.iterations, profile.run_ms.mean), (2, 10.0));
    assert_eq!(
        (profile.batches, profile.calls, profile.items),
        (1.5, 3.0, 15.0)
    );
    assert_eq!((profile.encode_ms.min, profile.encode_ms.max), (1.0, 2.0));
    assert_eq!(profile.gpu_ms, Some(spread(&[6.0, 3.0])));
    assert_eq!(profile.items_per_second(), Some(1500.0));
    assert_eq!(profile.up_bytes_per_second(), Some(900.0 / 3.0 * 1e3));
    assert_eq!(profile.down_bytes_per_second(), Some(1200.0 / 6.0 * 1e3));
    assert_eq!(
        (profile.flops, profile.kernel_bytes),
        (Some(4.5e6), Some(9e5))
    );
    assert_eq!(profile.flops_per_second(), Some(1e9));
    assert_eq!(profile.kernel_bytes_per_second(), Some(2e8));
    assert_eq!(profile.kernel_efficiency(), Some(4.5 / 13.5));
    assert_eq!(profile.utilization(), Some(0.45));
}

#[test]
fn what_is_not_known_of_each_batch_is_not_known() {
    let runs = [Run {
        start: 0.0,
        end: 9.0,
    }];
    let some = summary(&runs, &[batch(1.0, Some(3.0)), batch(2.0, None)]);
    assert_eq!((some.gpu_ms, some.utilization()), (None, None));
    assert_eq!((some.flops, some.flops_per_second()), (Some(6e6), None));
    let mut clip = batch(2.0, Some(3.0));
    clip.flops = None;
    let mixed = summary(&runs, &[batch(1.0, Some(3.0)), clip]);
    assert_eq!((mixed.flops, mixed.flops_per_second()), (None, None));
    assert_eq!(mixed.kernel_bytes_per_second(), Some(2e8));
    let none = summary(&runs, &[]);
    assert_eq!((none.flops, none.kernel_bytes), (None, None));
    assert_eq!((none.batches, none.gpu_ms), (0.0, None));
    assert_eq!(none.up_bytes_per_second(), None);
}
