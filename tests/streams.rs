//! Native streams: order, depth, and what becomes of calls when one is dropped.

#![cfg(not(target_arch = "wasm32"))]

#[allow(dead_code, reason = "each test target uses its own part")]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod samples;

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use engines::{both, both_manual, in_time, manual, open};
use framebatch::{BatchConfig, EngineChoice, Error, Preset, State};
use futures_core::Stream;
use samples::Samples;

/// A stream of chunks that says `Pending` between them, and counts what is taken.
struct Slow<I> {
    chunks: I,
    is_next: bool,
    taken: Rc<Cell<usize>>,
}

impl<I: Iterator + Unpin> Stream for Slow<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<I::Item>> {
        self.is_next = !self.is_next;
        if self.is_next {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let chunk = self.chunks.next();
        self.taken
            .set(self.taken.get() + usize::from(chunk.is_some()));
        Poll::Ready(chunk)
    }
}

fn slow<I: Iterator + Unpin>(chunks: I) -> (Slow<I>, Rc<Cell<usize>>) {
    let taken = Rc::new(Cell::new(0));
    let slow = Slow {
        chunks,
        is_next: false,
        taken: Rc::clone(&taken),
    };
    (slow, taken)
}

fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    pollster::block_on(poll_fn(|context| Pin::new(&mut *stream).poll_next(context)))
}

/// How many states a chunk of odd lengths has.
fn length(chunk: u64) -> usize {
    100 + 50 * usize::try_from(chunk).expect("a number of a chunk")
}

fn states(chunk: u64, count: usize) -> Vec<State> {
    Samples(chunk).states(count)
}

#[test]
fn results_are_those_of_calls_made_alone_in_order() {
    in_time(|| {
        // The sessions that only `flush` sends for are tried, too.
        for gpu in both().into_iter().chain(both_manual()) {
            let (source, _) = slow((0..40).map(|k| states(k, length(k))));
            let mut results = gpu.stream(source, |gpu, chunk| gpu.compute_gradients(&chunk));
            for k in 0..40 {
                let streamed = next(&mut results).expect("40 of them").unwrap();
                let alone = gpu.compute_gradients(&states(k, length(k)));
                gpu.flush();
                assert_eq!(streamed, alone.wait().unwrap(), "chunk {k}");
            }
            assert!(next(&mut results).is_none());
            assert!(next(&mut results).is_none());
        }
    });
}

#[test]
fn no_more_chunks_are_taken_than_the_depth() {
    in_time(|| {
        for gpu in both() {
            for depth in [1, 2, 7] {
                let (source, taken) = slow((0..30).map(|k| states(k, 64)));
                let results = gpu.stream(source, |gpu, chunk| gpu.compute_gradients(&chunk));
                let mut results = results.depth(depth);
                assert_eq!(taken.get(), 0);
                for done in 1..=30 {
                    next(&mut results).expect("30 of them").unwrap();
                    assert!(taken.get() <= done + depth, "{} at {done}", taken.get());
                }
            }
        }
    });
}

#[test]
fn the_usual_depth_follows_the_bytes_and_the_budget() {
    // Chunks of 16 bytes and results of 128 for each state.
    let cases: [(usize, u64, usize); 4] = [
        (10, 1 << 30, 64),
        (14_000, 1 << 30, 8), // About 2 MB each.
        (200_000, 1 << 30, 3),
        (14_000, 6 << 20, 2),
    ];
    in_time(move || {
        for (count, budget, depth) in cases {
            let batch = BatchConfig {
                memory_budget: Some(budget),
                ..manual()
            };
            let gpu = open(EngineChoice::Cpu, batch);
            let taken = Rc::new(Cell::new(0));
            let chunks = (0..100).inspect(|_| taken.set(taken.get() + 1));
            let mut results = gpu
                .blocking()
                .stream(chunks, |gpu, k| gpu.compute_gradients(&states(k, count)));
            results.next().expect("a hundred").unwrap();
            assert_eq!(taken.get(), 1 + depth, "{count} states, budget {budget}");
        }
    });
}

#[test]
fn an_error_stands_at_its_place_and_the_others_stand() {
    in_time(|| {
        for gpu in both() {
            let results = gpu.blocking().stream(0..20_u64, |gpu, k| {
                let call = gpu.lerp(&[k as f32], &[0.0; 3][..if k == 7 { 3 } else { 1 }], 0.0);
                async move { Ok::<_, Error>(call.await?[0]) }
            });
            let values: Vec<Result<f32, Error>> = results.collect();
            for (k, value) in values.iter().enumerate() {
                match value {
                    Ok(value) => assert!(*value == k as f32 && k != 7),
                    Err(error) => assert!(matches!(error, Error::InvalidInput(_)) && k == 7),
                }
            }
            assert_eq!(values.len(), 20);
        }
    });
}

#[test]
fn a_dropped_stream_gives_its_calls_up_and_its_source() {
    in_time(|| {
        for gpu in both() {
            let (source, taken) = slow((0..).map(|k| states(k, 1000)));
            let results = gpu.stream(source, |gpu, chunk| gpu.compute_gradients(&chunk));
            let mut results = results.depth(8);
            next(&mut results).expect("endless").unwrap();
            assert!(Rc::strong_count(&taken) == 2);
            drop(results);
            assert_eq!(Rc::strong_count(&taken), 1);
            // What was in flight lands, and is nobody's.
            gpu.compute_gradients(&states(0, 1)).wait().unwrap();
            assert_eq!(gpu.stats().pending, 0);
        }
    });
}

#[test]
fn a_disposed_session_rejects_the_rest() {
    in_time(|| {
        for gpu in both() {
            let other = gpu.clone();
            let mut results = gpu.blocking().stream(0..9_u64, move |gpu, k| {
                if k == 5 {
                    other.dispose();
                }
                gpu.compute_gradients(&states(k, 10))
            });
            let disposed = results.by_ref().filter(Result::is_err).count();
            assert!(disposed >= 4, "{disposed}");
        }
    });
}

#[test]
fn batch_sizes_by_memory() {
    let gpu = |memory_budget, max_batch_size| {
        let batch = BatchConfig {
            memory_budget,
            max_batch_size,
            ..manual()
        };
        open(EngineChoice::Cpu, batch)
    };
    let hundred = gpu(Some(100_000_000), None);
    // (model, item) -> floor((0.8 x 100e6 - model) / item), at least 1.
    let cases = [
        (0, 1, 80_000_000),
        (0, 3, 26_666_666),
        (30_000_000, 1_000_000, 50),
        (30_000_001, 1_000_000, 49),
        (79_999_999, 1, 1),
        (80_000_000, 1, 1),
        (u64::MAX, u64::MAX, 1),
    ];
    for (model, item, expected) in cases {
        assert_eq!(
            hundred.optimal_batch_size(model, item),
            expected,
            "{model} {item}"
        );
    }
    assert_eq!(
        gpu(None, None).optimal_batch_size(0, 1),
        (2 << 30) / 5 * 4 + 2
    );
    assert_eq!(gpu(None, Some(7)).optimal_batch_size(0, 1), 7);
    assert_eq!(gpu(None, Some(7)).optimal_batch_size(0, 0), 7);
}

#[test]
fn batches_are_limited_by_the_budget() {
    // 1 MiB, four fifths of it live, each byte there four times: 209,715 bytes a batch.
    let batch = BatchConfig {
        memory_budget: Some(1 << 20),
        ..manual()
    };
    let gpu = open(EngineChoice::Cpu, batch);
    let calls: Vec<_> = (0..10)
        .map(|k| gpu.compute_gradients(&states(k, 700)))
        .collect();
    gpu.flush();
    for call in calls {
        call.wait().unwrap();
    }
    // A call has 100,800 bytes of operands and results, so that two fit.
    assert_eq!(gpu.stats().batches, 5);
}

#[test]
fn a_budget_too_small_to_work_is_refused() {
    let batch = BatchConfig {
        memory_budget: Some((1 << 20) - 1),
        ..manual()
    };
    let error = batch.validate().unwrap_err();
    assert!(error.to_string().contains("memory budget"), "{error}");
}

#[test]
fn streams_stay_within_their_budget_and_give_it_back() {
    const BUDGET: u64 = 8 << 20;
    in_time(|| {
        let batch = BatchConfig {
            memory_budget: Some(BUDGET),
            ..Preset::Eager.config()
        };
        let gpu = open(EngineChoice::Gpu, batch);
        // Small ones, and some whose results are larger than all that may be held.
        let count = |k: u64| if k % 20 == 7 { 100_000 } else { length(k % 30) };
        let results = gpu.blocking().stream(0..60_u64, move |gpu, k| {
            gpu.compute_gradients(&states(k, count(k)))
        });
        let mut done = 0;
        for (k, result) in (0..).zip(results) {
            let layers = states(k, count(k));
            let alone = gpu
                .on(EngineChoice::Cpu)
                .compute_gradients(&layers)
                .wait()
                .unwrap();
            assert!(result.unwrap() == alone, "chunk {k}");
            done += 1;
        }
        assert_eq!(done, 60);
        let device = gpu.stats().device;
        assert!(device.pool_peak_bytes > 0 && device.pool_peak_bytes <= BUDGET);
        assert_eq!(gpu.stats().rejected, 0);
        // `in_time` ends what waits too long.
        while gpu.stats().device.pool_bytes > 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(gpu.lerp(&[1.0], &[3.0], 0.5).wait().unwrap(), [2.0]);
    });
}

#[test]
fn a_call_without_memory_on_the_gpu_is_answered_by_the_cpu() {
    in_time(|| {
        let batch = BatchConfig {
            memory_budget: Some(1 << 20),
            ..Preset::Eager.config()
        };
        let gpu = open(EngineChoice::Gpu, batch);
        // Each row of this product needs all of the weights.
        let mut batch = gpu.batch();
        let x = batch.upload_shaped(vec![1.0; 4 << 10], &[4, 1 << 10]);
        let y = batch.upload_shaped(vec![0.5; 1 << 20], &[1 << 10, 1 << 10]);
        let sum = batch.matmul(x.unwrap(), y.unwrap()).unwrap();
        pollster::block_on(batch.execute()).unwrap();
        let values = pollster::block_on(batch.read(sum)).unwrap();
        assert!(values.len() == 4 << 10 && values.iter().all(|value| *value == 512.0));
        let stats = gpu.stats();
        assert_eq!(
            (stats.ran_on_gpu, stats.ran_on_cpu, stats.fallbacks),
            (0, 1, 1)
        );
        assert!(stats.device.pool_peak_bytes <= 1 << 20);
    });
}
