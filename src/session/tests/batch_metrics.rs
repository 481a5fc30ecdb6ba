//! Batch metrics, by a clock that a test turns.

use std::cell::Cell;

use super::super::batch_metrics::{Meter, Outline, Timing};
use super::*;
use crate::device::Engine;
use crate::plan::KernelCounts;

thread_local! {
    static TIME: Cell<f64> = const { Cell::new(0.0) };
}

/// A clock that a millisecond passes on with each look.
fn clock() -> f64 {
    TIME.set(TIME.get() + 1.0);
    TIME.get()
}

/// Sends what is queued, and settles every chunk.
fn send(session: &mut Session<Frail>) {
    session.flush();
    let launch = session.launch(Millis(50.0)).expect("there is a batch");
    for flight in launch.flights {
        let outcome = pollster::block_on(flight);
        session.settle(launch.batch, launch.generation, outcome);
    }
}

#[test]
fn facts_are_those_of_the_batch_and_told_once() {
    let mut session = Session::new(Frail::in_chunks(1 << 20, 4096), config()).unwrap();
    session.measure_batches(Some(clock));
    let mut last = None;
    for k in 0..6 {
        let accepted = ask(&mut session, k as f32, 500, None).unwrap();
        last = Some(accepted.ticket);
    }
    TIME.set(100.0);
    send(&mut session);
    let facts = session.take_facts().expect("somebody listens");
    assert_eq!(session.take_facts(), None);
    assert_eq!((facts.calls, facts.engine), (6, Engine::Cpu));
    assert_eq!((facts.items, facts.failed), (6 * 500, 0));
    assert_eq!(facts.items_per_second(), Some(3000.0 / 2.0 * 1e3));
    assert_eq!(facts.items_per_ms(), Some(3000.0 / 2.0));
    // Interpolations of 500 floats: four operations, two operands and a result of each, cut or
    // not.
    assert_eq!(
        (facts.flops, facts.kernel_bytes),
        (Some(12_000.0), Some(36_000.0))
    );
    assert_eq!(
        (facts.flops_per_second(), facts.kernel_bytes_per_second()),
        (None, None)
    );
    assert_eq!(
        (facts.first, Some(facts.last)),
        (Ticket(facts.last.0 - 5), last)
    );
    assert_eq!(facts.pieces, session.stats().pieces);
    assert!(facts.pieces > 1);
    // One look at the clock before encoding, one after it, one when all of the batch is
    // back.
    assert_eq!((facts.sent, facts.wall_ms), (Millis(101.0), 2.0));
    assert_eq!(
        (facts.encode_ms, facts.read_ms, facts.wait_ms),
        (1.0, 1.0, 50.0)
    );
    assert_eq!((facts.gpu_ms, facts.resolution_ms), (None, None));
    assert_eq!(
        (facts.kernel_efficiency(), facts.utilization()),
        (None, None)
    );
    let measured = session.stats().measured;
    assert_eq!((measured.read_ms, measured.gpu_ms), (Some(1.0), None));
}

#[test]
fn nothing_is_timed_while_nobody_listens() {
    let mut session = session(1 << 20);
    TIME.set(0.0);
    ask(&mut session, 0.0, 3, None).unwrap();
    send(&mut session);
    session.measure_batches(Some(clock));
    session.measure_batches(None);
    ask(&mut session, 0.0, 3, None).unwrap();
    send(&mut session);
    assert_eq!(TIME.get(), 0.0);
    assert_eq!(session.take_facts(), None);
    assert_eq!(session.stats().measured, Measured::default());
}

#[test]
fn a_failed_batch_has_facts_and_a_lost_one_when_it_is_back() {
    let mut session = session(1 << 20);
    session.measure_batches(Some(clock));
    session.devices.primary_mut().fault = Some(Error::OutOfMemory("full".into()));
    ask(&mut session, 0.0, 3, None).unwrap();
    send(&mut session);
    let failed = session.take_facts().expect("it is back");
    assert_eq!((failed.calls, failed.failed), (1, 1));
    session.devices.primary_mut().fault = Some(Error::DeviceLost("gone".into()));
    ask(&mut session, 0.0, 3, None).unwrap();
    send(&mut session);
    assert_eq!(session.take_facts(), None);
    session.replace_device(Frail::new(1 << 20), NOW);
    send(&mut session);
    let back = session.take_facts().expect("it is back");
    assert_eq!((back.calls, back.failed), (1, 0));
    assert_ne!(back.id, failed.id);
}

/// When a chunk's kernels began and ended.
type Stamps = Option<[u64; 2]>;

const BATCH: Outline = Outline {
    id: BatchId(7),
    first: Ticket(1),
    last: Ticket(2),
    calls: 2,
    items: 600,
    failed: 0,
    chunks: 1,
    engine: Engine::Gpu,
};

/// A batch that is sent now. Half a millisecond of its encoding was writing.
fn sent(meter: &Meter) -> Option<Timing> {
    let mut counters = Counters::default();
    let start = meter.start(|| counters);
    counters.upload_ns = 500_000;
    counters.bytes_up = 3000;
    counters.bytes_down = 6000;
    meter.encoded(start, || counters, 0.0)
}

/// The facts of a batch whose chunks' kernels ran between these moments.
fn facts(meter: &mut Meter, chunks: &[Stamps]) -> Facts {
    let mut timing = sent(meter);
    for stamps in chunks {
        meter.landed(&mut timing, *stamps);
    }
    meter.finished(timing, &BATCH);
    meter.take().expect("it is measured")
}

#[test]
fn kernels_are_timed_where_all_of_them_are_known() {
    // Moments of the chunks' kernels in nanoseconds, and their milliseconds.
    let cases: [(&[Stamps], Option<f64>); 6] = [
        (&[Some([7_000, 250_007_000])], Some(250.0)),
        (&[Some([0, 100_000]), Some([300_000, 500_000])], Some(0.3)),
        (&[None], None),
        (&[Some([0, 100_000]), None], None),
        // Kernels that took less than the clock can tell, and a clock that was set back.
        (&[Some([100_000, 100_000])], None),
        (&[Some([200_000, 100_000])], None),
    ];
    for (chunks, expected) in cases {
        let mut meter = Meter::default();
        meter.listen(Some(clock));
        let facts = facts(&mut meter, chunks);
        assert_eq!(facts.gpu_ms, expected, "{chunks:?}");
        assert_eq!(facts.transfer_ms, 0.5);
        assert_eq!(facts.bytes_per_second(), Some(9000.0 / 2.0 * 1e3));
    }
}

#[test]
fn rates_of_kernels_are_of_the_kernels_time_alone() {
    let chunks = [(2e6, 3e5), (1e6, 6e5)].map(|(flops, bytes)| KernelCounts { flops, bytes });
    let unknown = KernelCounts {
        flops: f64::NAN,
        ..chunks[0]
    };
    // Kernels of half a millisecond in all.
    let cases = [
        (chunks, [Some(6e9), Some(1.8e9)]),
        // What is unknown of one chunk is unknown of the batch.
        ([unknown, chunks[1]], [None, Some(1.8e9)]),
    ];
    for (chunks, expected) in cases {
        let mut meter = Meter::default();
        meter.listen(Some(clock));
        let mut timing = sent(&meter);
        for counts in chunks {
            timing.as_mut().expect("somebody listens").count(counts);
            meter.landed(&mut timing, Some([0, 250_000]));
        }
        meter.finished(timing, &BATCH);
        let facts = meter.take().expect("it is measured");
        let rates = [facts.flops_per_second(), facts.kernel_bytes_per_second()];
        for (rate, expected) in rates.into_iter().zip(expected) {
            let is_near = |(a, b): (f64, f64)| (a / b - 1.0).abs() < 1e-12;
            let agrees = rate.zip(expected).map_or(rate == expected, is_near);
            assert!(agrees, "{chunks:?}: {rate:?}, {expected:?}");
        }
    }
}

#[test]
fn the_steps_of_a_coarse_clock_are_found() {
    for step in [1, 38, 65_536, 100_000] {
        let mut meter = Meter::default();
        meter.listen(Some(clock));
        let mut told = None;
        for k in [12_345_u64, 12_346, 12_353, 12_361] {
            let stamps = Some([k * step, (k + 1) * step]);
            told = facts(&mut meter, &[stamps]).resolution_ms;
        }
        assert_eq!(told, Some(step as f64 * 1e-6));
        // Nothing is known of another device's clock yet.
        meter.renew();
        assert_eq!(facts(&mut meter, &[None]).resolution_ms, None);
    }
}

#[test]
fn shares_are_of_the_time_that_is_known_and_count_no_moment_twice() {
    let mut meter = Meter::default();
    TIME.set(0.0);
    meter.listen(Some(clock));
    // Two batches, sent at 1 and 3 and back at 5 and 6: five milliseconds, two of them
    // kernels'.
    let ([mut one, mut two], ms) = ([sent(&meter), sent(&meter)], 1_000_000);
    meter.landed(&mut one, Some([ms, 2 * ms]));
    meter.finished(one, &BATCH);
    let one = meter.take().expect("it is measured");
    assert_eq!((one.sent, one.wall_ms), (Millis(1.0), 4.0));
    // Three milliseconds until a batch was back, one of them the kernels'; half of one for
    // the writing.
    assert_eq!(
        (one.read_ms, one.transfer_ms, one.encode_ms),
        (2.0, 0.5, 0.5)
    );
    assert_eq!(one.kernel_efficiency(), Some(1.0 / 3.5));
    assert_eq!(one.utilization(), Some(1.0 / 4.0));
    meter.landed(&mut two, Some([2 * ms, 3 * ms]));
    meter.finished(two, &BATCH);
    let before = meter.measured();
    assert_eq!(before.utilization, Some(2.0 / 5.0));
    assert_eq!(before.gpu_ms, Some(1.0));
    assert_eq!(before.transfer_ms, Some(0.5));
    // A batch whose kernels' time is unknown changes neither share.
    facts(&mut meter, &[None]);
    let after = meter.measured();
    assert_eq!(after.utilization, before.utilization);
    assert_eq!(after.kernel_efficiency, before.kernel_efficiency);
}
