//! How sessions end: disposed of, dropped, or by a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};

use super::*;

#[test]
fn the_last_handle_waits_for_no_device_that_answers_nothing() {
    let world = World {
        flights: &[Fate::Stalls],
        ..KIND
    };
    explore(world, eager(), |gpu| {
        let call = ask(&gpu, 1);
        let waiting = thread::spawn(move || check(1, call.wait(), &[Code::Disposed]));
        if thread_rng().r#gen() {
            thread::yield_now();
        }
        drop(gpu);
        join(vec![waiting]);
    });
}

#[test]
fn a_panic_under_the_lock_ends_the_session_and_answers_everyone() {
    explore(KIND, manual(), |gpu| {
        let calls = [1, 2].map(|value| (value, ask(&gpu, value)));
        let panicking = threads(1, &gpu, |gpu, _| {
            let shared = gpu.shared();
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _state = shared.lock();
                panic!("planned, with the session locked");
            }));
            assert!(caught.is_err());
        });
        for (value, call) in calls {
            let error = call.wait().expect_err("nobody sends it");
            assert_eq!(error.code(), Code::Fatal, "{value}");
        }
        join(panicking);
        assert_eq!(ask(&gpu, 3).wait().unwrap_err().code(), Code::Fatal);
        assert_quiet(gpu.shared());
    });
}

#[test]
fn a_lock_that_is_taken_while_a_thread_unwinds_ends_nothing() {
    explore(KIND, manual(), |gpu| {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _call = ask(&gpu, 1); // The call is given up as the thread unwinds.
            panic!("planned, by the program");
        }));
        assert!(caught.is_err());
        let call = ask(&gpu, 2);
        gpu.flush();
        check(2, call.wait(), &[]);
    });
}

#[test]
fn disposal_at_any_moment_answers_everyone() {
    explore(ROUGH, eager(), |gpu| {
        let asking = threads(2, &gpu, |gpu, n| three_calls(gpu, n, ENDING));
        join(threads(2, &gpu, |gpu, _| gpu.dispose()));
        join(asking);
        assert_quiet(gpu.shared());
        let late = ask(&gpu, 1).wait().unwrap_err();
        assert_eq!(late.code(), Code::Disposed);
    });
}

#[test]
fn a_session_that_is_disposed_of_as_a_deadline_passes_ends_its_worker() {
    explore(KIND, manual(), |gpu| {
        let hasty = gpu.with_deadline(Duration::from_micros(1));
        check(1, ask(&hasty, 1).wait(), &[Code::Timeout]);
        // The worker may still be telling of the deadline.
        gpu.dispose();
        assert_quiet(gpu.shared());
    });
}

#[test]
fn calls_outlive_the_last_handle() {
    explore(ROUGH, eager(), |gpu| {
        let calls = [1, 2].map(|value| (value, ask(&gpu, value)));
        let mut waiting: Vec<JoinHandle<()>> = calls
            .into_iter()
            .map(|(value, call)| thread::spawn(move || check(value, call.wait(), ENDING)))
            .collect();
        waiting.extend(threads(2, &gpu, |gpu, n| drop(ask(gpu, n))));
        drop(gpu);
        join(waiting);
    });
}

/// Devices that bring the worker down now and then.
fn falls_over(flights: &'static [Fate], kernels: &'static [Fate]) {
    let world = World {
        flights,
        kernels,
        ..KIND
    };
    explore(world, eager(), |gpu| {
        join(threads(2, &gpu, |gpu, n| {
            three_calls(gpu, n, &[Code::Fatal])
        }));
        // One of many calls brings the worker down at the latest.
        let error = (0..1000).find_map(|n| ask(&gpu, n).wait().err()).unwrap();
        assert!(
            error.to_string().contains("the GPU driver fell over"),
            "{error}"
        );
        assert_quiet(gpu.shared());
    });
}

#[test]
fn a_worker_that_panics_rejects_what_is_pending_and_what_comes() {
    falls_over(&[Fate::Arrives, Fate::PanicsInFlight], KIND.kernels);
}

#[test]
fn a_worker_that_panics_with_the_session_locked_does_as_well() {
    falls_over(&[Fate::Arrives, Fate::PanicsAtLaunch], KIND.kernels);
}

#[test]
fn a_compiler_that_panics_does_as_well() {
    falls_over(KIND.flights, &[Fate::PanicsInFlight]);
}
