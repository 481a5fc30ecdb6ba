//! Calibration: what model comes of probes' times, and when none does.

use super::*;
use crate::session::Session;
use crate::session::tests::{Frail, config};

/// Milliseconds of each probe on some machine, by the places in [`PROBES`].
const TIMES_MS: [f64; PROBES.len()] = [1.0, 1.2, 1.5, 1.4, 2.0, 0.5, 0.4, 0.1, 1.6, 0.2, 0.4];

/// The same, noticed by a page whose frames take 35 ms: after two of them.
const FRAMES_MS: f64 = 70.0;

fn session() -> Session<Frail> {
    let session = Session::new(Frail::new(1 << 20).gpu(), config()).expect("valid settings");
    session.with_companion(Frail::new(1 << 20), Some(Model::default().into()))
}

/// Runs probes until nothing more is measured; how many there were. The time of each is said by
/// how often the same one was launched before, and its place.
fn measure(session: &mut Session<Frail>, ms: impl Fn(usize, usize) -> f64) -> usize {
    let mut launched = [0; PROBES.len()];
    session.calibrate();
    while let Some(flight) = session.next_probe() {
        pollster::block_on(flight).expect("computed");
        let at = session.calibration.as_ref().expect("it goes on").at;
        session.note_probe(ms(launched[at], at));
        launched[at] += 1;
    }
    launched.into_iter().sum()
}

fn is_gpu(at: usize) -> bool {
    PROBES[at].engine == Engine::Gpu
}

#[test]
fn the_model_is_that_of_the_shortest_times() {
    type Case = (&'static str, fn(usize, usize) -> f64, usize);
    let cases: [Case; 5] = [
        ("a calm page", |_, at| TIMES_MS[at], 44),
        (
            "what is launched for the first time is compiled",
            |turn, at| TIMES_MS[at] * if turn == 0 { 100.0 } else { 1.0 },
            44,
        ),
        (
            "every other time the page is busy, and notices late",
            |turn, at| TIMES_MS[at] + if turn % 2 == 0 { FRAMES_MS } else { 0.0 },
            44,
        ),
        (
            "the page is busy at first, and knows that it is",
            |turn, at| match is_gpu(at) && turn < 6 {
                true => f64::INFINITY,
                false => TIMES_MS[at],
            },
            44 + 5 * 6,
        ),
        (
            "the clock is too coarse for one probe, and tells nothing of it at first",
            |turn, at| {
                if at == 7 && turn < 3 {
                    0.0
                } else {
                    TIMES_MS[at]
                }
            },
            44 + 3,
        ),
    ];
    for (name, ms, probes) in cases {
        let mut session = session();
        assert_eq!(measure(&mut session, ms), probes, "{name}");
        let (model, is_calibrated) = session.model().expect("there is one");
        assert!(is_calibrated, "{name}");
        let found = [FLUSH, GPU_CALL, CPU_CALL].map(|fact| model.0[fact]);
        for (found, expected) in found.into_iter().zip([1.0, 200.0, 62.5]) {
            assert!((found - expected).abs() < 1e-9, "{name}: {model:?}");
        }
    }
}

#[test]
fn times_that_cannot_be_right_come_to_no_model() {
    type Case = (&'static str, fn(usize, usize) -> f64);
    let cases: [Case; 6] = [
        (
            "every probe of the GPU is noticed after two frames",
            |turn, at| {
                let noise = (turn + at) as f64 * 0.1;
                if is_gpu(at) {
                    FRAMES_MS + noise
                } else {
                    TIMES_MS[at]
                }
            },
        ),
        ("the page is busy all the time, and knows", |_, at| {
            if is_gpu(at) {
                f64::INFINITY
            } else {
                TIMES_MS[at]
            }
        }),
        ("the empty probe takes longest", |_, at| match at {
            0 => 20.0,
            _ => TIMES_MS[at],
        }),
        ("a byte takes longer than on any device", |_, at| match at {
            2 | 3 => 60.0,
            _ => TIMES_MS[at],
        }),
        ("each probe fails", |_, _| f64::INFINITY),
        ("the clock stands still", |_, _| 0.0),
    ];
    for (name, ms) in cases {
        let mut session = session();
        let usual = session.model();
        assert!(measure(&mut session, ms) <= 44 + MISSES, "{name}");
        assert_eq!(session.model(), usual, "{name}");
        // A later calibration finds a calm page, and one after that a busy page again.
        assert_eq!(measure(&mut session, |_, at| TIMES_MS[at]), 44);
        let sound = session.model();
        assert!(sound.is_some_and(|(model, is_calibrated)| is_calibrated && model.is_sound()));
        measure(&mut session, ms);
        assert_eq!(session.model(), sound, "{name}: the last sound one stays");
    }
}

#[test]
fn a_gpu_in_software_has_a_model_too() {
    let mut session = session();
    measure(&mut session, |turn, at| match at {
        4 if turn == 0 => 1400.0,
        4 => 80.0,
        _ if is_gpu(at) => 2.0 * TIMES_MS[at],
        _ => TIMES_MS[at],
    });
    let (model, is_calibrated) = session.model().expect("there is one");
    assert!(is_calibrated);
    assert_eq!(model.flush_ms(), 2.0);
}
