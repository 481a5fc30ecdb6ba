use proptest::prelude::*;

use super::*;
use crate::batch::Preset;

/// A batch that a software adapter answered.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    bytes: u64,
    /// From the launch to the last result.
    took_ms: f64,
    /// Of the host, to send the batch.
    encode_ms: f64,
}

/// A trace that was recorded, with a batch in each line.
fn trace(name: &str) -> Vec<Recorded> {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/tests/data/batches/{name}.txt");
    let text = std::fs::read_to_string(path).expect("the trace is there");
    let lines = text.lines().map(|line| {
        let fields: Vec<f64> = line
            .split(' ')
            .map(|word| word.parse().expect("a number"))
            .collect();
        Recorded {
            bytes: fields[0] as u64,
            took_ms: fields[1],
            encode_ms: fields[2],
        }
    });
    lines.collect()
}

/// The same batches on an adapter that takes so many times as long for what the host does not do.
fn slower(trace: &[Recorded], factor: f64) -> Vec<Recorded> {
    let slow = |batch: &Recorded| Recorded {
        took_ms: batch.encode_ms + (batch.took_ms - batch.encode_ms) * factor,
        ..*batch
    };
    trace.iter().map(slow).collect()
}

/// The same batches with every tenth a page's long task later.
fn disturbed(trace: &[Recorded]) -> Vec<Recorded> {
    let disturb = |(at, batch): (usize, &Recorded)| Recorded {
        took_ms: batch.took_ms + if at % 10 == 3 { 80.0 } else { 0.0 },
        ..*batch
    };
    trace.iter().enumerate().map(disturb).collect()
}

/// Bytes of a chunk.
const CHUNK: u64 = 1 << 20;

fn config(target: Option<f64>) -> BatchConfig {
    BatchConfig {
        target_latency: target,
        ..Preset::Auto.config()
    }
}

/// What becomes of the values while the traces are played one after the other, over and over.
struct Played {
    tuner: Tuner,
    /// At which batch values were changed.
    changes: Vec<usize>,
}

fn play(config: &BatchConfig, trace: &[Recorded], batches: usize) -> Played {
    let mut tuner = Tuner::new(config, CHUNK);
    let mut changes = Vec::new();
    for (at, batch) in trace.iter().cycle().take(batches).enumerate() {
        tuner.note_encode(batch.encode_ms);
        let changed = tuner.observe(Observation {
            bytes: batch.bytes,
            took_ms: batch.took_ms,
        });
        if changed {
            changes.push(at);
        }
    }
    Played { tuner, changes }
}

/// Batches after which every value has found its place, and those of the whole play.
const SETTLED: usize = 1280;
const ALL: usize = 12_800;

/// The most changes of a play, and the most of them once values have settled: a trace that is
/// played again and again sees each of its phases ten times.
const MOST_CHANGES: usize = 16;
const MOST_LATER: usize = 4;

#[test]
fn values_settle_on_every_trace() {
    let (steady, bursty, alternating) = (trace("steady"), trace("bursty"), trace("alternating"));
    let cases = [
        ("steady", steady.clone()),
        ("bursty", bursty.clone()),
        ("alternating", alternating.clone()),
        ("slow adapter", slower(&bursty, 40.0)),
        ("noise", disturbed(&bursty)),
        (
            "noise on a slow adapter",
            disturbed(&slower(&alternating, 10.0)),
        ),
        ("two loads", [bursty, steady].concat()),
    ];
    for (name, trace) in cases {
        for target in [None, Some(4.0), Some(20.0)] {
            let Played { tuner, changes } = play(&config(target), &trace, ALL);
            let later = changes.iter().filter(|at| **at >= SETTLED).count();
            let tuning = tuner.tuning();
            let about = format!("{name}, target {target:?}: {changes:?} {tuning:?}");
            assert!(changes.len() <= MOST_CHANGES, "{about}");
            assert!(later <= MOST_LATER, "{about}");
            assert!(
                changes
                    .windows(2)
                    .all(|two| two[1] - two[0] >= PERIOD as usize)
            );
            check_bounds(&tuner, target);
        }
    }
}

fn check_bounds(tuner: &Tuner, target: Option<f64>) {
    let Tuning {
        wait_ms,
        batch_bytes,
        fixed_ms,
        ms_per_megabyte,
        encode_ms,
        ..
    } = tuner.tuning();
    let (waits, bytes) = match target {
        None => (1.0..=16.0, 1 << 20..=64 << 20),
        Some(target) => (target / 16.0..=target / 2.0, 64 << 10..=64 << 20),
    };
    assert!(wait_ms.is_some_and(|wait| waits.contains(&wait)));
    assert!(batch_bytes.is_some_and(|most| bytes.contains(&most)));
    for number in [fixed_ms, ms_per_megabyte, encode_ms] {
        assert!(number >= 0.0 && number.is_finite(), "{number}");
    }
}

/// Batches of several sizes that take `fixed` and `slope` for a megabyte.
fn linear(fixed: f64, slope: f64) -> Vec<Recorded> {
    let batch = |step: u64| Recorded {
        bytes: step * 250_000,
        took_ms: fixed + slope * step as f64 * 0.25,
        encode_ms: 0.4,
    };
    (1..=16).map(batch).collect()
}

#[test]
fn batches_grow_until_what_each_costs_is_a_tenth() {
    // Milliseconds of a batch and of a megabyte; halvings of 64 MiB that hold 9 * fixed / slope.
    for (fixed, slope, expected) in [
        (1.0, 1.0, 8 << 20),
        (1.0, 0.1, 64 << 20),
        (0.5, 2.0, 2 << 20),
        (0.1, 10.0, 2 << 20),
        (1.0, 0.0, 64 << 20),
    ] {
        let Played { tuner, .. } = play(&config(None), &linear(fixed, slope), ALL);
        let tuned = tuner.tuning();
        assert_eq!(
            tuned.batch_bytes,
            Some(expected),
            "{fixed} {slope} {tuned:?}"
        );
        let error = (tuned.fixed_ms - fixed).abs();
        assert!(error <= (fixed + slope * 0.25) / 8.0, "{tuned:?}");
    }
}

/// A limit below a chunk would make chunks smaller than the device likes them.
#[test]
fn batches_are_never_bound_to_less_than_a_chunk() {
    for chunk in [1 << 20, 16 << 20, u64::MAX] {
        let mut tuner = Tuner::new(&config(None), chunk);
        for batch in linear(0.1, 10.0).iter().cycle().take(ALL) {
            tuner.observe(Observation {
                bytes: batch.bytes,
                took_ms: batch.took_ms,
            });
            let tuned = tuner.tuning().batch_bytes;
            assert!(tuned >= Some(chunk.min(64 << 20)), "{tuned:?}");
        }
    }
}

#[test]
fn calls_wait_about_as_long_as_another_batch_costs() {
    for (encode_ms, expected) in [(0.0, 1.0), (0.3, 1.0), (1.3, 2.0), (3.0, 4.0), (50.0, 16.0)] {
        let batch = |batch: &Recorded| Recorded {
            encode_ms,
            ..*batch
        };
        let trace: Vec<Recorded> = linear(1.0, 1.0).iter().map(batch).collect();
        let Played { tuner, .. } = play(&config(None), &trace, ALL);
        assert_eq!(tuner.tuning().wait_ms, Some(expected), "{encode_ms}");
    }
}

/// The wait and the time of the largest batch keep to a target that can be met.
#[test]
fn a_target_is_kept() {
    for target in [2.0, 5.0, 10.0, 33.0, 200.0] {
        for (fixed, slope) in [(0.5, 0.1), (0.5, 4.0), (1.9, 0.05), (1.0, 30.0)] {
            let Played { tuner, .. } = play(&config(Some(target)), &linear(fixed, slope), ALL);
            let tuned = tuner.tuning();
            let (wait, bytes) = (tuned.wait_ms.unwrap(), tuned.batch_bytes.unwrap());
            let longest = wait + fixed + slope * bytes as f64 / 1e6;
            // A tighter target cannot be met without batches that are mostly what each takes
            // whatever its size, and those would cost more than they gain.
            let is_tight = target < 2.0 * fixed + target / 16.0;
            let is_least = bytes == 64 << 10;
            assert!(
                longest <= target || is_least || is_tight && longest <= 2.2 * fixed,
                "{target} {fixed} {slope}: {longest} {tuned:?}"
            );
        }
    }
}

/// A target that a batch of any size misses leaves the shortest waits, and batches whose work is
/// about half of what they take: smaller ones would do less work, and answer later.
#[test]
fn a_target_that_cannot_be_met_is_kept_to_as_near_as_can_be() {
    let Played { tuner, .. } = play(&config(Some(4.0)), &linear(9.0, 1.0), ALL);
    let tuned = tuner.tuning();
    assert_eq!(tuned.wait_ms, Some(0.25));
    assert_eq!(tuned.batch_bytes, Some(8 << 20));
}

#[test]
fn nothing_moves_before_enough_batches_were_seen() {
    let start = Tuner::new(&config(None), CHUNK).tuning();
    assert_eq!(
        (start.wait_ms, start.batch_bytes),
        (Some(16.0), Some(64 << 20))
    );
    let Played { tuner, changes } = play(&config(None), &trace("bursty"), PERIOD as usize - 1);
    assert!(changes.is_empty());
    assert!(!tuner.is_in_effect());
}

/// What a caller or a preset gives is not tuned.
#[test]
fn given_values_stay() {
    let auto = || config(None);
    let cases = [
        (auto(), true, true),
        (
            BatchConfig {
                max_wait: Some(3.0),
                ..auto()
            },
            false,
            true,
        ),
        (
            BatchConfig {
                max_batch_size: Some(9),
                ..auto()
            },
            true,
            false,
        ),
        (
            BatchConfig {
                policy: Policy::Manual,
                ..auto()
            },
            false,
            true,
        ),
        (
            BatchConfig {
                policy: Policy::Frame,
                ..config(Some(5.0))
            },
            true,
            true,
        ),
        (
            BatchConfig {
                policy: Policy::Manual,
                ..config(Some(5.0))
            },
            false,
            true,
        ),
        (
            BatchConfig {
                max_wait: Some(3.0),
                ..config(Some(5.0))
            },
            false,
            true,
        ),
        (
            BatchConfig {
                max_batch_size: Some(9),
                ..config(Some(5.0))
            },
            true,
            false,
        ),
        (Preset::Frame.config(), false, true),
        (Preset::Eager.config(), false, true),
        (Preset::Embeddings.config(), false, true),
        (Preset::Latency.config(), false, false),
        (Preset::Balanced.config(), false, false),
        (Preset::Throughput.config(), false, false),
    ];
    for (config, waits, bytes) in cases {
        let tuned = Tuner::new(&config, CHUNK).tuning();
        let found = (tuned.wait_ms.is_some(), tuned.batch_bytes.is_some());
        assert_eq!(found, (waits, bytes), "{config:?}");
    }
}

#[test]
fn a_later_session_begins_with_what_was_kept() {
    let Played { tuner, .. } = play(&config(None), &linear(1.0, 1.0), ALL);
    let kept = tuner.kept();
    let mut later = Tuner::new(&config(None), CHUNK);
    assert!(later.restore(&kept));
    assert_eq!(later.tuning().wait_ms, tuner.tuning().wait_ms);
    assert_eq!(later.tuning().batch_bytes, tuner.tuning().batch_bytes);
    assert!(!later.restore(&kept), "nothing is new");
    // A session whose wait is given keeps the wait that was tuned before.
    let given = BatchConfig {
        max_wait: Some(3.0),
        ..config(None)
    };
    let mut between = Tuner::new(&given, CHUNK);
    assert!(between.restore(&kept));
    assert_eq!(between.kept(), kept);
    assert_eq!(between.tuning().wait_ms, None);
}

#[test]
fn what_cannot_be_right_is_ignored() {
    let wrong: [&[f64]; 9] = [
        &[],
        &[1.0],
        &[1.0, 2.0, 4e6, 0.0],
        &[2.0, 2.0, 4_194_304.0],
        &[1.0, 17.0, 1e9],
        &[1.0, f64::NAN, f64::NAN],
        &[1.0, -2.0, -4.0],
        &[1.0, f64::INFINITY, f64::NEG_INFINITY],
        &[1.0, 0.5, 1.0],
    ];
    for kept in wrong {
        let mut tuner = Tuner::new(&config(None), CHUNK);
        let before = tuner.tuning();
        assert!(!tuner.restore(kept), "{kept:?}");
        assert_eq!(tuner.tuning(), before);
    }
    let mut targeted = Tuner::new(&config(Some(5.0)), CHUNK);
    assert!(
        !targeted.restore(&[1.0, 2.0, 4_194_304.0]),
        "values of no target"
    );
    assert_eq!(targeted.kept(), [1.0, 2.0, 4_194_304.0]);
}

fn any_time() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..50.0_f64, any::<f64>(), Just(0.0), Just(f64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Values stay within their bounds whatever a clock says, and move at most once a period.
    #[test]
    fn values_stay_within_bounds(
        target in prop::option::of(0.1..1000.0_f64),
        batches in prop::collection::vec((any::<u32>(), any_time(), any_time()), 1..1000),
    ) {
        let mut tuner = Tuner::new(&config(target), CHUNK);
        let mut changes = 0;
        for (bytes, took_ms, encode_ms) in &batches {
            tuner.note_encode(*encode_ms);
            let bytes = u64::from(*bytes);
            changes += u32::from(tuner.observe(Observation { bytes, took_ms: *took_ms }));
            check_bounds(&tuner, target);
        }
        prop_assert!(changes <= batches.len() as u32 / PERIOD);
    }
}
