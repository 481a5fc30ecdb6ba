//! Calls of several threads, given up or not, and what waits for kernels.

use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};

use super::*;
use crate::ops::clips::{Track, Wrap};

#[test]
fn threads_get_their_own_answers() {
    explore(KIND, eager(), |gpu| {
        join(threads(3, &gpu, |gpu, n| three_calls(gpu, n, &[])));
        assert_quiet(gpu.shared());
    });
}

#[test]
fn every_flush_reaches_the_worker() {
    explore(KIND, manual(), |gpu| {
        let flushing = threads(3, &gpu, |gpu, n| {
            let call = ask(gpu, n);
            gpu.flush();
            check(n, call.wait(), &[]);
        });
        join(flushing);
        assert_quiet(gpu.shared());
    });
}

#[test]
fn the_longest_wait_is_ended_by_a_flush() {
    let longest = BatchConfig {
        policy: Policy::Frame,
        max_wait: Some(f64::MAX),
        ..manual()
    };
    explore(KIND, longest, |gpu| {
        let call = ask(&gpu, 1);
        thread::yield_now();
        gpu.flush();
        check(1, call.wait(), &[]);
    });
}

#[test]
fn calls_with_deadlines_are_answered_or_told_so_and_their_neighbors_answered() {
    explore(KIND, eager(), |gpu| {
        let hasty = threads(3, &gpu, |gpu, n| {
            let hasty = gpu.with_deadline(Duration::from_micros(400));
            let (bounded, kept) = (ask(&hasty, 100 + n), ask(gpu, n));
            check(100 + n, bounded.wait(), &[Code::Timeout]);
            check(n, kept.wait(), &[]);
        });
        join(hasty);
        assert_quiet(gpu.shared());
    });
}

#[test]
fn calls_given_up_are_nobody_elses_matter() {
    explore(ROUGH, eager(), |gpu| {
        let fickle = threads(3, &gpu, |gpu, n| {
            let (dropped, kept) = (ask(gpu, 100 + n), ask(gpu, n));
            if thread_rng().r#gen() {
                thread::yield_now();
            }
            drop(dropped);
            check(n, kept.wait(), ROUGHLY);
        });
        join(fickle);
        assert_quiet(gpu.shared());
    });
}

#[test]
fn calls_given_up_leave_the_queue_unsent() {
    explore(KIND, manual(), |gpu| {
        join(threads(3, &gpu, |gpu, n| drop(ask(gpu, n))));
        assert_quiet(gpu.shared());
    });
}

#[test]
fn readers_of_a_write_that_is_given_up_wait_for_nothing_else() {
    fn read(gpu: &Gpu, tensor: &Tensor) -> Result<Vec<f32>, Error> {
        let mut batch = gpu.batch();
        let x = batch.tensor(tensor)?;
        let y = batch.scale(x, 2.0)?;
        let done = batch.execute();
        block_on(done)?;
        batch.read(y).wait()
    }
    let world = World {
        clips: &[Fate::Stalls],
        ..KIND
    };
    explore(world, eager(), |gpu| {
        let tensor = gpu.tensor(&[4.0; 4], &[4]).unwrap();
        let track = Track {
            times: &[0.0],
            values: &[1.0],
            kind: Default::default(),
            interpolation: Default::default(),
            easing: Default::default(),
        };
        let clip = gpu.clip(&[track], None).unwrap();
        assert_eq!(read(&gpu, &tensor).unwrap(), [8.0; 4]);
        // The write's kernel is never compiled, and calls that read the tensor wait for the write.
        let write = clip.sample_to(&tensor, 0, &[0.0; 4], Wrap::Clamp);
        let reader = gpu.clone();
        let reading = thread::spawn(move || read(&reader, &tensor).unwrap());
        for _ in 0..thread_rng().gen_range(0..20) {
            thread::yield_now();
        }
        drop(write);
        assert_eq!(reading.join().unwrap(), [8.0; 4]);
    });
}

#[test]
fn warm_ups_are_answered_whatever_becomes_of_kernels_and_devices() {
    explore(ROUGH, eager(), |gpu| {
        let warming = threads(2, &gpu, |gpu, n| {
            let warm = gpu.warmup(|gpu| drop(ask(gpu, n)));
            let outcome = block_on(warm);
            check(n, ask(gpu, n).wait(), ROUGHLY);
            if let Err(error) = outcome {
                assert_eq!(error.code(), Code::Shader, "{error}");
            }
        });
        join(warming);
        let unheard = gpu.warmup(|gpu| drop(ask(gpu, 9)));
        drop(unheard);
        let late = gpu.warmup(|gpu| drop(ask(gpu, 9)));
        gpu.dispose();
        let allowed = [Code::Disposed, Code::Shader];
        assert!(block_on(late).map_or_else(|error| allowed.contains(&error.code()), |()| true));
    });
}
